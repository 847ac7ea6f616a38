// Best paths through a hidden Markov chain.
// Included by one translation unit per instruction set: everything here is inline and static.
#pragma once

#include "chain_model.hpp"

namespace coem::COEM_ISA {
namespace {

// best_t(l) is the log probability of the best path to a state, less a constant of the row. There
// are no pointers to the state before: to find it again for the states of one path alone is cheaper
// than to remember it for all.
template <int N>
class Decoder {
  public:
    explicit Decoder(const Model& m) : m_(m) { x_ = memory_.of(m.width); }

    // kept (n, width) = the rows of `best` of a sequence
    Path run(const Rows& rows, double* kept) {
        total_ = Total{};
        top_ = 0.0;
        for (int64_t t = 0; t < rows.n; ++t) {
            const double level = rows.read(t, 1.0, width(), x_);
            if (!(level < INFINITE)) return Path::broken;
            if (level == NEVER) return Path::impossible;
            double* best = kept + t * width();
            if (t > 0) add_and_maximise(m_.logs, best - width(), m_.k, width(), best);
            total_.add(level);
            absorb(t > 0 ? best : m_.log_start, level, best);
            if (top_ == NEVER) return Path::impossible;
        }
        total_.add(top_);
        return Path::possible;
    }

    double log_joint() const { return total_.value(); }

    // states (n) = the best path, of equals the one with the least states from its end
    void trace(int64_t n, const double* kept, int32_t* states) const {
        const double* best = kept + (n - 1) * width();
        int64_t at = first_of_best(best, nullptr);
        states[n - 1] = static_cast<int32_t>(at);
        for (int64_t t = n - 2; t >= 0; --t) {
            best -= width();
            at = first_of_best(best, m_.logs_to + at * width());
            states[t] = static_cast<int32_t>(at);
        }
    }

  private:
    int64_t width() const { return N > 0 ? N * QUAD : m_.width; }

    // best = ways + the row, less the row's level and the largest of the row before: one row late,
    // so that a row need not wait for it.
    COEM_INLINE void absorb(const double* ways, double level, double* best) {
        Quad most = all(NEVER);
        for (int64_t l = 0; l < width(); l += QUAD) {
            const Quad joint = take(ways + l) + (take(x_ + l) - level - top_);
            put(best + l, joint);
            most = larger(joint, most);
        }
        total_.add(top_);
        top_ = largest_of(most);
    }

    // The least i with the largest best(i) + log transition(i).
    COEM_INLINE int64_t first_of_best(const double* best, const double* logs) const {
        const auto way = [&](int64_t i) {
            return logs ? take(best + i) + take(logs + i) : take(best + i);
        };
        Quad most = all(NEVER);
        for (int64_t i = 0; i < width(); i += QUAD) most = larger(way(i), most);
        const Quad top = all(largest_of(most));
        for (int64_t i = 0;; i += QUAD) {
            const Mask here = way(i) == top;
            if (any(here)) return i + (here[0] ? 0 : here[1] ? 1 : here[2] ? 2 : 3);
        }
    }

    const Model& m_;
    Buffer<double> memory_;
    double* x_;  // (width), the row's log likelihoods
    double top_ = 0.0;
    Total total_;
};

}  // namespace
}  // namespace coem::COEM_ISA
