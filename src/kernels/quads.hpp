// Vectors of four doubles, and products of small matrices with them.
// Included by one translation unit per instruction set: everything here is inline and static.
#pragma once

#include <bit>
#include <cstdint>
#include <cstring>
#include <limits>
#include <type_traits>

#include "simd.hpp"

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
    if (k - l >= QUAD) [[likely]] return take(p);
    return Quad{p[0], k - l > 1 ? p[1] : fill, k - l > 2 ? p[2] : fill, fill};
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

// One bit for each lane.
COEM_INLINE unsigned bits_of(const Mask& m) {
#ifdef __AVX__
    return static_cast<unsigned>(__builtin_ia32_movmskpd256(std::bit_cast<Quad>(m)));
#else
    return static_cast<unsigned>((m[0] & 1) | (m[1] & 2) | (m[2] & 4) | (m[3] & 8));
#endif
}

COEM_INLINE Quad only_where(const Mask& m, const Quad& v) {
    return std::bit_cast<Quad>(m & std::bit_cast<Mask>(v));
}

COEM_INLINE double sum_of(const Quad& v) {
    const Pair two = Pair{v[0], v[1]} + Pair{v[2], v[3]};
    return two[0] + two[1];
}

// exp for x <= 0, 2e-16 relative; e^-708 for all that is less. The polynomial is that of degree 11
// through exp at Chebyshev's points between -log(2)/2 and log(2)/2: no division, which would take
// longer.
COEM_INLINE Quad exp_below(const Quad& x) {
    constexpr double magic = 6755399441055744.0;  // adding 1.5 * 2^52 rounds to an integer
    const Quad y = larger(all(-708.0), x);
    const Quad shifted = y * 1.4426950408889634 + magic;
    const Quad n = shifted - magic;
    const Quad r = (y - n * 6.93145751953125e-1) - n * 1.42860682030941723212e-6;
    Quad p = 2.510038549551032e-08 * r + 2.7620088445409746e-07;
    p = p * r + 2.7557268459997064e-06;
    p = p * r + 2.4801521295954376e-05;
    p = p * r + 1.9841269863053618e-04;
    p = p * r + 1.3888888917213717e-03;
    p = p * r + 8.333333333330062e-03;
    p = p * r + 4.166666666662413e-02;
    p = p * r + 1.6666666666666669e-01;
    p = p * r + 0.5;
    p = p * (r * r) + r;
    const Quad power = std::bit_cast<Quad>((std::bit_cast<Mask>(shifted) + 1023) << 52);
    return p * power + power;
}

// The same, but zero below e^-708.
COEM_INLINE Quad exp_or_zero(const Quad& x) { return only_where(x > -708.0, exp_below(x)); }

// Four cells each of a row: in registers, if the number N of quads is known,
template <int N>
struct Cells {
    explicit Cells(double*) {}
    COEM_INLINE Quad get(std::int64_t l) const { return quads[l / QUAD]; }
    COEM_INLINE void set(std::int64_t l, const Quad& v) { quads[l / QUAD] = v; }

    Quad quads[N];
};

// and otherwise in memory.
template <>
struct Cells<0> {
    explicit Cells(double* memory) : row(memory) {}
    COEM_INLINE Quad get(std::int64_t l) const { return take(row + l); }
    COEM_INLINE void set(std::int64_t l, const Quad& v) { put(row + l, v); }

    double* row;
};

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

// out (width) = all rows i of a matrix (rows, width) taken together: each with x(i) by `with`, the
// results by `join`, beginning with `nothing`.
template <class Out, class With, class Join>
COEM_INLINE void fold(const double* matrix, const double* x, std::int64_t rows, std::int64_t width,
                      double nothing, Out& out, const With& with, const Join& join) {
    by_quads(width, [&](std::int64_t first, auto quads) COEM_INLINED {
        constexpr int M = decltype(quads)::value;
        Quad even[M];
        Quad odd[M];  // two chains of results: one would wait for itself
        for (int q = 0; q < M; ++q) even[q] = odd[q] = all(nothing);
        const double* row = matrix + first;
        std::int64_t i = 0;
        for (; i + 1 < rows; i += 2, row += 2 * width) {
            for (int q = 0; q < M; ++q) {
                even[q] = with(even[q], x[i], take(row + q * QUAD));
                odd[q] = with(odd[q], x[i + 1], take(row + width + q * QUAD));
            }
        }
        if (i < rows) {
            for (int q = 0; q < M; ++q) even[q] = with(even[q], x[i], take(row + q * QUAD));
        }
        for (int q = 0; q < M; ++q) out.set(first + q * QUAD, join(even[q], odd[q]));
    });
}

// out (width) = sum_i x(i) matrix(i, :)
template <class Out>
COEM_INLINE void multiply(const double* matrix, const double* x, std::int64_t rows,
                          std::int64_t width, Out& out) {
    fold(
        matrix, x, rows, width, 0.0, out,
        [](const Quad& sum, double a, const Quad& row) COEM_INLINED { return sum + a * row; },
        [](const Quad& a, const Quad& b) COEM_INLINED { return a + b; });
}

// out (width) = max_i x(i) + matrix(i, :)
template <class Out>
COEM_INLINE void add_and_maximise(const double* matrix, const double* x, std::int64_t rows,
                                  std::int64_t width, Out& out) {
    fold(
        matrix, x, rows, width, NEVER, out,
        [](const Quad& most, double a, const Quad& row) COEM_INLINED {
            return larger(a + row, most);
        },
        [](const Quad& a, const Quad& b) COEM_INLINED { return larger(a, b); });
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

// out (width) = matrix (width, width) times x
template <class Out>
COEM_INLINE void multiply_from_left(const double* matrix, const double* x, std::int64_t width,
                                    Out& out) {
    for (std::int64_t i = 0; i < width; i += QUAD) {
        const double* row = matrix + i * width;
        Quad a = {}, b = {}, c = {}, d = {};
        for (std::int64_t l = 0; l < width; l += QUAD) {
            const Quad v = take(x + l);
            a += v * take(row + l);
            b += v * take(row + width + l);
            c += v * take(row + 2 * width + l);
            d += v * take(row + 3 * width + l);
        }
        out.set(i, sum_each_of(a, b, c, d));
    }
}

}  // namespace
