// Tables that list the words of each component, and the sums that they are made of.
// Included by one translation unit per instruction set: everything here is inline and static.
#pragma once

#include <algorithm>
#include <cstring>

#include "scores.hpp"
#include "sums.hpp"

namespace coem::COEM_ISA {
namespace {

constexpr int WORDS_AHEAD = 4;    // words between a prefetch of their cells and their use
constexpr int ENTRIES_AHEAD = 8;  // entries between a prefetch of their row's lists and their use
constexpr int SCAN = 16;          // of so many components a word has one, to look at all of them

// ---- rows times such a table ----------------------------------------------------------------

// Some words of a row, as `score_row` takes them.
template <class T>
struct Piece {
    const int32_t* index;
    const T* value;
    int64_t length;
    int64_t reach;
};

// The words of a row that are listed by component.
template <class T>
struct Listed {
    Buffer<int32_t> index_memory;
    Buffer<T> value_memory;
    int32_t* index = nullptr;
    T* value = nullptr;
    int64_t n = 0;
    double mass = 0.0;  // the sum of their counts

    void begin(int64_t room) {
        index = index_memory.of(room);
        value = value_memory.of(room);
        n = 0;
        mass = 0.0;
    }

    void add(int32_t word, T x) {
        index[n] = word;
        value[n++] = x;
        mass += static_cast<double>(x);
    }
};

template <class T>
void add_listed(const Listed<T>& words, const SparseTable<T>& table, double* out) {
    for (int64_t e = 0; e < words.n; ++e) {
        if (e + WORDS_AHEAD < words.n) {
            const int64_t soon = table.offsets[words.index[e + WORDS_AHEAD]];
            __builtin_prefetch(table.components + soon);
            __builtin_prefetch(table.cells + soon);
        }
        const auto x = static_cast<double>(words.value[e]);
        const int64_t end = table.offsets[words.index[e] + 1];
        for (int64_t p = table.offsets[words.index[e]]; p < end; ++p) {
            const int32_t j = table.components[p];
            out[j] += x * (static_cast<double>(table.cells[p]) - table.unseen[j]);
        }
    }
}

template <class T>
void sparse_scores(const Csr& X, const SparseTable<T>& table, double* out) {
    const int64_t k = table.k;
    Buffer<double> padded;
    double* sums = padded.of(k + LANES);
    Listed<T> common;
    Listed<T> listed;
    Rows<T> row(X);
    for (int64_t i = 0; i < row.size(); ++i, out += k) {
        row.seek(i);
        common.begin(row.length);
        listed.begin(row.length);
        for (int64_t p = 0; p < row.length; ++p) {
            const int32_t w = row.index[p];
            const int32_t place = table.places[w];
            if (place >= 0) {
                common.add(place, row.value[p]);
            } else {
                listed.add(w, row.value[p]);
                __builtin_prefetch(table.offsets + w);
            }
        }
        const Piece<T> piece{common.index, common.value, common.n, common.n};
        score_row<T>(piece, table.common, k, sums);
        for (int64_t j = 0; j < k; ++j) out[j] = sums[j] + listed.mass * table.unseen[j];
        add_listed(listed, table, out);
    }
}

// ---- sums, one word after the other ---------------------------------------------------------

void count_words(const Csr& X, const int64_t* offsets, int64_t* entries, int64_t* pairs) {
    Rows<float> row(X);
    for (int64_t i = 0; i < row.size(); ++i) {
        row.seek(i);
        const int64_t n = offsets[i + 1] - offsets[i];
        for (int64_t p = 0; p < row.length; ++p) {
            ++entries[row.index[p]];
            pairs[row.index[p]] += n;
        }
    }
}

// Bring the counts of each word together, in the order of the rows. `ends` are where the words
// begin, and move to where they end.
template <class V>
void turn(Rows<V> row, Words words, int64_t* ends, int32_t* rows, double* counts) {
    for (int64_t i = 0; i < row.size(); ++i) {
        row.seek(i);
        const int64_t begin = words.sorted ? row.find(words.begin) : 0;
        for (int64_t p = begin; p < row.length; ++p) {
            const int64_t w = row.index[p];
            if (w >= words.end && words.sorted) break;
            if (w < words.begin || w >= words.end) continue;
            const int64_t to = ends[w - words.begin]++;
            rows[to] = static_cast<int32_t>(i);
            counts[to] = static_cast<double>(row.value[p]);
        }
    }
}

// Sums of one word, and which components have one.
struct Sum {
    double* sums;      // (k), zero for those that are not listed
    int32_t* listed;   // (k)
    std::uint8_t* is;  // (k): whether it is listed
    int64_t k;
    int64_t n = 0;

    template <class T> void add(const RowLists<T>& resp, int32_t row, double x) {
        for (int64_t e = resp.offsets[row]; e < resp.offsets[row + 1]; ++e) {
            const int32_t j = resp.components[e];
            sums[j] += x * static_cast<double>(resp.values[e]);
            listed[n] = j;
            n += is[j] == 0;
            is[j] = 1;
        }
    }

    // Move all that is not zero, in the order of the components; returns how much that is.
    int64_t move(int32_t* components, double* values) {
        if (n * SCAN < k) {
            std::sort(listed, listed + n);
        } else {
            n = 0;
            for (int64_t j = 0; j < k; ++j) {
                listed[n] = static_cast<int32_t>(j);
                n += is[j];
            }
        }
        int64_t m = 0;
        for (int64_t e = 0; e < n; ++e) {
            const int32_t j = listed[e];
            components[m] = j;
            values[m] = sums[j];
            m += sums[j] != 0.0;
            sums[j] = 0.0;
            is[j] = 0;
        }
        n = 0;
        return m;
    }
};

template <class T>
int64_t sum_words(const Csr& X, const RowLists<T>& resp, Words words, const int64_t* entries,
                  int64_t k, int64_t* found, int32_t* components, double* sums) {
    const int64_t n_words = words.end - words.begin;
    Buffer<int64_t> ends_memory;
    int64_t* ends = ends_memory.of(n_words);
    int64_t total = 0;
    for (int64_t w = 0; w < n_words; ++w) {
        ends[w] = total;
        total += entries[w];
    }
    Buffer<int32_t> rows_memory;
    Buffer<double> counts_memory;
    int32_t* rows = rows_memory.of(total);
    double* counts = counts_memory.of(total);
    if (X.value == Number::f32) {
        turn(Rows<float>(X), words, ends, rows, counts);
    } else {
        turn(Rows<double>(X), words, ends, rows, counts);
    }
    Buffer<double> sums_memory;
    Buffer<int32_t> listed_memory;
    Buffer<std::uint8_t> is_memory;
    // One more place to list: what is listed already is written there, and not counted.
    Sum word{sums_memory.of(k), listed_memory.of(k + 1), is_memory.of(k), k};
    std::fill(word.sums, word.sums + k, 0.0);
    std::fill(word.is, word.is + k, std::uint8_t{0});
    int64_t n = 0;
    int64_t e = 0;
    for (int64_t w = 0; w < n_words; ++w) {
        for (; e < ends[w]; ++e) {
            if (e + ENTRIES_AHEAD < total) {
                const int64_t soon = resp.offsets[rows[e + ENTRIES_AHEAD]];
                __builtin_prefetch(resp.components + soon);
                __builtin_prefetch(resp.values + soon);
            }
            word.add(resp, rows[e], counts[e]);
        }
        found[w] = word.move(components + n, sums + n);
        n += found[w];
    }
    return n;
}

// ---- from sums to cells ---------------------------------------------------------------------

template <class T>
void fill_sparse(const WordSums& from, const Fill& fill, double least, int64_t lo, int64_t hi,
                 const SparseTable<T>& table) {
    Buffer<T> memory;
    T* unseen = memory.of(table.k);
    for (int64_t j = 0; j < table.k; ++j) unseen[j] = static_cast<T>(table.unseen[j]);
    for (int64_t w = lo; w < hi; ++w) {
        T* common = nullptr;
        if (table.places[w] >= 0) {
            common = table.common + table.places[w] * table.k;
            std::memcpy(common, unseen, static_cast<std::size_t>(table.k) * sizeof *common);
        }
        int64_t to = table.offsets[w];
        int64_t p = from.offsets[w];
        while (p < from.offsets[w + 1]) {
            int32_t components[LANES];
            double sums[LANES] = {};
            double scale[LANES] = {};
            int64_t m = 0;
            for (; p < from.offsets[w + 1] && m < LANES; ++p) {
                components[m] = from.components[p];
                sums[m] = from.sums[p];
                scale[m] = fill.scale[from.components[p]];
                m += from.sums[p] >= least;
            }
            const Vec<T> cells = cells_of<T>(sums, scale, fill);
            for (int64_t l = 0; l < m; ++l) {
                if (common != nullptr) {
                    common[components[l]] = cells[l];
                } else {
                    table.components[to] = components[l];
                    table.cells[to++] = cells[l];
                }
            }
        }
    }
}

}  // namespace
}  // namespace coem::COEM_ISA
