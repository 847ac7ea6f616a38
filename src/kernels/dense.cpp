// The kernels of dense rows. Compiled once per instruction set, with COEM_ISA naming it.

#include "dense.hpp"

#include "buffer.hpp"
#include "posterior.hpp"
#include "simd.hpp"

namespace coem::COEM_ISA {
namespace {

using std::int32_t;
using std::int64_t;

// As wide as a register: compilers keep wider vectors in memory.
#if defined(__AVX512F__)
constexpr int WIDTH = 8;
#else
constexpr int WIDTH = 4;
#endif
typedef double Wide __attribute__((vector_size(WIDTH * 8)));
constexpr int PARTS = LANES / WIDTH;
// Rows whose sums for eight means stay in registers: enough of them that no sum waits for the last.
constexpr int TILE = 12 / PARTS;
constexpr int64_t GROUP = 48;  // rows, in whole tiles, that stay in the cache while a panel goes by

inline Wide wide(const double* p) {
    Wide v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

// Set `to` (d) to a row less the centre, and return half its squared length.
double centred(const double* row, const double* centre, int64_t d, double* to) {
    Half<double> part = {};
    int64_t p = 0;
    for (; p + HALF <= d; p += HALF) {
        const Half<double> v = load_half<double>(row + p) - load_half<double>(centre + p);
        store_half<double>(to + p, v);
        part += v * v;
    }
    double total = (part[0] + part[2]) + (part[1] + part[3]);
    for (; p < d; ++p) {
        to[p] = row[p] - centre[p];
        total += to[p] * to[p];
    }
    return 0.5 * total;
}

// Means less their mean. Distances do not depend on the origin, but their expansion
// x m - |x|^2 / 2 - |m|^2 / 2 cancels least near the means.
class Means {
  public:
    Means(const DenseRows& means, double constant) : k(means.n), d_(means.d) {
        const int64_t units = (k + LANES - 1) / LANES;
        double* middle = memory_.of(2 * d_ + units * LANES * (d_ + 1));
        double* row = middle + d_;
        offsets_ = row + d_;
        panels_ = offsets_ + units * LANES;
        for (int64_t p = 0; p < d_; ++p) middle[p] = 0.0;
        for (int64_t j = 0; j < k; ++j) {
            for (int64_t p = 0; p < d_; ++p) middle[p] += means.data[j * d_ + p];
        }
        for (int64_t p = 0; p < d_; ++p) middle[p] /= static_cast<double>(k);
        for (int64_t j = 0; j < units * LANES; ++j) {  // the last unit is filled up
            const int64_t source = j < k ? j : k - 1;
            offsets_[j] = constant - centred(means.data + source * d_, middle, d_, row);
            double* lane = panels_ + j / LANES * LANES * d_ + j % LANES;
            for (int64_t p = 0; p < d_; ++p) lane[p * LANES] = row[p];
        }
        centre = middle;
    }

    const double* offsets(int64_t j) const { return offsets_ + j; }
    const double* panel(int64_t j) const { return panels_ + j * d_; }  // (d, 8), from mean j on

    int64_t k;
    const double* centre;

  private:
    int64_t d_;
    Buffer<double> memory_;
    double* offsets_;
    double* panels_;
};

// Some rows less the centre, and half their squared lengths.
class Group {
  public:
    explicit Group(int64_t d) : d_(d) { values_ = memory_.of(GROUP * d); }

    void set(int64_t r, const double* row, const double* centre) {
        squares_[r] = centred(row, centre, d_, values_ + r * d_);
    }

    // out (rows, k) = N rows, from row r on, by eight means, from mean j on.
    template <int N> void multiply(int64_t r, const Means& means, int64_t j, double* out) const {
        const double* x = values_ + r * d_;
        const double* panel = means.panel(j);
        Wide sums[N][PARTS];
        for (int i = 0; i < N; ++i) {
            for (int q = 0; q < PARTS; ++q) {
                sums[i][q] = wide(means.offsets(j) + q * WIDTH) - squares_[r + i];
            }
        }
#pragma GCC unroll 8  // the loop itself would take a tenth of the time
        for (int64_t p = 0; p < d_; ++p) {
            Wide columns[PARTS];
            for (int q = 0; q < PARTS; ++q) columns[q] = wide(panel + p * LANES + q * WIDTH);
            for (int i = 0; i < N; ++i) {
                for (int q = 0; q < PARTS; ++q) sums[i][q] += columns[q] * x[i * d_ + p];
            }
        }
        const int64_t k = means.k;
        double* to = out + r * k + j;
        if (k - j >= LANES) {
            put(sums, to, k);
            return;
        }
        double last[N * LANES];
        put(sums, last, LANES);
        for (int i = 0; i < N; ++i) {
            for (int64_t l = 0; l < k - j; ++l) to[i * k + l] = last[i * LANES + l];
        }
    }

  private:
    template <int N>
    COEM_INLINE static void put(const Wide (&sums)[N][PARTS], double* to, int64_t stride) {
#pragma GCC unroll 12  // a loop would take the sums out of their registers
        for (int i = 0; i < N; ++i) {
            for (int q = 0; q < PARTS; ++q) {
                std::memcpy(to + i * stride + q * WIDTH, &sums[i][q], sizeof(Wide));
            }
        }
    }

    int64_t d_;
    Buffer<double> memory_;
    double* values_;
    double squares_[GROUP];
};

void closeness(const DenseRows& rows, const DenseRows& centres, double constant, double* out) {
    const Means means(centres, constant);
    Group group(rows.d);
    for (int64_t first = 0; first < rows.n; first += GROUP, out += GROUP * means.k) {
        const int64_t m = rows.n - first < GROUP ? rows.n - first : GROUP;
        for (int64_t r = 0; r < m; ++r) {
            group.set(r, rows.data + (first + r) * rows.d, means.centre);
        }
        for (int64_t j = 0; j < means.k; j += LANES) {
            int64_t r = 0;
            for (; r + TILE <= m; r += TILE) group.multiply<TILE>(r, means, j, out);
            for (; r < m; ++r) group.multiply<1>(r, means, j, out);
        }
    }
}

// evidence = objective + log(evidence). Four rows at a time, and a row's result does not depend on
// its neighbours.
void add_logs(const PosteriorArgs& a) {
    int64_t i = 0;
    for (; i + HALF <= a.n_rows; i += HALF) {
        const Half<double> logs = log_half(load_half<double>(a.evidence + i));
        store_half<double>(a.evidence + i, load_half<double>(a.objective + i) + logs);
    }
    Half<double> last = Half<double>{} + 1.0;
    for (int64_t j = i; j < a.n_rows; ++j) last[j - i] = a.evidence[j];
    last = log_half(last);
    for (int64_t j = i; j < a.n_rows; ++j) a.evidence[j] = a.objective[j] + last[j - i];
}

void assign(const PosteriorArgs& a, int32_t* labels) {
    const int64_t k = a.n_components;
    Joint<double> joint(k);
    joint.set_weights(a.log_weights);
    for (int64_t i = 0; i < a.n_rows; ++i) {
        joint.set(a.log_joint + i * k, a.allowed ? a.allowed + i * k : nullptr);
        const Best best = joint.best();
        labels[i] = static_cast<int32_t>(best.component);
        a.objective[i] = joint.top;
        a.evidence[i] = best.total;
    }
    add_logs(a);
}

void sum_by_label(const DenseRows& rows, const int32_t* labels, const double* weights,
                  double* sums) {
    for (int64_t i = 0; i < rows.n; ++i) {
        const double weight = weights ? weights[i] : 1.0;
        const double* __restrict row = rows.data + i * rows.d;
        double* __restrict sum = sums + labels[i] * rows.d;
        for (int64_t p = 0; p < rows.d; ++p) sum[p] += weight * row[p];
    }
}

}  // namespace

const DenseKernels& dense_table() {
    static const DenseKernels all{closeness, assign, sum_by_label};
    return all;
}

}  // namespace coem::COEM_ISA
