// The aspect model p(x, y) = sum_h p(h) p(x|h) p(y|h) over the non-zeros of a matrix of counts.
// Declarations shared by every instruction set; `aspect.cpp` is compiled once for each of them.
#pragma once

#include <cstdint>

namespace coem {

// Non-zeros of a matrix by rows, or by columns. For columns `values` are those of the rows' order
// and `places` tells where each is found there.
template <class T>
struct Lines {
    const std::int64_t* indptr;   // IN, n_lines + 1
    const std::int32_t* indices;  // IN
    const T* values;              // IN
    const std::int64_t* places;   // IN, columns alone
};

// Factors of the model. A table (n, width) holds the components of a row or column side by side,
// `width` being their number rounded up to whole vectors, with zeros in the spare cells.
template <class T>
struct Factors {
    const T* own;        // IN: the table of the lines that are visited
    const T* other;      // IN: the table that their indices point to
    const T* weights;    // IN (width): what products are multiplied with
    std::int64_t width;  // a multiple of eight
};

// From sums to shares: value * scale + shift, each (width).
struct Affine {
    const double* scale;
    const double* shift;
};

struct Folding {
    std::int64_t max_iter;
    double tol;  // a row ends when none of its shares moves by more
};

template <class T>
struct AspectKernels {
    // E step of the rows lo <= i < hi: ratios (nnz) = count / p(x, y), sums (n, width) = expected
    // counts of row and component, totals (width) += those of the components. Returns the sum of
    // count log p(x, y).
    double (*rows)(const Lines<T>&, const Factors<T>&, std::int64_t lo, std::int64_t hi, T* ratios,
                   T* sums, double* totals);
    // M step of the columns lo <= i < hi from the ratios: out (n, width) = affine(expected counts)
    void (*columns)(const Lines<T>&, const Factors<T>&, std::int64_t lo, std::int64_t hi,
                    const Affine&, T* out);
    // out = affine(table), for the table rows lo <= i < hi
    void (*rescale)(const T* table, std::int64_t width, std::int64_t lo, std::int64_t hi,
                    const Affine&, T* out);
    // out = table ^ beta, for the cells lo <= c < hi, both multiples of eight
    void (*power)(const T* table, std::int64_t lo, std::int64_t hi, double beta, T* out);
    // sum of count log p(x, y) over rows
    double (*evidence)(const Lines<T>&, const Factors<T>&, std::int64_t lo, std::int64_t hi);
    // shares (n, width) = p(h | row) for rows that the model has not seen; `own` is not read
    void (*fold_in)(const Lines<T>&, const Factors<T>&, std::int64_t lo, std::int64_t hi, Folding,
                    double* shares);
    // sum of the logarithms of the first k cells of the table rows lo <= i < hi
    double (*log_sum)(const T* table, std::int64_t width, std::int64_t k, std::int64_t lo,
                      std::int64_t hi);
};

template <class T> const AspectKernels<T>& aspect_kernels();  // the fastest this machine can run

namespace baseline { template <class T> const AspectKernels<T>& aspect_table(); }
#ifdef COEM_X86
namespace avx2 { template <class T> const AspectKernels<T>& aspect_table(); }
namespace avx512 { template <class T> const AspectKernels<T>& aspect_table(); }
#endif

}  // namespace coem
