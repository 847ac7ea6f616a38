// Rows times responsibilities, and what tables become of them.
// Included by one translation unit per instruction set: everything here is inline and static.
#pragma once

#include <cstddef>
#include <cstring>
#include <limits>

#include "rows.hpp"
#include "simd.hpp"

namespace coem::COEM_ISA {
namespace {

// The order of the sums depends on the data alone, never on the threads.

// Call visit(row, component, responsibility) for all above zero, skipping vectors without any.
template <class T, class Visit>
void each_active(const T* resp, int64_t n, int64_t k, const Visit& visit) {
    for (int64_t i = 0; i < n; ++i, resp += k) {
        for (int64_t start = 0; start < k; start += LANES) {
            const int64_t stop = start + LANES < k ? start + LANES : k;
            int any = 0;
            if (stop - start == LANES) {
                for (int l = 0; l < LANES; ++l) any |= resp[start + l] > 0;
            } else {
                any = 1;
            }
            if (!any) continue;
            for (int64_t j = start; j < stop; ++j) {
                if (resp[j] > 0) visit(i, j, resp[j]);
            }
        }
    }
}

template <class T>
void count_active(const T* resp, int64_t n, int64_t k, int64_t* counts) {
    each_active(resp, n, k, [&](int64_t, int64_t j, T) { ++counts[j]; });
}

template <class T>
void list_active(const T* resp, int64_t n, int64_t k, int64_t first, int64_t* places,
                 const Lists<T>& lists) {
    each_active(resp, n, k, [&](int64_t i, int64_t j, T r) {
        lists.rows[places[j]] = static_cast<int32_t>(first + i);
        lists.weights[places[j]++] = r;
    });
}

// One component: its sums stay in the cache while its rows go by.
template <class V, class T>
void add_rows(Rows<V> row, const Lists<T>& lists, int64_t lo, int64_t hi,
              double* __restrict sums) {
    for (int64_t e = lo; e < hi; ++e) {
        if (e + 1 < hi) row.prefetch(lists.rows[e + 1]);
        row.seek(lists.rows[e]);
        const auto r = static_cast<double>(lists.weights[e]);
        for (int64_t p = 0; p < row.length; ++p) {
            sums[row.index[p]] += static_cast<double>(row.value[p]) * r;
        }
    }
}

template <class T>
void accumulate_list(const Csr& X, const Lists<T>& lists, int64_t lo, int64_t hi, double* sums) {
    if (X.value == Number::f32) {
        add_rows(Rows<float>(X), lists, lo, hi, sums);
    } else {
        add_rows(Rows<double>(X), lists, lo, hi, sums);
    }
}

double square_sum(const double* x, int64_t n) {
    typename HalfOf<double>::type part[4] = {};
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) {
        for (int u = 0; u < 4; ++u) {
            const auto four = load_half<double>(x + i + 4 * u);
            part[u] += four * four;
        }
    }
    const auto all = (part[0] + part[1]) + (part[2] + part[3]);
    double total = (all[0] + all[1]) + (all[2] + all[3]);
    for (; i < n; ++i) total += x[i] * x[i];
    return total;
}

template <class T>
void sum_lists(const Csr& X, const Lists<T>& lists, const int64_t* offsets,
               const std::uint8_t* fresh, int64_t first, int64_t last, int64_t n_words,
               double* sums, double* squares) {
    for (int64_t j = first; j < last; ++j) {
        double* mine = sums + j * n_words;
        if (fresh[j]) std::memset(mine, 0, static_cast<std::size_t>(n_words) * sizeof *mine);
        accumulate_list(X, lists, offsets[j], offsets[j + 1], mine);
        squares[j] = square_sum(mine, n_words);  // while they are in the cache
    }
}

// The part of a row that is in some words, and where it comes from and goes to.
template <class V> struct Move {
    Rows<V> row;
    int64_t begin = 0;
    int64_t end = 0;
    int32_t from = -1;
    int32_t to = -1;

    explicit Move(const Csr& X) : row(X) {}

    void seek(const Moves& moves, int64_t e, Words words) {
        row.seek(moves.rows[e]);
        begin = row.find(words.begin);
        end = row.find(words.end);
        from = moves.from[e];
        to = moves.to[e];
    }

    template <class T> void prefetch(int64_t place, const Followed<T>& f) const {
        const int64_t w = row.index[begin + place];
        if (from >= 0) __builtin_prefetch(f.sums + from * f.n_words + w, 1);
        if (to >= 0) __builtin_prefetch(f.sums + to * f.n_words + w, 1);
        __builtin_prefetch(f.table + w * f.k + (to >= 0 ? to : from), 1);
    }
};

// Squares grow by (a - b)(a + b), so that a length costs what has changed.
template <class T> inline double shift(int64_t j, int64_t w, double by, const Followed<T>& f) {
    double& sum = f.sums[j * f.n_words + w];
    const double before = sum;
    const double after = before + by;
    sum = after;
    f.table[w * f.k + j] = static_cast<T>(after);
    return (after - before) * (after + before);
}

template <class V, class T>
void move_each(const Csr& X, const Moves& moves, Words words, const Followed<T>& f) {
    Move<V> both[] = {Move<V>(X), Move<V>(X)};
    if (moves.n > 0) both[0].seek(moves, 0, words);
    for (int64_t e = 0; e < moves.n; ++e) {
        const Move<V>& current = both[e % 2];
        Move<V>& next = both[(e + 1) % 2];
        if (e + 2 < moves.n) current.row.prefetch(moves.rows[e + 2]);
        if (e + 1 < moves.n) next.seek(moves, e + 1, words);
        const int64_t n_next = e + 1 < moves.n ? next.end - next.begin : 0;
        double lost = 0.0;
        double won = 0.0;
        for (int64_t p = current.begin; p < current.end; ++p) {
            // Cells of the next row are asked for while this one is moved.
            if (p - current.begin < n_next) next.prefetch(p - current.begin, f);
            const int64_t w = current.row.index[p];
            const double x = static_cast<double>(current.row.value[p]) * moves.weights[e];
            if (current.from >= 0) lost += shift(current.from, w, -x, f);
            if (current.to >= 0) won += shift(current.to, w, x, f);
        }
        if (current.from >= 0) f.squares[current.from] += lost;
        if (current.to >= 0) f.squares[current.to] += won;
    }
}

template <class T>
void move_rows(const Csr& X, const Moves& moves, Words words, const Followed<T>& f) {
    if (X.value == Number::f32) {
        move_each<float>(X, moves, words, f);
    } else {
        move_each<double>(X, moves, words, f);
    }
}

// Eight components at a time, side by side in `tile` (V, 8): a cache line a word. Threads share
// the components and divide the words.
template <class T>
void accumulate_tile(const Csr& X, const T* resp, int64_t k, int64_t lo, int64_t hi, Words words,
                     double* tile) {
    for (int64_t c = words.begin * LANES; c < words.end * LANES; ++c) tile[c] = 0.0;
    Rows<double> row(X);
    for (int64_t i = 0; i < row.size(); ++i, resp += k) {
        double r[LANES] = {};
        for (int64_t j = lo; j < hi; ++j) r[j - lo] = static_cast<double>(resp[j]);
        row.seek(i);
        int64_t begin = 0;
        int64_t end = row.length;
        if (words.sorted) {
            begin = row.find(words.begin);
            end = row.find(words.end);
        }
        for (int64_t p = begin; p < end; ++p) {
            if (p + AHEAD < end) {
                __builtin_prefetch(tile + int64_t{row.index[p + AHEAD]} * LANES, 1);
            }
            const int64_t w = row.index[p];
            if (!words.sorted && (w < words.begin || w >= words.end)) continue;
            double* word = tile + w * LANES;
            const double x = row.value[p];
            for (int l = 0; l < LANES; ++l) word[l] += x * r[l];
        }
    }
}

// ---- from sums to log probabilities or directions ------------------------------------------

template <class T>
double fill_table(const Sums& sums, int64_t lo, int64_t hi, const Fill& fill, T* table, int64_t k,
                  int64_t first) {
    Half<double> total = {};
    // Corners of eight words by eight components, turned over in the first cache.
    const Vec<T> smallest = Vec<T>{} + std::numeric_limits<T>::min();
    const Vec<T> lowest = Vec<T>{} + static_cast<T>(fill.floor);
    for (int64_t start = lo; start < hi; start += LANES) {
        const int64_t n = start + LANES < hi ? LANES : hi - start;
        Half<double> some = {};  // sums of sums: equal cells would all be rounded the same way
        for (int64_t left = 0; left < sums.m; left += LANES) {
            const int64_t width = left + LANES < sums.m ? LANES : sums.m - left;
            T corner[LANES][LANES] = {};
            for (int64_t j = 0; j < width; ++j) {
                const double* source =
                    sums.data + (left + j) * sums.component_step + start * sums.word_step;
                // Normalised in double: an error here would be that of every word of a row.
                for (int64_t w = 0; w < n; ++w) {
                    corner[j][w] = static_cast<T>((source[w * sums.word_step] + fill.alpha) *
                                                  fill.scale[left + j]);
                }
            }
            for (int64_t j = 0; fill.logs && j < width; ++j) {
                const Vec<T> share = load(corner[j]);
                const Vec<T> usable = share < smallest ? smallest : share;
                store(corner[j], share < smallest ? lowest : log_each(usable));
            }
            for (int64_t j = 0; j < width; ++j) {
                for (int64_t w = n; w < LANES; ++w) corner[j][w] = T{0};
                some += load_half<double>(corner[j]) + load_half<double>(corner[j] + HALF);
            }
            for (int64_t w = 0; w < n; ++w) {
                T* to = table + (start + w) * k + first + left;
                if (width == LANES) {
                    for (int l = 0; l < LANES; ++l) to[l] = corner[l][w];
                } else {
                    for (int64_t l = 0; l < width; ++l) to[l] = corner[l][w];
                }
            }
        }
        total += some;
    }
    return (total[0] + total[2]) + (total[1] + total[3]);
}

// ---- the same for components with few words ------------------------------------------------

template <class V, class T>
int64_t touch_rows(Rows<V> row, const Lists<T>& lists, int64_t lo, int64_t hi,
                   double* __restrict sums, int32_t* __restrict words) {
    int64_t n = 0;
    for (int64_t e = lo; e < hi; ++e) {
        if (e + 1 < hi) row.prefetch(lists.rows[e + 1]);
        row.seek(lists.rows[e]);
        const auto r = static_cast<double>(lists.weights[e]);
        for (int64_t p = 0; p < row.length; ++p) {
            const int32_t w = row.index[p];
            words[n] = w;
            n += sums[w] == 0.0;  // twice, if a product is zero: the second finds a zero again
            sums[w] += static_cast<double>(row.value[p]) * r;
        }
    }
    return n;
}

template <class T>
int64_t touch(const Csr& X, const Lists<T>& lists, int64_t lo, int64_t hi, double* sums,
              int32_t* words) {
    if (X.value == Number::f32) return touch_rows(Rows<float>(X), lists, lo, hi, sums, words);
    return touch_rows(Rows<double>(X), lists, lo, hi, sums, words);
}

void collect(double* sums, int64_t n, const Pairs& pairs) {
    for (int64_t e = 0; e < n; ++e) {
        double& sum = sums[pairs.words[e]];
        pairs.sums[e] = sum;
        sum = 0.0;
    }
}

// Eight cells of a table, by the same steps as in `fill_table`.
template <class T> Vec<T> cells_of(const double* sums, const double* scale, const Fill& fill) {
    T cells[LANES];
    for (int l = 0; l < LANES; ++l) cells[l] = static_cast<T>((sums[l] + fill.alpha) * scale[l]);
    const Vec<T> smallest = Vec<T>{} + std::numeric_limits<T>::min();
    const Vec<T> share = load(cells);
    const Vec<T> usable = share < smallest ? smallest : share;
    return share < smallest ? Vec<T>{} + static_cast<T>(fill.floor) : log_each(usable);
}

template <class T>
void fill_nothing(const Fill& fill, int64_t lo, int64_t hi, T* table, int64_t k) {
    const double zero[LANES] = {};
    Buffer<T> memory;
    T* row = memory.of(k + LANES);
    for (int64_t j = 0; j < k; j += LANES) {
        double scale[LANES] = {};
        for (int64_t l = 0; l < LANES && j + l < k; ++l) scale[l] = fill.scale[j + l];
        store(row + j, cells_of<T>(zero, scale, fill));
    }
    const auto size = static_cast<std::size_t>(k) * sizeof *row;
    for (int64_t w = lo; w < hi; ++w) std::memcpy(table + w * k, row, size);
}

template <class T>
double fill_pairs(const Fill& fill, const Pairs& pairs, int64_t n, T* table, int64_t k, int64_t j) {
    double more = 0.0;
    double scale[LANES];
    for (int l = 0; l < LANES; ++l) scale[l] = fill.scale[j];
    for (int64_t e = 0; e < n; e += LANES) {
        const int64_t m = e + LANES < n ? LANES : n - e;
        for (int64_t a = e + AHEAD; a < e + AHEAD + LANES && a < n; ++a) {
            __builtin_prefetch(table + int64_t{pairs.words[a]} * k + j, 1);
        }
        double sums[LANES] = {};
        for (int64_t l = 0; l < m; ++l) sums[l] = pairs.sums[e + l];
        const Vec<T> cells = cells_of<T>(sums, scale, fill);
        for (int64_t l = 0; l < m; ++l) {
            // A word that is there twice has nothing the second time.
            if (sums[l] == 0.0) continue;
            T& cell = table[int64_t{pairs.words[e + l]} * k + j];
            more += static_cast<double>(cells[l]) - static_cast<double>(cell);
            cell = cells[l];
        }
    }
    return more;
}

template <class T> double table_sum(const T* table, int64_t lo, int64_t hi) {
    constexpr int CHAINS = 8;  // additions that do not wait for each other
    Half<double> part[CHAINS] = {};
    int64_t c = lo;
    for (; c + CHAINS * HALF <= hi; c += CHAINS * HALF) {
        for (int u = 0; u < CHAINS; ++u) part[u] += load_half<double>(table + c + u * HALF);
    }
    for (int step = CHAINS / 2; step > 0; step /= 2) {
        for (int u = 0; u < step; ++u) part[u] += part[u + step];
    }
    double total = (part[0][0] + part[0][2]) + (part[0][1] + part[0][3]);
    for (; c < hi; ++c) total += static_cast<double>(table[c]);
    return total;
}

}  // namespace
}  // namespace coem::COEM_ISA
