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
        total_ = Total{};
        raised_ = Mask{};
        sum_ = 1.0;
        for (int64_t l = 0; l < width(); l += QUAD) put(u_ + l, take(m_.start + l));
        Path path = absorb(rows, 0, kept);
        for (int64_t t = 1; t < rows.n && path == Path::possible; ++t) {
            multiply(m_.onward, kept, m_.k, width(), u_);
            kept += width();
            path = absorb(rows, t, kept);
        }
        return path;
    }

    // Whether nothing was raised to the floor.
    bool is_exact() const { return !m_.is_raised && !any(raised_); }

    double log_evidence() const { return total_.value(); }

  private:
    int64_t width() const { return N > 0 ? N * QUAD : m_.width; }

    COEM_INLINE Path absorb(const Rows& rows, int64_t t, double* a) {
        double top = rows.read(t, m_.beta, width(), x_);
        if (!(top < INFINITE)) return Path::broken;
        const double scale = 1.0 / sum_;
        join(top, scale, a);
        if (!(sum_ >= RARE)) {  // the states that the row likes best are hardly possible
            top = top_of_possible();
            if (top == NEVER) return Path::impossible;
            join(top, scale, a);
            total_.add_log(sum_);
            join(top, scale / sum_, a);
        }
        total_.add(top);
        total_.add_log(sum_);
        return Path::possible;
    }

    // a = u exp(x - top) scale, and their sum
    COEM_INLINE void join(double top, double scale, double* a) {
        Quad part = {};
        for (int64_t l = 0; l < width(); l += QUAD) {
            const Quad u = take(u_ + l);
            const Quad x = take(x_ + l);
            const Quad floor = (x > NEVER) & (u > 0.0) ? all(FLOOR) : Quad{};
            const Quad joint = u * (exp_below(x - top) * scale);
            raised_ |= joint < floor;
            put(a + l, larger(joint, floor));
            part += joint;
        }
        sum_ = sum_of(part);
    }

    // The largest x of a possible state. The others become impossible.
    double top_of_possible() {
        Quad most = all(NEVER);
        for (int64_t l = 0; l < width(); l += QUAD) {
            const Quad x = take(u_ + l) > 0.0 ? take(x_ + l) : all(NEVER);
            put(x_ + l, x);
            most = larger(x, most);
        }
        return largest_of(most);
    }

    const Model& m_;
    Buffer<double> memory_;
    double* u_;  // (width), predictions
    double* x_;  // (width), the row's log likelihoods
    double sum_ = 1.0;
    Mask raised_ = {};
    Total total_;
};

}  // namespace
}  // namespace coem::COEM_ISA
