// Forwards through a hidden Markov chain, in doubles.
// Included by one translation unit per instruction set: everything here is inline and static.
//
// u_t(l) = sum_i a_{t-1}(i) A(i, l) predicts a state, and a_t(l) = u_t(l) b_t(l) / s_{t-1} is how
// likely it is together with the row, b_t being the row's likelihoods over the largest of them, and
// s the sum of a. It is divided out one row late: a row need not wait for the sum of the one before.
//
// Doubles end at 1e-308, but a state that is 1e-2000 of the others today may be the only one with
// a way to tomorrow's row. So no possible state and no possible transition falls below FLOOR: zero
// says impossible, and all else is too large rather than too small. What was added to the truth
// rarely matters; `Smoother` finds out whether it does.
#pragma once

#include "chain_model.hpp"

namespace coem::COEM_ISA {
namespace {

constexpr double RARE = 1e-20;  // a smaller sum is divided out at once

template <int N>
class Filter {
  public:
    explicit Filter(const Model& m) : m_(m) {
        u_ = memory_.of(2 * m.width);
        x_ = u_ + m.width;
    }

    // kept (n, width) = the rows a_t of a sequence
    Path run(const Rows& rows, double* kept) {
        const int64_t width = m_.width_of<N>();
        Cells<N> u(u_);  // predictions
        Cells<N> x(x_);  // the row's log likelihoods
        Total total;
        double sum = 1.0;
        for (int64_t l = 0; l < width; l += QUAD) u.set(l, take(m_.start + l));
        for (int64_t t = 0; t < rows.n; ++t, kept += width) {
            if (t > 0) multiply(m_.onward, kept - width, m_.rows_of<N>(), width, u);
            double top = rows.read(t, m_.beta, width, x);
            double scale = 1.0 / sum;
            while (!((sum = join(u, x, top, scale, kept)) >= RARE)) [[unlikely]] {
                // The states that the row likes best are hardly possible, or not at all.
                if (rows.has_broken(t)) return Path::broken;
                const double best = top_of_possible(u, x);
                if (best == NEVER) return Path::impossible;
                if (best == top) {
                    total.add(std::log(sum));
                    scale /= sum;
                }
                top = best;
            }
            total.add(top);
            total.add_log(sum);
        }
        log_evidence_ = total.value();
        return Path::possible;
    }

    double log_evidence() const { return log_evidence_; }

    // Whether nothing was raised to the floor in these rows.
    bool is_exact(int64_t n, const double* kept) const {
        Mask raised = {};
        for (int64_t cell = 0; cell < n * m_.width; cell += QUAD) raised |= take(kept + cell) == FLOOR;
        return !m_.is_raised && bits_of(raised) == 0;
    }

  private:
    // a = u exp(x - top) scale, raised to the floor. Returns their sum, or NaN if a row is broken.
    COEM_INLINE double join(const Cells<N>& u, const Cells<N>& x, double top, double scale,
                            double* a) const {
        Quad part = {};
        for (int64_t l = 0; l < m_.width_of<N>(); l += QUAD) {
            const Quad joint = u.get(l) * (exp_below(x.get(l) - top) * scale);
            const Mask possible = (x.get(l) > NEVER) & (u.get(l) > 0.0);
            put(a + l, only_where(possible, larger(joint, all(FLOOR))));
            part += joint;
        }
        return sum_of(part);
    }

    // The largest x of a possible state. The others become impossible.
    COEM_INLINE double top_of_possible(const Cells<N>& u, Cells<N>& x) const {
        Quad most = all(NEVER);
        for (int64_t l = 0; l < m_.width_of<N>(); l += QUAD) {
            x.set(l, u.get(l) > 0.0 ? x.get(l) : all(NEVER));
            most = larger(x.get(l), most);
        }
        return largest_of(most);
    }

    const Model& m_;
    Buffer<double> memory_;
    double* u_;
    double* x_;
    double log_evidence_ = 0.0;
};

}  // namespace
}  // namespace coem::COEM_ISA
