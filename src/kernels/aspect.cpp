// The aspect model's kernels. Compiled once per instruction set, with COEM_ISA naming it.
// Some rows or columns per call, serial; the caller releases the GIL and owns the threads.
//
// The expected count of (x, y, h) is w_h X_xh Y_yh n_xy / p(x, y) with p(x, y) the sum of
// w_h X_xh Y_yh over h. Summed over y it is w_h X_xh (sum_y Y_yh ratio_xy), so that a non-zero
// costs a dot product and a multiple of a table row; its k posteriors never exist.

#include "aspect.hpp"

#include <limits>
#include <type_traits>

#include "buffer.hpp"
#include "power.hpp"
#include "simd.hpp"

namespace coem::COEM_ISA {
namespace {

using std::int32_t;
using std::int64_t;

constexpr int RUN = 8;     // non-zeros at a time; their products are summed in T, runs in double
constexpr int AHEAD = 16;  // non-zeros between a prefetch and its use
constexpr double IMPOSSIBLE = -708.3964185322641;  // log of what a probability of zero counts as

constexpr int MAX_UNITS = 8;  // vectors of components that stay in registers

// Vectors of 32 bytes: compilers for AVX2 take eight doubles apart one by one.
template <class T> struct UnitOf { using type = Vec<float>; };
template <> struct UnitOf<double> { using type = HalfOf<double>::type; };
template <class T> using Unit = typename UnitOf<T>::type;
template <class T> constexpr int WIDE = 32 / int{sizeof(T)};

template <class T> inline Unit<T> take(const T* p) {
    Unit<T> v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

// Below this a probability is nothing in single precision: products of two such are denormal,
// and those are slow on some machines.
template <class T> constexpr double NEGLIGIBLE = std::is_same_v<T, float> ? 1e-18 : 1e-150;

// A smaller p(x, y) is computed again in double, so that no ratio overflows.
template <class T> constexpr T LEAST = std::is_same_v<T, float> ? T(1e-30) : T(1e-290);
template <class T> constexpr double MOST = std::is_same_v<T, float> ? 1e30 : 1e290;

// Call step(first cell, number of vectors as a type) for as many vectors as registers hold at a
// time, in even shares: 13 vectors go as 7 + 6 and not as 8 + 5.
template <class T, class Step> void by_units(int64_t width, const Step& step) {
    int64_t units = width / WIDE<T>;
    for (int64_t first = 0; units > 0;) {
        const int64_t passes = (units + MAX_UNITS - 1) / MAX_UNITS;
        const int64_t share = (units + passes - 1) / passes;
        switch (share) {
            case 1: step(first, std::integral_constant<int, 1>{}); break;
            case 2: step(first, std::integral_constant<int, 2>{}); break;
            case 3: step(first, std::integral_constant<int, 3>{}); break;
            case 4: step(first, std::integral_constant<int, 4>{}); break;
            case 5: step(first, std::integral_constant<int, 5>{}); break;
            case 6: step(first, std::integral_constant<int, 6>{}); break;
            case 7: step(first, std::integral_constant<int, 7>{}); break;
            default: step(first, std::integral_constant<int, 8>{}); break;
        }
        first += share * WIDE<T>;
        units -= share;
    }
}

// sums (WIDE) += values
template <class T> inline void widen(const T* values, double* sums) {
    for (int h = 0; h < WIDE<T>; h += LANES / 2) {
        const auto half = take(sums + h) + load_half<double>(values + h);
        std::memcpy(sums + h, &half, sizeof half);
    }
}

template <class T, int N> inline void flush(const Unit<T>* part, double* sums) {
    for (int u = 0; u < N; ++u) {
        T values[WIDE<T>];
        std::memcpy(values, &part[u], sizeof values);
        widen(values, sums + u * WIDE<T>);
    }
}

// The next few non-zeros of a line, filled up to a whole run by non-zeros of count nothing.
template <class T>
class Run {
  public:
    Run(const Lines<T>& lines, const Factors<T>& f, int64_t last)
        : lines_(lines), f_(f), last_(last) {}

    void seek(int64_t start, int64_t stop) {
        start_ = start;
        n = stop - start < RUN ? static_cast<int>(stop - start) : RUN;
        for (int p = 0; p < n; ++p) {
            cells[p] = f_.other + int64_t{lines_.indices[start + p]} * f_.width;
        }
        const int64_t end = start + AHEAD + n < last_ ? start + AHEAD + n : last_;
        for (int64_t p = start + AHEAD; p < end; ++p) {
            const T* row = f_.other + int64_t{lines_.indices[p]} * f_.width;
            for (int64_t c = 0; c < f_.width; c += 64 / int{sizeof(T)}) __builtin_prefetch(row + c);
        }
    }

    void take_counts() {
        for (int p = 0; p < n; ++p) value[p] = lines_.values[start_ + p];
        for (int p = 0; p < RUN; ++p) {
            if (p < n) continue;
            value[p] = T{0};
            cells[p] = cells[0];
        }
    }

    // mass (RUN) = p(x, y), for the factors of a row
    void dots(const T* row) {
        Unit<T> sums[RUN] = {};
        for (int64_t c = 0; c < f_.width; c += WIDE<T>) {
            const Unit<T> factor = take(row + c);
            for (int p = 0; p < RUN; ++p) sums[p] += factor * take(cells[p] + c);
        }
        if constexpr (std::is_same_v<T, float>) {
            store(mass, sum_each(sums));
        } else {
            for (int p = 0; p < RUN; ++p) {
                mass[p] = (sums[p][0] + sums[p][2]) + (sums[p][1] + sums[p][3]);
            }
        }
    }

    // ratio (RUN) = count / p(x, y), at most MOST; evidence (RUN) += count log p(x, y)
    void divide(const T* row, double* evidence) {
        T smallest = mass[0];
        for (int p = 1; p < RUN; ++p) smallest = mass[p] < smallest ? mass[p] : smallest;
        if (!(smallest >= LEAST<T>)) return divide_with_care(row, evidence);
        T logs[RUN];
        store(logs, log_each(load(mass)));
        for (int p = 0; p < RUN; ++p) {
            ratio[p] = value[p] / mass[p];
            logs[p] *= value[p];
        }
        for (int p = 0; p < RUN; p += WIDE<T>) widen(logs + p, evidence + p);
    }

    // sums (width) += ratio times cells
    void add_to(double* sums) const {
        by_units<T>(f_.width, [&](int64_t first, auto units) {
            constexpr int N = decltype(units)::value;
            Unit<T> part[N] = {};
            const auto add = [&](int p) {
                const T* cell = cells[p] + first;
                for (int u = 0; u < N; ++u) part[u] += ratio[p] * take(cell + u * WIDE<T>);
            };
            if (n == RUN) {
                for (int p = 0; p < RUN; ++p) add(p);
            } else {
                for (int p = 0; p < n; ++p) add(p);
            }
            flush<T, N>(part, sums + first);
        });
    }

    int n = 0;
    T ratio[RUN];

  private:
    __attribute__((noinline)) void divide_with_care(const T* row, double* evidence) {
        for (int p = 0; p < RUN; ++p) {
            double exact = 0.0;
            for (int64_t c = 0; c < f_.width; ++c) {
                exact += static_cast<double>(row[c]) * static_cast<double>(cells[p][c]);
            }
            const bool possible = exact >= std::numeric_limits<double>::min();
            const double count = static_cast<double>(value[p]);
            const double wanted = possible ? count / exact : 0.0;
            ratio[p] = static_cast<T>(wanted < MOST<T> ? wanted : MOST<T>);
            evidence[p] += count * (possible ? std::log(exact) : IMPOSSIBLE);
        }
    }

    const Lines<T>& lines_;
    const Factors<T>& f_;
    int64_t last_;
    int64_t start_ = 0;
    const T* cells[RUN];
    T value[RUN];
    T mass[RUN];
};

template <class T>
void weigh(const Factors<T>& f, int64_t i, T* row) {
    for (int64_t c = 0; c < f.width; ++c) row[c] = f.weights[c] * f.own[i * f.width + c];
}

template <class T>
double rows(const Lines<T>& lines, const Factors<T>& f, int64_t lo, int64_t hi, T* ratios,
            T* sums, double* totals) {
    Buffer<T> values;
    Buffer<double> doubles;
    T* row = values.of(f.width);
    double* total = doubles.of(f.width);
    Run<T> run(lines, f, lines.indptr[hi]);
    double evidence[RUN] = {};
    for (int64_t i = lo; i < hi; ++i) {
        weigh(f, i, row);
        for (int64_t c = 0; c < f.width; ++c) total[c] = 0.0;
        const int64_t stop = lines.indptr[i + 1];
        for (int64_t start = lines.indptr[i]; start < stop; start += RUN) {
            run.seek(start, stop);
            run.take_counts();
            run.dots(row);
            run.divide(row, evidence);
            for (int p = 0; p < run.n; ++p) ratios[start + p] = run.ratio[p];
            run.add_to(total);
        }
        for (int64_t c = 0; c < f.width; ++c) {
            const double expected = total[c] * static_cast<double>(row[c]);
            totals[c] += expected;
            sums[i * f.width + c] = static_cast<T>(expected);
        }
    }
    return sum(load(evidence));
}

template <class T> T share(double value) {
    return value < NEGLIGIBLE<T> ? T{0} : static_cast<T>(value);
}

// sums (width) = rows of the other table times the ratios, over the non-zeros of a column
template <class T>
void add_column(const Lines<T>& lines, const Factors<T>& f, int64_t i, int64_t last,
                double* sums) {
    const int64_t stop = lines.indptr[i + 1];
    for (int64_t c = 0; c < f.width; ++c) sums[c] = 0.0;
    by_units<T>(f.width, [&](int64_t first, auto units) {
        constexpr int N = decltype(units)::value;
        const T* table = f.other + first;
        for (int64_t p = lines.indptr[i]; p < stop;) {
            const int64_t end = p + RUN < stop ? p + RUN : stop;
            Unit<T> part[N] = {};
            for (; p < end; ++p) {
                if (p + AHEAD < last) {
                    const T* soon = table + int64_t{lines.indices[p + AHEAD]} * f.width;
                    for (int u = 0; u < N; u += 2) __builtin_prefetch(soon + u * WIDE<T>);
                    __builtin_prefetch(lines.values + lines.places[p + AHEAD]);
                }
                const T ratio = lines.values[lines.places[p]];
                const T* cell = table + int64_t{lines.indices[p]} * f.width;
                for (int u = 0; u < N; ++u) part[u] += ratio * take(cell + u * WIDE<T>);
            }
            flush<T, N>(part, sums + first);
        }
    });
}

template <class T>
void columns(const Lines<T>& lines, const Factors<T>& f, int64_t lo, int64_t hi,
             const Affine& affine, T* out) {
    Buffer<double> doubles;
    double* total = doubles.of(f.width);
    const int64_t last = lines.indptr[hi];
    for (int64_t i = lo; i < hi; ++i) {
        add_column(lines, f, i, last, total);
        const T* own = f.own + i * f.width;
        T* to = out + i * f.width;
        for (int64_t c = 0; c < f.width; ++c) {
            const double expected = total[c] * static_cast<double>(f.weights[c] * own[c]);
            to[c] = share<T>(expected * affine.scale[c] + affine.shift[c]);
        }
    }
}

template <class T>
void rescale(const T* table, int64_t width, int64_t lo, int64_t hi, const Affine& affine, T* out) {
    for (int64_t i = lo; i < hi; ++i) {
        for (int64_t c = 0; c < width; ++c) {
            const auto value = static_cast<double>(table[i * width + c]);
            out[i * width + c] = share<T>(value * affine.scale[c] + affine.shift[c]);
        }
    }
}

inline void raise(const float* table, int64_t lo, int64_t hi, double beta, float* out) {
    const Power power(beta);
    for (int64_t c = lo; c < hi; c += LANES) store(out + c, power(load(table + c)));
}

inline void raise(const double* table, int64_t lo, int64_t hi, double beta, double* out) {
    for (int64_t c = lo; c < hi; ++c) out[c] = table[c] > 0.0 ? std::pow(table[c], beta) : 0.0;
}

template <class T> void power(const T* table, int64_t lo, int64_t hi, double beta, T* out) {
    raise(table, lo, hi, beta, out);
}

template <class T>
double evidence(const Lines<T>& lines, const Factors<T>& f, int64_t lo, int64_t hi) {
    Buffer<T> values;
    T* row = values.of(f.width);
    Run<T> run(lines, f, lines.indptr[hi]);
    double total[RUN] = {};
    for (int64_t i = lo; i < hi; ++i) {
        weigh(f, i, row);
        const int64_t stop = lines.indptr[i + 1];
        for (int64_t start = lines.indptr[i]; start < stop; start += RUN) {
            run.seek(start, stop);
            run.take_counts();
            run.dots(row);
            run.divide(row, total);
        }
    }
    return sum(load(total));
}

// One turn of EM for the shares of one row, the other table being fixed. Returns how far the
// shares moved, or 0 if the model holds all of the row impossible.
template <class T>
double fold_once(Run<T>& run, int64_t begin, int64_t stop, int64_t width, double* shares, T* row,
                 double* total) {
    for (int64_t c = 0; c < width; ++c) {
        row[c] = static_cast<T>(shares[c]);
        total[c] = 0.0;
    }
    double unused[RUN] = {};
    for (int64_t start = begin; start < stop; start += RUN) {
        run.seek(start, stop);
        run.take_counts();
        run.dots(row);
        run.divide(row, unused);
        run.add_to(total);
    }
    double all = 0.0;
    for (int64_t c = 0; c < width; ++c) all += total[c] *= static_cast<double>(row[c]);
    if (!(all > 0.0)) return 0.0;
    double moved = 0.0;
    for (int64_t c = 0; c < width; ++c) {
        const double next = total[c] / all;
        const double step = std::fabs(next - shares[c]);
        moved = step > moved ? step : moved;
        shares[c] = next;
    }
    return moved;
}

template <class T>
void fold_in(const Lines<T>& lines, const Factors<T>& f, int64_t lo, int64_t hi, Folding rule,
             double* shares) {
    Buffer<T> values;
    Buffer<double> doubles;
    T* row = values.of(f.width);
    double* total = doubles.of(f.width);
    for (int64_t i = lo; i < hi; ++i) {
        double* own = shares + i * f.width;
        for (int64_t c = 0; c < f.width; ++c) own[c] = static_cast<double>(f.weights[c]);
        const int64_t stop = lines.indptr[i + 1];
        Run<T> run(lines, f, stop);
        for (int64_t t = 0; t < rule.max_iter; ++t) {
            const double moved =
                fold_once(run, lines.indptr[i], stop, f.width, own, row, total);
            if (moved <= rule.tol) break;
        }
    }
}

template <class T>
double log_sum(const T* table, int64_t width, int64_t k, int64_t lo, int64_t hi) {
    const Vec<T> smallest = Vec<T>{} + std::numeric_limits<T>::min();
    double total = 0.0;
    for (int64_t i = lo; i < hi; ++i) {
        for (int64_t c = 0; c < k; c += LANES) {
            const Vec<T> value = load(table + i * width + c);
            T logs[LANES];
            store(logs, log_each(value < smallest ? smallest : value));
            for (int64_t l = 0; l < LANES && c + l < k; ++l) total += static_cast<double>(logs[l]);
        }
    }
    return total;
}

}  // namespace

template <class T> const AspectKernels<T>& aspect_table() {
    static const AspectKernels<T> all{rows<T>,     columns<T>, rescale<T>, power<T>,
                                      evidence<T>, fold_in<T>, log_sum<T>};
    return all;
}
template const AspectKernels<float>& aspect_table<float>();
template const AspectKernels<double>& aspect_table<double>();

}  // namespace coem::COEM_ISA
