// Backwards through a hidden Markov chain, in doubles: posteriors and expected transitions.
// Included by one translation unit per instruction set: everything here is inline and static.
//
// With w(l) = g_{t+1}(l) / u_{t+1}(l), where g is the posterior and u the prediction, the expected
// transitions are a_t(i) A(i, l) w(l), and g_t(i) is their sum over l. Unlike products of
// likelihoods from the end of the sequence, these are probabilities, and the scale of a_t, which u
// shares, is of no matter.
//
// The same formula tells how much of the posterior is due to `Filter` having raised numbers to
// FLOOR. A raised state has at most FLOOR times the largest w, and so have all raised transitions
// to one state. No w above LIMIT means less than 1e-25 for each: nothing, even if all steps of a
// very long sequence are added up.
#pragma once

#include "chain_model.hpp"

namespace coem::COEM_ISA {
namespace {

constexpr double LIMIT = 1e125;
constexpr int BATCH = 16;        // steps whose expected transitions are added at a time

// As for mixtures: below this share of its row a responsibility is nothing in single precision.
template <class T> constexpr double NEGLIGIBLE = std::is_same_v<T, float> ? 1e-9 : 0.0;

// Where posteriors go: to the responsibilities of a sequence,
template <class T>
struct Responsibilities {
    COEM_INLINE void put(int64_t t, int64_t l, const Quad& g) const {
        put_of(rows + t * k, l, k, NEGLIGIBLE<T> > 0.0 ? only_where(g >= NEGLIGIBLE<T>, g) : g);
    }

    T* rows;  // (n, k)
    int64_t k;
};

// or nowhere.
struct Unwanted {
    void put(int64_t, int64_t, const Quad&) const {}
};

template <int N>
class Smoother {
  public:
    explicit Smoother(const Model& m) : m_(m) {
        g_ = memory_.of((2 + BATCH + m.k) * m.width);
        u_ = g_ + m.width;
        w_ = u_ + m.width;
        sums_ = w_ + BATCH * m.width;
    }

    // From the filtered rows of a sequence to its posteriors. False if they are not true.
    template <class Out> bool run(int64_t n, const double* kept, const Out& resp) {
        const int64_t width = m_.width_of<N>();
        const double* row = kept + (n - 1) * width;
        Cells<N> g(g_);  // the posterior
        Mask wrong = {};
        for (int64_t cell = 0; cell < m_.k * width; ++cell) sums_[cell] = 0.0;
        for (int64_t l = 0; l < width; l += QUAD) g.set(l, take(row + l));
        normalise(g);
        for (int64_t l = 0; l < width; l += QUAD) resp.put(n - 1, l, g.get(l));
        int64_t steps = 0;
        for (int64_t t = n - 2; t >= 0; --t) {
            row -= width;
            back(row, w_ + steps * width, g, wrong);
            for (int64_t i = 0; i < width; i += QUAD) resp.put(t, i, g.get(i));
            if (++steps < BATCH && t > 0) continue;
            add_batch(row, steps);
            normalise(g);
            steps = 0;
        }
        for (int64_t l = 0; l < width; l += QUAD) {
            wrong |= g.get(l) > LIMIT * take(m_.start + l);
            put(g_ + l, g.get(l));
        }
        return bits_of(wrong) == 0;
    }

    // The counts of the sequence.
    void count(double weight, const ChainCounts& counts) const {
        for (int64_t i = 0; i < m_.k; ++i) {
            counts.starts[i] += weight * g_[i];
            const double* share = m_.onward_true + i * m_.width;
            const double* sum = sums_ + i * m_.width;
            double* to = counts.transitions + i * m_.k;
            for (int64_t l = 0; l < m_.k; ++l) {
                if (share[l] > 0.0) to[l] += weight * (share[l] * sum[l]);  // or it may be infinite
            }
        }
    }

  private:
    // From the posterior of the next row to that of a row.
    COEM_INLINE void back(const double* a, double* w, Cells<N>& g, Mask& wrong) const {
        const int64_t width = m_.width_of<N>();
        Cells<N> u(u_);
        multiply(m_.onward, a, m_.rows_of<N>(), width, u);
        for (int64_t l = 0; l < width; l += QUAD) {
            const Quad v = g.get(l) * only_where(u.get(l) > 0.0, 1.0 / u.get(l));
            wrong |= v > LIMIT;
            put(w + l, v);
        }
        multiply_from_left(m_.onward, w, width, g);
        for (int64_t i = 0; i < width; i += QUAD) {
            const Quad share = take(a + i) * g.get(i);
            g.set(i, only_where(share > TRACE, share));
        }
    }

    // Rounding errors must not add up over a long sequence.
    COEM_INLINE void normalise(Cells<N>& g) const {
        const int64_t width = m_.width_of<N>();
        Quad part = {};
        for (int64_t l = 0; l < width; l += QUAD) part += g.get(l);
        const double scale = 1.0 / sum_of(part);
        for (int64_t l = 0; l < width; l += QUAD) {
            const Quad share = g.get(l) * scale;
            g.set(l, only_where(share > TRACE, share));
        }
    }

    // sums (k, width) += sum of a(i) w(l) over steps that end with the row `last`
    void add_batch(const double* last, int64_t steps) {
        const double* a = last + (steps - 1) * m_.width_of<N>();
        int64_t i = 0;
        for (; i + 1 < m_.k; i += 2) add_batch_to<2>(i, a + i, steps);
        if (i < m_.k) add_batch_to<1>(i, a + i, steps);
    }

    template <int ROWS>
    COEM_INLINE void add_batch_to(int64_t i, const double* a, int64_t steps) {
        const int64_t width = m_.width_of<N>();
        by_quads(width, [&](int64_t first, auto quads) COEM_INLINED {
            constexpr int M = decltype(quads)::value;
            double* to = sums_ + i * width + first;
            Quad part[ROWS][M];
            for (int r = 0; r < ROWS; ++r) {
                for (int q = 0; q < M; ++q) part[r][q] = take(to + r * width + q * QUAD);
            }
            const double* w = w_ + first;
            const double* from = a;
            for (int64_t s = 0; s < steps; ++s, from -= width, w += width) {
                for (int q = 0; q < M; ++q) {
                    const Quad v = take(w + q * QUAD);
                    for (int r = 0; r < ROWS; ++r) part[r][q] += from[r] * v;
                }
            }
            for (int r = 0; r < ROWS; ++r) {
                for (int q = 0; q < M; ++q) put(to + r * width + q * QUAD, part[r][q]);
            }
        });
    }

    const Model& m_;
    Buffer<double> memory_;
    double* g_;     // (width), at last the posterior of the first row
    double* u_;     // (width), predictions
    double* w_;     // (BATCH, width)
    double* sums_;  // (k, width), expected transitions, to be multiplied by those of the chain
};

}  // namespace
}  // namespace coem::COEM_ISA
