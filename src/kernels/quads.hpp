// Vectors of four doubles, and products of small matrices with them.
// Included by one translation unit per instruction set: everything here is inline and static.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "simd.hpp"

// So that a width that is known where a function is called leaves no loop inside it.
#define COEM_INLINE inline __attribute__((always_inline))

namespace {

constexpr double INFINITE = std::numeric_limits<double>::infinity();
constexpr double NEVER = -INFINITE;  // log of a probability of zero

constexpr int QUAD = 4;
constexpr int MAX_QUADS = 6;  // twice as many sums stay in registers

using Quad = HalfOf<double>::type;
typedef std::int64_t Mask __attribute__((vector_size(32)));

COEM_INLINE Quad take(const double* p) {
    Quad v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

COEM_INLINE void put(double* p, const Quad& v) { std::memcpy(p, &v, sizeof v); }

COEM_INLINE Quad all(double x) { return Quad{x, x, x, x}; }

// The quad at cell l of a row with k of them, filled up. By number: a vector that is loaded from
// where scalars were just stored waits for them.
COEM_INLINE Quad take_of(const double* row, std::int64_t l, std::int64_t k, double fill) {
    const double* p = row + l;
    switch (k - l) {
        case 1: return Quad{p[0], fill, fill, fill};
        case 2: return Quad{p[0], p[1], fill, fill};
        case 3: return Quad{p[0], p[1], p[2], fill};
        default: return take(p);
    }
}

template <class T>
COEM_INLINE void put_of(T* row, std::int64_t l, std::int64_t k, const Quad& v) {
    const auto values = __builtin_convertvector(v, typename HalfOf<T>::type);
    T* p = row + l;
    if (k - l >= QUAD) {
        std::memcpy(p, &values, sizeof values);
        return;
    }
    p[0] = values[0];
    if (k - l > 1) p[1] = values[1];
    if (k - l > 2) p[2] = values[2];
}

// Which of the four flags at cell l of a row with k of them are set.
COEM_INLINE Mask flags_of(const std::uint8_t* row, std::int64_t l, std::int64_t k) {
    const std::uint8_t* p = row + l;
    const std::int64_t left = k - l;
    return Mask{p[0], left > 1 ? p[1] : 0, left > 2 ? p[2] : 0, left > 3 ? p[3] : 0} != 0;
}

COEM_INLINE Quad larger(const Quad& a, const Quad& b) { return a > b ? a : b; }

COEM_INLINE bool any(const Mask& m) { return (m[0] | m[1]) | (m[2] | m[3]); }

COEM_INLINE double sum_of(const Quad& v) { return (v[0] + v[2]) + (v[1] + v[3]); }

COEM_INLINE double largest_of(const Quad& v) {
    const double a = v[0] > v[2] ? v[0] : v[2];
    const double b = v[1] > v[3] ? v[1] : v[3];
    return a > b ? a : b;
}

// exp for x <= 0 (Cephes' reduction and rational function), 2e-16 relative; zero below e^-708.
COEM_INLINE Quad exp_below(const Quad& x) {
    constexpr double lowest = -708.0;
    constexpr double magic = 6755399441055744.0;  // adding 1.5 * 2^52 rounds to an integer
    const Quad y = x < lowest ? all(lowest) : x;
    const Quad shifted = y * 1.4426950408889634 + magic;
    const Quad n = shifted - magic;
    const Quad r = (y - n * 6.93145751953125e-1) - n * 1.42860682030941723212e-6;
    const Quad s = r * r;
    const Quad p =
        r * ((1.26177193074810590878e-4 * s + 3.02994407707441961300e-2) * s + 1.0);
    const Quad q = ((3.00198505138664455042e-6 * s + 2.52448340349684104192e-3) * s +
                    2.27265548208155028766e-1) * s + 2.0;
    const Quad power = std::bit_cast<Quad>((std::bit_cast<Mask>(shifted) + 1023) << 52);
    return x < lowest ? Quad{} : (1.0 + 2.0 * (p / (q - p))) * power;
}

// Call step(first cell, number of quads as a type) for as many as registers hold at a time.
template <class Step> COEM_INLINE void by_quads(std::int64_t width, const Step& step) {
    std::int64_t quads = width / QUAD;
    for (std::int64_t first = 0; quads > 0;) {
        const std::int64_t share = quads <= MAX_QUADS       ? quads
                                   : quads <= 2 * MAX_QUADS ? (quads + 1) / 2
                                                            : MAX_QUADS;
        switch (share) {
            case 1: step(first, std::integral_constant<int, 1>{}); break;
            case 2: step(first, std::integral_constant<int, 2>{}); break;
            case 3: step(first, std::integral_constant<int, 3>{}); break;
            case 4: step(first, std::integral_constant<int, 4>{}); break;
            case 5: step(first, std::integral_constant<int, 5>{}); break;
            default: step(first, std::integral_constant<int, 6>{}); break;
        }
        first += share * QUAD;
        quads -= share;
    }
}

// out (width) = x(i) and matrix(i, :) put together by `with`, over all rows i of a matrix
// (k, width), and the results put together by `join`, beginning with `nothing`.
template <class With, class Join>
COEM_INLINE void fold(const double* matrix, const double* x, std::int64_t k, std::int64_t width,
                      double nothing, double* out, const With& with, const Join& join) {
    by_quads(width, [&](std::int64_t first, auto quads) {
        constexpr int N = decltype(quads)::value;
        Quad even[N];
        Quad odd[N];  // two chains of results: one would wait for itself
        for (int q = 0; q < N; ++q) even[q] = odd[q] = all(nothing);
        const double* row = matrix + first;
        std::int64_t i = 0;
        for (; i + 1 < k; i += 2, row += 2 * width) {
            for (int q = 0; q < N; ++q) even[q] = with(even[q], x[i], take(row + q * QUAD));
            for (int q = 0; q < N; ++q) odd[q] = with(odd[q], x[i + 1], take(row + width + q * QUAD));
        }
        if (i < k) {
            for (int q = 0; q < N; ++q) even[q] = with(even[q], x[i], take(row + q * QUAD));
        }
        for (int q = 0; q < N; ++q) put(out + first + q * QUAD, join(even[q], odd[q]));
    });
}

// out (width) = sum_i x(i) matrix(i, :)
COEM_INLINE void multiply(const double* matrix, const double* x, std::int64_t k,
                          std::int64_t width, double* out) {
    fold(
        matrix, x, k, width, 0.0, out,
        [](const Quad& sum, double a, const Quad& row) { return sum + a * row; },
        [](const Quad& a, const Quad& b) { return a + b; });
}

// out (width) = max_i x(i) + matrix(i, :)
COEM_INLINE void add_and_maximise(const double* matrix, const double* x, std::int64_t k,
                                  std::int64_t width, double* out) {
    fold(
        matrix, x, k, width, NEVER, out,
        [](const Quad& most, double a, const Quad& row) { return larger(a + row, most); },
        larger);
}

COEM_INLINE Quad lanes_of(const Quad& a, const Quad& b, const Mask& mask) {
#if defined(__clang__)
    Quad out;
    for (int l = 0; l < QUAD; ++l) out[l] = mask[l] < QUAD ? a[mask[l]] : b[mask[l] - QUAD];
    return out;
#else
    return __builtin_shuffle(a, b, mask);
#endif
}

// The sums of four quads, as one.
COEM_INLINE Quad sum_each_of(const Quad& a, const Quad& b, const Quad& c, const Quad& d) {
    const Quad ab = lanes_of(a, b, Mask{0, 4, 2, 6}) + lanes_of(a, b, Mask{1, 5, 3, 7});
    const Quad cd = lanes_of(c, d, Mask{0, 4, 2, 6}) + lanes_of(c, d, Mask{1, 5, 3, 7});
    return lanes_of(ab, cd, Mask{0, 1, 4, 5}) + lanes_of(ab, cd, Mask{2, 3, 6, 7});
}

// matrix(i, :) . x for four rows of a matrix, from the row i on
COEM_INLINE Quad dots(const double* matrix, std::int64_t i, const double* x, std::int64_t width) {
    const double* row = matrix + i * width;
    Quad a = {}, b = {}, c = {}, d = {};
    for (std::int64_t l = 0; l < width; l += QUAD) {
        const Quad v = take(x + l);
        a += v * take(row + l);
        b += v * take(row + width + l);
        c += v * take(row + 2 * width + l);
        d += v * take(row + 3 * width + l);
    }
    return sum_each_of(a, b, c, d);
}

}  // namespace
