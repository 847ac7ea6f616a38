// Rows of a CSR matrix, as the caller holds them.
// Included by one translation unit per instruction set: everything here is inline and static.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "buffer.hpp"
#include "counts.hpp"

namespace coem::COEM_ISA {
namespace {

using std::int32_t;
using std::int64_t;

constexpr int AHEAD = 20;  // non-zeros between a prefetch and its use

// A row's indices and values in the kernel's own types: the caller's memory where the types
// agree, a scratch copy of this one row where they do not.
template <class T>
class Rows {
  public:
    explicit Rows(const Csr& X) : X_(X) {}

    int64_t size() const { return X_.n_rows; }

    void seek(int64_t row) {
        begin_ = at(X_.indptr, row);
        length = at(X_.indptr, row + 1) - begin_;
        const auto n = static_cast<std::size_t>(length);
        if (X_.index == Number::i32) {
            index = static_cast<const int32_t*>(X_.indices) + begin_;
            reach = X_.n_entries - begin_;
        } else {
            index = converted(static_cast<const int64_t*>(X_.indices) + begin_, n, indices_);
            reach = length;
        }
        switch (X_.value) {
            case Number::f32: take<float>(n); break;
            case Number::f64: take<double>(n); break;
            case Number::i32: take<int32_t>(n); break;
            case Number::i64: take<int64_t>(n); break;
        }
    }

    // First place whose word is not below `word`, in a row with its words in order.
    int64_t find(int64_t word) const {
        int64_t begin = 0;
        int64_t end = length;
        while (begin < end) {
            const int64_t middle = (begin + end) / 2;
            if (index[middle] < word) {
                begin = middle + 1;
            } else {
                end = middle;
            }
        }
        return begin;
    }

    // Ask for a row that will be visited soon, when rows are not visited in order.
    void prefetch(int64_t row) const {
        const int64_t begin = at(X_.indptr, row);
        const int64_t end = at(X_.indptr, row + 1);
        fetch(X_.indices, X_.index, begin, end);
        fetch(X_.data, X_.value, begin, end);
    }

    const int32_t* index = nullptr;
    const T* value = nullptr;
    int64_t length = 0;
    int64_t reach = 0;  // indices that can be read, those of the rows that follow included

  private:
    template <class S> void take(std::size_t n) {
        const S* source = static_cast<const S*>(X_.data) + begin_;
        if constexpr (std::is_same_v<S, T>) {
            value = source;
        } else {
            value = converted(source, n, values_);
        }
    }

    static void fetch(const void* array, Number kind, int64_t begin, int64_t end) {
        const int64_t size = kind == Number::f32 || kind == Number::i32 ? 4 : 8;
        const auto* bytes = static_cast<const char*>(array);
        for (int64_t b = begin * size; b < end * size; b += 64) __builtin_prefetch(bytes + b);
    }

    int64_t at(const void* indptr, int64_t i) const {
        return X_.index == Number::i32 ? static_cast<const int32_t*>(indptr)[i]
                                       : static_cast<const int64_t*>(indptr)[i];
    }

    template <class S, class U>
    static const U* converted(const S* source, std::size_t n, Buffer<U>& target) {
        U* to = target.of(n);
        for (std::size_t p = 0; p < n; ++p) to[p] = static_cast<U>(source[p]);
        return to;
    }

    const Csr& X_;
    int64_t begin_ = 0;
    Buffer<int32_t> indices_;
    Buffer<T> values_;
};

}  // namespace
}  // namespace coem::COEM_ISA
