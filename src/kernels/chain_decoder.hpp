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
    explicit Decoder(const Model& m) : m_(m) {
        x_ = memory_.of(2 * m.width);
        ways_ = x_ + m.width;
    }

    // kept (n, width) = the rows of `best` of a sequence
    Path run(const Rows& rows, double* kept) {
        const int64_t width = m_.width_of<N>();
        Cells<N> x(x_);
        Cells<N> ways(ways_);
        Mask broken = {};
        Total total;
        double top = 0.0;
        for (int64_t l = 0; l < width; l += QUAD) ways.set(l, take(m_.log_start + l));
        for (int64_t t = 0; t < rows.n; ++t, kept += width) {
            if (t > 0) add_and_maximise(m_.logs, kept - width, m_.rows_of<N>(), width, ways);
            // Less the largest of the row before: one row late, so that no row need wait for it.
            const double less = rows.read(t, 1.0, width, x) + top;
            Quad most = all(NEVER);
            for (int64_t l = 0; l < width; l += QUAD) {
                const Quad joint = ways.get(l) + (x.get(l) - less);
                put(kept + l, joint);
                most = larger(joint, most);
                broken |= joint != joint;
            }
            total.add(less);
            top = largest_of(most);
            if (top == NEVER) return rows.has_broken(t) ? Path::broken : Path::impossible;
        }
        log_joint_ = total.value() + top;
        return bits_of(broken) == 0 ? Path::possible : Path::broken;
    }

    double log_joint() const { return log_joint_; }

    // states (n) = the best path, of equals the one with the least states from its end
    void trace(int64_t n, const double* kept, int32_t* states) const {
        const int64_t width = m_.width_of<N>();
        const double* best = kept + (n - 1) * width;
        int64_t at = first_of_best([&](int64_t i) COEM_INLINED { return take(best + i); });
        states[n - 1] = static_cast<int32_t>(at);
        for (int64_t t = n - 2; t >= 0; --t) {
            best -= width;
            const double* logs = m_.logs_to + at * width;
            at = first_of_best(
                [&](int64_t i) COEM_INLINED { return take(best + i) + take(logs + i); });
            states[t] = static_cast<int32_t>(at);
        }
    }

  private:
    // The least i with the largest ways(i).
    template <class Ways> COEM_INLINE int64_t first_of_best(const Ways& ways) const {
        const int64_t width = m_.width_of<N>();
        Quad most = all(NEVER);
        for (int64_t i = 0; i < width; i += QUAD) most = larger(ways(i), most);
        const double top = largest_of(most);
        unsigned here = 0;
        if constexpr (N > 0) {  // without a branch: nobody can guess the way
            for (int i = 0; i < N * QUAD; i += QUAD) here |= bits_of(ways(i) == top) << i;
            return __builtin_ctz(here);
        }
        int64_t i = 0;
        while (!(here = bits_of(ways(i) == top))) i += QUAD;
        return i + __builtin_ctz(here);
    }

    const Model& m_;
    Buffer<double> memory_;
    double* x_;
    double* ways_;
    double log_joint_ = 0.0;
};

}  // namespace
}  // namespace coem::COEM_ISA
