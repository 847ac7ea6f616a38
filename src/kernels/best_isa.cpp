// Prints the best instruction set of this machine that the kernels know. CMake runs it.
#include <cstdio>

#include "isa.hpp"

int main() { std::fputs(coem::name_of(coem::best_isa()), stdout); }
