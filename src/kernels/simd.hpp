// Vectors of eight components, and exp and log that the compiler can vectorise.
// Included by one translation unit per instruction set: everything here is inline and static.
#pragma once

#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>

// A call would take vectors out of their registers, and loops would not know their lengths.
#define COEM_INLINED __attribute__((always_inline))
#define COEM_INLINE inline COEM_INLINED

namespace {

constexpr int LANES = 8;
constexpr int HALF = LANES / 2;

template <class T> struct VecOf;
template <> struct VecOf<float> { typedef float type __attribute__((vector_size(LANES * 4))); };
template <> struct VecOf<double> { typedef double type __attribute__((vector_size(LANES * 8))); };
template <class T> using Vec = typename VecOf<T>::type;

template <class T> inline Vec<T> load(const T* p) {
    Vec<T> v;
    std::memcpy(&v, p, sizeof v);  // rows of a table need not be aligned
    return v;
}

template <class T> inline void store(T* p, const Vec<T>& v) { std::memcpy(p, &v, sizeof v); }

typedef std::int32_t Int8 __attribute__((vector_size(LANES * 4)));

// Halves of a vector, for changes of precision: compilers take eight lanes apart one by one.
template <class T> struct HalfOf;
template <> struct HalfOf<float> { typedef float type __attribute__((vector_size(16))); };
template <> struct HalfOf<double> { typedef double type __attribute__((vector_size(32))); };

template <class T> using Half = typename HalfOf<T>::type;
typedef std::int64_t Long4 __attribute__((vector_size(32)));

template <class To, class From> inline Half<To> load_half(const From* p) {
    Half<From> v;
    std::memcpy(&v, p, sizeof v);
    return __builtin_convertvector(v, Half<To>);
}

template <class T> inline void store_half(T* p, const Half<T>& v) { std::memcpy(p, &v, sizeof v); }

// One bit per lane of a comparison.
inline std::uint64_t bits(const Long4& is) {
#if defined(__AVX__)
    return static_cast<std::uint64_t>(__builtin_ia32_movmskpd256(std::bit_cast<Half<double>>(is)));
#else
    return static_cast<std::uint64_t>((is[0] & 1) | (is[1] & 2) | (is[2] & 4) | (is[3] & 8));
#endif
}

// Whether a comparison holds in any lane.
inline bool any_of(const Int8& is) {
#if defined(__AVX__)
    return __builtin_ia32_movmskps256(std::bit_cast<Vec<float>>(is)) != 0;
#else
    const auto words = std::bit_cast<Long4>(is);
    return ((words[0] | words[1]) | (words[2] | words[3])) != 0;
#endif
}

// b, if one of them is NaN
COEM_INLINE Half<double> larger(const Half<double>& a, const Half<double>& b) {
#ifdef __AVX__
    return __builtin_ia32_maxpd256(a, b);  // compilers do not always see that it is one instruction
#else
    return a > b ? a : b;
#endif
}

typedef double Pair __attribute__((vector_size(16)));

COEM_INLINE double largest_of(const Half<double>& v) {
    const Pair low = {v[0], v[1]};
    const Pair high = {v[2], v[3]};
    const Pair two = low > high ? low : high;
    return two[0] > two[1] ? two[0] : two[1];
}

template <class V> inline auto sum(const V& v) {
    return ((v[0] + v[4]) + (v[1] + v[5])) + ((v[2] + v[6]) + (v[3] + v[7]));
}

// Lanes of two vectors by number, 0 to 7 of `a` and 8 to 15 of `b`.
template <class T, class Mask> inline Vec<T> lanes(const Vec<T>& a, const Vec<T>& b, Mask mask) {
#if defined(__clang__)
    Vec<T> out;
    for (int l = 0; l < LANES; ++l) out[l] = mask[l] < LANES ? a[mask[l]] : b[mask[l] - LANES];
    return out;
#else
    return __builtin_shuffle(a, b, mask);
#endif
}

// The sums of eight vectors, as one vector: two shuffles an addition, where eight sums apart
// would take every lane out of its vector.
inline Vec<float> sum_each(const Vec<float>* v) {
    const auto two = [](const Vec<float>& a, const Vec<float>& b) {
        return lanes<float>(a, b, Int8{0, 8, 2, 10, 4, 12, 6, 14}) +
               lanes<float>(a, b, Int8{1, 9, 3, 11, 5, 13, 7, 15});
    };
    const auto four = [&](const Vec<float>* w) {
        const Vec<float> a = two(w[0], w[1]);
        const Vec<float> b = two(w[2], w[3]);
        return lanes<float>(a, b, Int8{0, 1, 8, 9, 4, 5, 12, 13}) +
               lanes<float>(a, b, Int8{2, 3, 10, 11, 6, 7, 14, 15});
    };
    const Vec<float> a = four(v);
    const Vec<float> b = four(v + 4);
    return lanes<float>(a, b, Int8{0, 1, 2, 3, 8, 9, 10, 11}) +
           lanes<float>(a, b, Int8{4, 5, 6, 7, 12, 13, 14, 15});
}

// exp for x <= 0 in double precision (a polynomial by Chebyshev's points), 1e-15 relative; 0 below
// exp(-709). By halves: compilers compare eight doubles one by one.
inline Half<double> exp_half(Half<double> x) {
    constexpr double lowest = -709.0895657128241;  // n = -1023, whose power of two is 0
    constexpr double magic = 6755399441055744.0;  // adding 1.5 * 2^52 rounds to an integer
    const Half<double> y = x > lowest ? x : Half<double>{} + lowest;
    const Half<double> shifted = y * 1.44269504088896341 + magic;
    const Half<double> n = shifted - magic;
    const Half<double> r = (y - n * 0.693147180369123816) - n * 1.90821492927058770e-10;
    const Half<double> r2 = r * r;
    const Half<double> r4 = r2 * r2;
    // Sums that do not wait for each other: about 1/2 + r/6 + ... + r^9/11!
    const Half<double> a = (r * 0.008333333333330062 + 0.04166666666662413) * r2 +
                           (r * 0.16666666666666669 + 0.5000000000000001);
    const Half<double> b = (r * 2.7557268459997064e-06 + 2.4801521295954376e-05) * r2 +
                           (r * 0.00019841269863053618 + 0.0013888888917213717);
    const Half<double> c = r * 2.510038549551032e-08 + 2.7620088445409746e-07;
    const Half<double> p = ((c * r4 + b) * r4 + a) * r2 + r + 1.0;
    const Long4 power = (std::bit_cast<Long4>(shifted) + 1023) << 52;  // its low bits are n
    return p * std::bit_cast<Half<double>>(power);
}

// exp for x <= 0 that is added to 1 or more: the error is 4e-16 of that 1. It takes less time than
// `exp_half`. The polynomial is that of degree 10 through 2^f at Chebyshev's points.
inline Half<double> exp_term(Half<double> x) {
    constexpr double magic = 6755399441055744.0;  // adding 1.5 * 2^52 rounds to an integer
    const Half<double> y = larger(x * 1.44269504088896341, Half<double>{} - 1000.0);
    const Half<double> shifted = y + magic;
    const Half<double> f = y - (shifted - magic);
    const Half<double> f2 = f * f;
    const Half<double> f4 = f2 * f2;
    const Half<double> a = (f * 0.05550410866444772 + 0.24022650695910097) * f2 +
                           (f * 0.69314718055995 + 1.0);
    const Half<double> b = (f * 1.5252657260200837e-05 + 0.0001540353044173605) * f2 +
                           (f * 0.0013333558230164974 + 0.009618129107606888);
    const Half<double> c = f2 * 7.072585949269223e-09 +
                           (f * 1.0208690299958306e-07 + 1.321544258792169e-06);
    const Half<double> p = (c * f4 + b) * f4 + a;
    const Long4 power = std::bit_cast<Long4>(shifted) << 52;  // its low bits are those of y - f
    return std::bit_cast<Half<double>>(std::bit_cast<Long4>(p) + power);
}

// log for normal positive x, 2e-16 relative (the reduction and the polynomial of fdlibm).
inline Half<double> log_half(Half<double> x) {
    constexpr double magic = 6755399441055744.0;
    const Long4 bits = std::bit_cast<Long4>(x);
    const Long4 exponent = (bits - 0x3fe6a09e667f3bcd) >> 52;  // the mantissa is in [0.707, 1.414)
    const Half<double> n =
        std::bit_cast<Half<double>>(exponent + std::bit_cast<std::int64_t>(magic)) - magic;
    const Half<double> f = std::bit_cast<Half<double>>(bits - (exponent << 52)) - 1.0;
    const Half<double> s = f / (f + 2.0);
    const Half<double> z = s * s;
    const Half<double> w = z * z;
    const Half<double> even =
        ((w * 1.531383769920937332e-01 + 2.222219843214978396e-01) * w + 3.999999999940941908e-01) *
        w;
    const Half<double> odd = (((w * 1.479819860511658591e-01 + 1.818357216161805012e-01) * w +
                               2.857142874366239149e-01) * w + 6.666666666666735130e-01) * z;
    const Half<double> square = f * f * 0.5;
    const Half<double> rest = s * (square + (even + odd)) + n * 1.90821492927058770e-10;
    return n * 0.693147180369123816 - ((square - rest) - f);
}

inline Vec<double> log_each(Vec<double> x) {
    for (int l = 0; l < LANES; ++l) x[l] = std::log(x[l]);
    return x;
}

// exp for x <= 0 in single precision (Cephes' reduction and polynomial), 2e-7 relative.
inline Vec<float> exp_each(Vec<float> x) {
    constexpr float lowest = -87.0f;
    constexpr float magic = 12582912.0f;  // adding 1.5 * 2^23 rounds to an integer
    const Vec<float> y = x < lowest ? Vec<float>{} + lowest : x;
    const Vec<float> n = (y * 1.44269504088896341f + magic) - magic;
    const Vec<float> r = (y - n * 0.693359375f) + n * 2.12194440e-4f;
    Vec<float> p = 1.9875691500e-4f * r + 1.3981999507e-3f;
    p = p * r + 8.3334519073e-3f;
    p = p * r + 4.1665795894e-2f;
    p = p * r + 1.6666665459e-1f;
    p = p * r + 5.0000001201e-1f;
    p = p * r * r + r + 1.0f;
    const Int8 power = (__builtin_convertvector(n, Int8) + 127) << 23;
    return x < lowest ? Vec<float>{} : p * std::bit_cast<Vec<float>>(power);
}

// The same for eight numbers in memory.
inline void exp_in_place(float* p) { store(p, exp_each(load(p))); }
inline void exp_in_place(double* p) {
    store_half<double>(p, exp_half(load_half<double>(p)));
    store_half<double>(p + LANES / 2, exp_half(load_half<double>(p + LANES / 2)));
}

// log for normal positive x in single precision (Cephes' polynomial), 2e-7 relative.
inline Vec<float> log_each(Vec<float> x) {
    const Int8 bits = std::bit_cast<Int8>(x);
    const Int8 exponent = (bits - 0x3f3504f3) >> 23;  // so that the mantissa is in [0.707, 1.414)
    const Vec<float> m = std::bit_cast<Vec<float>>(bits - (exponent << 23)) - 1.0f;
    const Vec<float> e = __builtin_convertvector(exponent, Vec<float>);
    const Vec<float> z = m * m;
    Vec<float> p = 7.0376836292e-2f * m - 1.1514610310e-1f;
    p = p * m + 1.1676998740e-1f;
    p = p * m - 1.2420140846e-1f;
    p = p * m + 1.4249322787e-1f;
    p = p * m - 1.6668057665e-1f;
    p = p * m + 2.0000714765e-1f;
    p = p * m - 2.4999993993e-1f;
    p = p * m + 3.3333331174e-1f;
    const Vec<float> y = m * z * p + e * -2.12194440e-4f - 0.5f * z;
    return (m + y) + e * 0.693359375f;
}

}  // namespace
