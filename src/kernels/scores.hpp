// A row times a table.
// Included by one translation unit per instruction set: everything here is inline and static.
#pragma once

#include <cstring>

#include "rows.hpp"
#include "simd.hpp"

namespace coem::COEM_ISA {
namespace {

constexpr int RUN = 8;        // products summed in T before they join a double
constexpr int MAX_UNITS = 8;  // vectors of LANES sums that stay in registers


// What is added at a time. Compilers take a vector of eight doubles apart one by one.
template <class T> struct PartOf { using type = Vec<T>; };
template <> struct PartOf<double> { using type = Half<double>; };
template <class T> using Part = typename PartOf<T>::type;

inline void add_part(const Half<double>& part, Half<double>* total) { *total += part; }

inline void add_part(const Vec<float>& part, Half<double>* total) {
    float lanes[LANES];
    store(lanes, part);
    total[0] += load_half<double>(lanes);
    total[1] += load_half<double>(lanes + LANES / 2);
}

// Sums of N vectors of components, kept in registers over the words of the row. A run of words is
// summed in T and the runs in double, so that a long row costs no digits.
template <class T, int N, class Row = Rows<T>>
void score_units(const Row& row, const T* table, int64_t k, double* out) {
    constexpr int WIDE = sizeof(Part<T>) / sizeof(T);
    constexpr int PARTS = N * LANES / WIDE;
    const int32_t* const index = row.index;
    const T* const value = row.value;
    const int64_t length = row.length;
    const int64_t reach = row.reach - AHEAD;
    Half<double> total[2 * N] = {};
    for (int64_t start = 0; start < length; start += RUN) {
        const int64_t stop = start + RUN < length ? start + RUN : length;
        Part<T> sum[PARTS] = {};
        for (int64_t p = start; p < stop; ++p) {
            if (p < reach) {
                const T* soon = table + int64_t{index[p + AHEAD]} * k;
                for (int u = 0; u < N; u += 64 / (LANES * int{sizeof(T)})) {
                    __builtin_prefetch(soon + u * LANES);
                }
            }
            const T* word = table + int64_t{index[p]} * k;
            const T x = value[p];
            for (int u = 0; u < PARTS; ++u) {
                Part<T> v;
                std::memcpy(&v, word + u * WIDE, sizeof v);
                sum[u] += x * v;
            }
        }
        for (int u = 0; u < PARTS; ++u) add_part(sum[u], total + u * 2 * N / PARTS);
    }
    std::memcpy(out, total, sizeof total);
}

template <class T, class Row = Rows<T>>
void score_row(const Row& row, const T* table, int64_t k, double* out) {
    int64_t units = (k + LANES - 1) / LANES;
    while (units > 0) {
        // Even shares, so that 13 vectors go as 7 + 6 and not as 8 + 5.
        const int64_t passes = (units + MAX_UNITS - 1) / MAX_UNITS;
        const int64_t take = (units + passes - 1) / passes;
        switch (take) {
            case 1: score_units<T, 1>(row, table, k, out); break;
            case 2: score_units<T, 2>(row, table, k, out); break;
            case 3: score_units<T, 3>(row, table, k, out); break;
            case 4: score_units<T, 4>(row, table, k, out); break;
            case 5: score_units<T, 5>(row, table, k, out); break;
            case 6: score_units<T, 6>(row, table, k, out); break;
            case 7: score_units<T, 7>(row, table, k, out); break;
            default: score_units<T, 8>(row, table, k, out); break;
        }
        table += take * LANES;
        out += take * LANES;
        units -= take;
    }
}

template <class T>
void scores(const Csr& X, const T* table, int64_t k, double* out) {
    Buffer<double> padded;
    double* sums = padded.of(k + LANES);
    Rows<T> row(X);
    for (int64_t i = 0; i < row.size(); ++i) {
        row.seek(i);
        double* to = out + i * k;
        score_row(row, table, k, k % LANES == 0 ? to : sums);
        for (int64_t j = 0; j < k && k % LANES != 0; ++j) to[j] = sums[j];
    }
}

template <class T>
void nearest(const Csr& X, const T* table, const double* scale, int64_t k, int64_t first,
             int64_t last, int32_t* labels, double* values) {
    Buffer<double> padded;
    double* sums = padded.of(k + LANES);
    Rows<T> row(X);
    for (int64_t i = first; i < last; ++i) {
        row.seek(i);
        score_row(row, table, k, sums);
        double top = sums[0] * scale[0];
        int32_t best = 0;
        for (int32_t j = 1; j < k; ++j) {
            const double value = sums[j] * scale[j];
            const bool better = value > top;
            best = better ? j : best;
            top = better ? value : top;
        }
        labels[i] = best;
        values[i] = top;
    }
}

}  // namespace
}  // namespace coem::COEM_ISA
