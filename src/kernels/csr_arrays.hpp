// The arrays of a CSR matrix, as bindings take them.
#pragma once

#include "bindings.hpp"
#include "counts.hpp"

namespace coem {

inline Number number(const Any1& array) {
    if (array.dtype() == nb::dtype<float>()) return Number::f32;
    if (array.dtype() == nb::dtype<double>()) return Number::f64;
    if (array.dtype() == nb::dtype<std::int32_t>()) return Number::i32;
    if (array.dtype() == nb::dtype<std::int64_t>()) return Number::i64;
    throw std::invalid_argument("a CSR array is neither float32, float64, int32 nor int64");
}

inline std::int64_t integer(const void* data, Number type, std::int64_t i) {
    return type == Number::i32 ? static_cast<const std::int32_t*>(data)[i]
                               : static_cast<const std::int64_t*>(data)[i];
}

inline Csr csr(const Any1& indptr, const Any1& indices, const Any1& data) {
    const Number index = number(indptr);
    require(index == Number::i32 || index == Number::i64, "indptr must hold integers");
    require(number(indices) == index, "indices and indptr must have the same dtype");
    require(indptr.shape(0) >= 1, "indptr must not be empty");
    require(indices.shape(0) == data.shape(0), "indices and data must have the same length");
    const std::int64_t n_rows = extent(indptr.shape(0)) - 1;
    require_within(integer(indptr.data(), index, 0), integer(indptr.data(), index, n_rows),
                   indices.shape(0));
    return {indptr.data(), indices.data(), data.data(), index, number(data), n_rows,
            extent(indices.shape(0))};
}

}  // namespace coem
