// Prints the best instruction set of this machine that the kernels know. CMake runs it.
#include <cstdio>

int main() {
    __builtin_cpu_init();
    const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") &&
                            __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
    std::fputs(has_avx512 ? "avx512" : has_avx2 ? "avx2" : "baseline", stdout);
}
