// What the Python bindings share: arrays that are taken as they are, and checks of their shapes.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <cstdint>
#include <stdexcept>

namespace coem {

namespace nb = nanobind;

using Any1 = nb::ndarray<nb::ro, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using In1 = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using In2 = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
using Strided2 = nb::ndarray<const double, nb::ndim<2>, nb::device::cpu>;
template <class T> using Out1 = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T> using Out2 = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

inline void require(bool ok, const char* what) {
    if (!ok) throw std::invalid_argument(what);
}

inline std::int64_t extent(std::size_t n) { return static_cast<std::int64_t>(n); }

// The ends alone: to look at all of indptr would cost as much as some kernels do.
inline void require_within(std::int64_t first, std::int64_t last, std::size_t n) {
    require(0 <= first && first <= last && last <= extent(n), "indptr points beyond the indices");
}

void bind_aspect(nb::module_& m);
void bind_chain(nb::module_& m);
void bind_dense(nb::module_& m);
void bind_pruning(nb::module_& m);
void bind_sparse_tables(nb::module_& m);
void bind_structure(nb::module_& m);
void bind_words(nb::module_& m);

}  // namespace coem
