// The kernels over sparse rows. Compiled once per instruction set, with COEM_ISA naming it.
// One block of rows per call, serial; the caller releases the GIL and owns the threads.

#include "counts.hpp"

#include <cstddef>
#include <limits>
#include <type_traits>

#include "buffer.hpp"
#include "simd.hpp"

namespace coem::COEM_ISA {
namespace {

using std::int32_t;
using std::int64_t;

constexpr int AHEAD = 20;         // non-zeros between a prefetch and its use
constexpr int RUN = 8;            // products summed in T before they join a double
constexpr int MAX_UNITS = 8;      // vectors of LANES sums that stay in registers
constexpr double FORBIDDEN = -1e30;   // log posterior of a component that is not allowed
constexpr double HOPELESS = -1e300;  // the least log joint of one that is: overflow ends here
constexpr double NEVER = -std::numeric_limits<double>::infinity();

// Below this share of its row a responsibility is nothing in single precision.
template <class T> constexpr double NEGLIGIBLE = std::is_same_v<T, float> ? 1e-9 : 0.0;

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

// ---- scores: a row times a table --------------------------------------------------------

// Sums of N vectors of components, kept in registers over the words of the row. A run of words is
// summed in T and the runs in double, so that a long row costs no digits.
template <class T, int N>
void score_units(const Rows<T>& row, const T* table, int64_t k, double* out) {
    using Half = typename HalfOf<double>::type;
    const int32_t* const index = row.index;
    const T* const value = row.value;
    const int64_t length = row.length;
    const int64_t reach = row.reach - AHEAD;
    Half total[2 * N] = {};
    for (int64_t start = 0; start < length; start += RUN) {
        const int64_t stop = start + RUN < length ? start + RUN : length;
        Vec<T> sum[N] = {};
        for (int64_t p = start; p < stop; ++p) {
            if (p < reach) {
                const T* soon = table + int64_t{index[p + AHEAD]} * k;
                for (int u = 0; u < N; u += 64 / (LANES * int{sizeof(T)})) {
                    __builtin_prefetch(soon + u * LANES);
                }
            }
            const T* word = table + int64_t{index[p]} * k;
            const T x = value[p];
            for (int u = 0; u < N; ++u) sum[u] += x * load(word + u * LANES);
        }
        for (int u = 0; u < N; ++u) {
            T lanes[LANES];
            store(lanes, sum[u]);
            total[2 * u] += load_half<double>(lanes);
            total[2 * u + 1] += load_half<double>(lanes + LANES / 2);
        }
    }
    std::memcpy(out, total, sizeof total);
}

template <class T>
void score_row(const Rows<T>& row, const T* table, int64_t k, double* out) {
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
        score_row(row, table, k, sums);
        for (int64_t j = 0; j < k; ++j) out[i * k + j] = sums[j];
    }
}

// The largest of `n` numbers in whole vectors.
inline double largest(const double* numbers, int64_t n) {
    // By halves: compilers compare eight doubles one by one.
    auto left = load_half<double>(numbers);
    auto right = load_half<double>(numbers + LANES / 2);
    for (int64_t j = LANES; j < n; j += LANES) {
        const auto a = load_half<double>(numbers + j);
        const auto b = load_half<double>(numbers + j + LANES / 2);
        left = a > left ? a : left;
        right = b > right ? b : right;
    }
    left = right > left ? right : left;
    double top = left[0];
    for (int l = 1; l < LANES / 2; ++l) top = left[l] > top ? left[l] : top;
    return top;
}

template <class T>
void nearest(const Csr& X, const T* table, int64_t k, int64_t first, int64_t last,
             int32_t* labels, double* values) {
    Buffer<double> padded;
    double* sums = padded.of(k + LANES);
    Rows<T> row(X);
    for (int64_t i = first; i < last; ++i) {
        row.seek(i);
        score_row(row, table, k, sums);
        double top = sums[0];
        int32_t best = 0;
        for (int32_t j = 1; j < k; ++j) {
            const bool better = sums[j] > top;
            best = better ? j : best;
            top = better ? sums[j] : top;
        }
        labels[i] = best;
        values[i] = top;
    }
}

// ---- posterior: from log joint to responsibilities ----------------------------------------

// One row's log joint, padded to whole vectors with components that have no chance.
template <class T>
class Joint {
  public:
    explicit Joint(int64_t k) : k_(k), units_((k + LANES - 1) / LANES) {
        joint_ = doubles_.of(2 * units_ * LANES);
        weights_ = joint_ + units_ * LANES;
        resp_ = values_.of(units_ * LANES);
    }

    void set_weights(const double* log_weights) {
        for (int64_t j = 0; j < units_ * LANES; ++j) weights_[j] = j < k_ ? log_weights[j] : 0.0;
    }

    void set(const double* log_prob, const std::uint8_t* allowed) {
        for (int64_t j = 0; j < k_; ++j) joint_[j] = log_prob[j];
        for (int64_t j = k_; j < units_ * LANES; ++j) joint_[j] = NEVER;
        each([&](int64_t j) { store(joint_ + j, load(joint_ + j) + load(weights_ + j)); });
        for (int64_t j = 0; j < k_; ++j) joint_[j] = joint_[j] > HOPELESS ? joint_[j] : HOPELESS;
        if (allowed) {
            for (int64_t j = 0; j < k_; ++j) joint_[j] = allowed[j] ? joint_[j] : NEVER;
        }
        top = largest(joint_, k_);
    }

    // Set the responsibilities to exp(beta (joint - top)) and return their sum.
    double soften(double beta) {
        for (int64_t j = 0; j < units_ * LANES; ++j) {
            resp_[j] = static_cast<T>(beta * (joint_[j] - top));
        }
        Vec<T> part = {};
        each([&](int64_t j) {
            const Vec<T> r = exp_each(load(resp_ + j));
            store(resp_ + j, r);
            part += r;
        });
        return static_cast<double>(sum(part));
    }

    // beta = 0: every allowed component alike. Returns the mean log joint, which is the limit of
    // the tempered objective less the constant log(k) / beta.
    double level(T* resp) const {
        int64_t open = 0;
        double total = 0.0;
        for (int64_t j = 0; j < k_; ++j) {
            open += joint_[j] > NEVER;
            total += joint_[j] > NEVER ? joint_[j] : 0.0;
        }
        const T share = static_cast<T>(1.0 / static_cast<double>(open));
        for (int64_t j = 0; j < k_; ++j) resp[j] = joint_[j] > NEVER ? share : T{0};
        return total / static_cast<double>(open);
    }

    // All to the best component; of equals the first wins.
    void harden(T* resp) const {
        int64_t best = 0;
        while (best < k_ - 1 && joint_[best] != top) ++best;
        for (int64_t j = 0; j < k_; ++j) resp[j] = j == best ? T{1} : T{0};
    }

    void write_resp(double total, T* resp) const {
        const T factor = static_cast<T>(1.0 / total);
        const T least = static_cast<T>(NEGLIGIBLE<T> * total);
        for (int64_t j = 0; j < k_; ++j) resp[j] = resp_[j] < least ? T{0} : resp_[j] * factor;
    }

    void write_log_posterior(double evidence, double* out) const {
        for (int64_t j = 0; j < k_; ++j) {
            out[j] = joint_[j] > NEVER ? joint_[j] - evidence : FORBIDDEN;
        }
    }

    double top = 0.0;

  private:
    template <class Step> void each(const Step& step) const {
        for (int64_t u = 0; u < units_; ++u) step(u * LANES);
    }

    int64_t k_;
    int64_t units_;
    Buffer<double> doubles_;
    Buffer<T> values_;
    double* joint_;
    double* weights_;
    T* resp_;
};

template <class T>
void posterior_row(const PosteriorArgs& a, int64_t i, Joint<T>& joint, T* resp) {
    const int64_t k = a.n_components;
    double* log_prob = a.log_joint + i * k;
    joint.set(log_prob, a.allowed ? a.allowed + i * k : nullptr);
    double total = joint.soften(1.0);
    a.evidence[i] = joint.top + std::log(total);
    a.objective[i] = a.evidence[i];
    if (a.hard) {
        a.objective[i] = joint.top;
        joint.harden(resp);
    } else if (a.beta > 0.0) {
        if (a.beta != 1.0) {
            total = joint.soften(a.beta);
            a.objective[i] = joint.top + std::log(total) / a.beta;
        }
        joint.write_resp(total, resp);
    } else {
        a.objective[i] = joint.level(resp);
    }
    joint.write_log_posterior(a.evidence[i], log_prob);
}

template <class T> void posterior(const PosteriorArgs& a, T* resp) {
    Joint<T> joint(a.n_components);
    joint.set_weights(a.log_weights);
    for (int64_t i = 0; i < a.n_rows; ++i) posterior_row(a, i, joint, resp + i * a.n_components);
}

// ---- accumulate: rows times responsibilities ----------------------------------------------
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

// ---- fill_table: from sums to log probabilities or directions ------------------------------

template <class T>
void fill_table(const Sums& sums, int64_t lo, int64_t hi, const Fill& fill, T* table, int64_t k,
                int64_t first) {
    // Corners of eight words by eight components, turned over in the first cache.
    const Vec<T> smallest = Vec<T>{} + std::numeric_limits<T>::min();
    const Vec<T> lowest = Vec<T>{} + static_cast<T>(fill.floor);
    for (int64_t start = lo; start < hi; start += LANES) {
        const int64_t n = start + LANES < hi ? LANES : hi - start;
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
            for (int64_t w = 0; w < n; ++w) {
                T* to = table + (start + w) * k + first + left;
                if (width == LANES) {
                    for (int l = 0; l < LANES; ++l) to[l] = corner[l][w];
                } else {
                    for (int64_t l = 0; l < width; ++l) to[l] = corner[l][w];
                }
            }
        }
    }
}

template <class T> double table_sum(const T* table, int64_t lo, int64_t hi) {
    typename HalfOf<double>::type left = {};
    typename HalfOf<double>::type right = {};
    int64_t c = lo;
    for (; c + LANES <= hi; c += LANES) {
        left += load_half<double>(table + c);
        right += load_half<double>(table + c + LANES / 2);
    }
    left += right;
    double total = (left[0] + left[2]) + (left[1] + left[3]);
    for (; c < hi; ++c) total += static_cast<double>(table[c]);
    return total;
}

}  // namespace

template <class T> const Kernels<T>& table() {
    static const Kernels<T> all{scores<T>,          nearest<T>,   posterior<T>,
                                count_active<T>,    list_active<T>, accumulate_list<T>,
                                sum_lists<T>,       accumulate_tile<T>, fill_table<T>,
                                table_sum<T>};
    return all;
}
template const Kernels<float>& table<float>();
template const Kernels<double>& table<double>();

}  // namespace coem::COEM_ISA
