// Dense rows and hard posteriors: what k-means computes. Declarations shared by every instruction
// set; `dense.cpp` is compiled once for each of them.
#pragma once

#include <cstdint>

#include "counts.hpp"

namespace coem {

struct DenseRows {
    const double* data;  // (n, d)
    std::int64_t n;
    std::int64_t d;
};

struct DenseKernels {
    // out (n, k) = minus half the squared distances of the rows from the means (k, d), plus a
    // constant. The result of a row does not depend on its neighbours.
    void (*closeness)(const DenseRows& rows, const DenseRows& means, double constant, double* out);
    // the hard rule: labels (n) = the best component of every row; of equals the first. The log
    // joint is not changed.
    void (*assign)(const PosteriorArgs&, std::int32_t* labels);
    // sums (k, d) += the rows of every label, times their weights (n), or null for ones
    void (*sum_by_label)(const DenseRows&, const std::int32_t* labels, const double* weights,
                         double* sums);
};

const DenseKernels& dense_kernels();  // the fastest that this machine can run

namespace baseline { const DenseKernels& dense_table(); }
#ifdef COEM_X86
namespace avx2 { const DenseKernels& dense_table(); }
namespace avx512 { const DenseKernels& dense_table(); }
#endif

}  // namespace coem
