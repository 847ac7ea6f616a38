// Forwards and backwards through a hidden Markov chain with logarithms: slow, but nothing is too
// small for it. For the sequences that `Filter` cannot do.
// Included by one translation unit per instruction set: everything here is inline and static.
#pragma once

#include "chain_model.hpp"

namespace coem::COEM_ISA {
namespace {

class LogPass {
  public:
    explicit LogPass(const Model& m) : m_(m) {
        x_ = memory_.of(4 * m.width);
        terms_ = x_ + m.width;
        g_ = terms_ + m.width;
        before_ = g_ + m.width;
    }

    // kept (n, width) = the logarithms of the filtered probabilities of a sequence
    Path filter(const Rows& rows, double* kept) {
        total_ = Total{};
        Path path = Path::possible;
        for (int64_t t = 0; t < rows.n && path == Path::possible; ++t) {
            Cells<0> x(x_);
            rows.read(t, m_.beta, m_.width, x);
            for (int64_t l = 0; l < m_.k; ++l) {
                if (x_[l] > NEVER) x_[l] += t == 0 ? m_.log_start[l] : prediction(l, kept);
            }
            kept += t > 0 ? m_.width : 0;
            path = normalise(kept);
        }
        return path;
    }

    double log_evidence() const { return total_.value(); }

    // From these rows to the posteriors and counts of the sequence.
    template <class Out>
    void smooth(const Rows& rows, const double* kept, const ChainCounts& counts, const Out& resp) {
        const double* row = kept + (rows.n - 1) * m_.width;
        for (int64_t l = 0; l < m_.width; l += QUAD) put(g_ + l, exp_or_zero(take(row + l)));
        for (int64_t t = rows.n - 1;; --t) {
            for (int64_t l = 0; l < m_.width; l += QUAD) resp.put(t, l, take(g_ + l));
            if (t == 0) break;
            row -= m_.width;
            back(row, rows.weight, counts.transitions);
        }
        for (int64_t l = 0; l < m_.k; ++l) counts.starts[l] += rows.weight * g_[l];
    }

  private:
    struct Ways {
        double top;
        double sum;
    };

    // terms (width) = exp(y(i) + log transition(i, l) - top), and their sum
    Ways ways_to(int64_t l, const double* y) {
        const double* logs = m_.logs_to + l * m_.width;
        Quad most = all(NEVER);
        for (int64_t i = 0; i < m_.width; i += QUAD) {
            most = larger(take(y + i) + take(logs + i), most);
        }
        const double top = largest_of(most);
        if (top == NEVER) return {top, 0.0};
        Quad part = {};
        for (int64_t i = 0; i < m_.width; i += QUAD) {
            const Quad term = exp_or_zero(take(y + i) + take(logs + i) - top);
            put(terms_ + i, term);
            part += term;
        }
        return {top, sum_of(part)};
    }

    double prediction(int64_t l, const double* y) {
        const Ways ways = ways_to(l, y);
        return ways.top + std::log(ways.sum);
    }

    // y = x less the logarithm of the sum of exp(x)
    Path normalise(double* y) {
        Quad most = all(NEVER);
        for (int64_t l = 0; l < m_.width; l += QUAD) most = larger(take(x_ + l), most);
        const double top = largest_of(most);
        if (top == NEVER) return Path::impossible;
        Quad part = {};
        for (int64_t l = 0; l < m_.width; l += QUAD) part += exp_or_zero(take(x_ + l) - top);
        const double scale = std::log(sum_of(part));
        for (int64_t l = 0; l < m_.width; l += QUAD) put(y + l, take(x_ + l) - top - scale);
        total_.add(top);
        total_.add(scale);
        return Path::possible;
    }

    void back(const double* y, double weight, double* transitions) {
        for (int64_t i = 0; i < m_.width; ++i) before_[i] = 0.0;
        double total = 0.0;
        for (int64_t l = 0; l < m_.k; ++l) {
            if (g_[l] < TRACE) continue;
            const double share = g_[l] / ways_to(l, y).sum;
            for (int64_t i = 0; i < m_.k; ++i) {
                before_[i] += share * terms_[i];
                transitions[i * m_.k + l] += weight * (share * terms_[i]);
            }
            total += g_[l];
        }
        // Rounding errors must not add up over a long sequence.
        for (int64_t i = 0; i < m_.width; ++i) g_[i] = before_[i] / total;
    }

    const Model& m_;
    Buffer<double> memory_;
    double* x_;       // (width), the row, and its joint log probabilities
    double* terms_;   // (width)
    double* g_;       // (width), the posterior
    double* before_;  // (width), that of the row before
    Total total_;
};

}  // namespace
}  // namespace coem::COEM_ISA
