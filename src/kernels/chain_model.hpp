// What the passes over a hidden Markov chain share: the chain, a sequence, sums of logarithms.
// Included by one translation unit per instruction set: everything here is inline and static.
#pragma once

#include <cmath>
#include <cstdint>

#include "buffer.hpp"
#include "chain.hpp"
#include "quads.hpp"

namespace coem::COEM_ISA {
namespace {

using std::int32_t;
using std::int64_t;
using std::uint8_t;

constexpr double FLOOR = 1e-150;  // its square is a normal number
constexpr double TRACE = 1e-30;   // a smaller posterior is none

enum class Path { possible, impossible, broken };

// The chain to the power beta, with states filled up to whole quads by ones without a chance.
struct Model {
    explicit Model(const Chain& c) : k(c.k), width(padded(c.k)), beta(c.beta) {
        log_start = memory_.of((2 + 4 * width) * width);
        start = log_start + width;
        logs = start + width;
        logs_to = logs + width * width;
        onward = logs_to + width * width;
        onward_true = onward + width * width;
        for (int64_t i = 0; i < width; ++i) {
            log_start[i] = i < k ? beta * c.log_start[i] : NEVER;
            for (int64_t l = 0; l < width; ++l) {
                const bool real = i < k && l < k;
                logs[i * width + l] = real ? beta * c.log_transition[i * k + l] : NEVER;
                logs_to[l * width + i] = logs[i * width + l];
            }
        }
        for (int64_t l = 0; l < width; l += QUAD) put(start + l, raised(take(log_start + l)));
        for (int64_t cell = 0; cell < width * width; cell += QUAD) {
            put(onward + cell, raised(take(logs + cell)));
            put(onward_true + cell, exp_below(take(logs + cell)));
        }
    }

    const int64_t k;
    const int64_t width;
    const double beta;
    double* log_start;    // (width)
    double* start;        // (width), probabilities, possible ones raised to the floor
    double* logs;         // (width, width), from the row's state to the column's
    double* logs_to;      // (width, width), to the row's state from the column's
    double* onward;       // (width, width), as `logs`: probabilities, raised to the floor
    double* onward_true;  // (width, width), not raised
    bool is_raised = false;

  private:
    Quad raised(const Quad& log_values) {
        const Quad values = exp_below(log_values);
        const Quad floor = log_values > NEVER ? all(FLOOR) : Quad{};
        is_raised |= any(values < floor);
        return larger(values, floor);
    }

    Buffer<double> memory_;
};

// Call step(number of quads as a type), 0 if it is known at run time only. Short loops cost more
// than what is in them.
template <class Step> void by_size(int64_t k, const Step& step) {
    switch (padded(k) / QUAD) {
        case 1: return step(std::integral_constant<int, 1>{});
        case 2: return step(std::integral_constant<int, 2>{});
        case 3: return step(std::integral_constant<int, 3>{});
        case 4: return step(std::integral_constant<int, 4>{});
        default: return step(std::integral_constant<int, 0>{});
    }
}

// The rows of one sequence.
struct Rows {
    Rows(const Sequences& seq, int64_t s, int64_t k)
        : first(seq.offsets[s]), n(seq.offsets[s + 1] - first), k(k),
          log_prob(seq.log_prob + first * k),
          allowed(seq.allowed ? seq.allowed + first * k : nullptr),
          weight(seq.weights ? seq.weights[s] : 1.0) {}

    // x (width) = beta log_prob of a row, -inf where a state is not allowed. Returns the largest,
    // or NaN if the row is broken.
    COEM_INLINE double read(int64_t t, double beta, int64_t width, double* x) const {
        Quad most = all(NEVER);
        Mask broken = {};
        for (int64_t l = 0; l < width; l += QUAD) {
            Quad row = beta * take_of(log_prob + t * k, l, k, NEVER);
            broken |= ~(row < INFINITE);
            if (allowed) row = flags_of(allowed + t * k, l, k) ? row : all(NEVER);
            put(x + l, row);
            most = larger(row, most);
        }
        return any(broken) ? std::numeric_limits<double>::quiet_NaN() : largest_of(most);
    }

    const int64_t first;
    const int64_t n;
    const int64_t k;
    const double* const log_prob;
    const uint8_t* const allowed;
    const double weight;
};

// A sum of many numbers whose rounding errors do not add up, and of logarithms taken together.
class Total {
  public:
    void add(double x) {
        const double next = sum_ + x;
        const double was = next - x;
        error_ += (sum_ - was) + (x - (next - was));
        sum_ = next;
    }

    void add_log(double x) {
        if (x < 1e-100 || product_ < 1e-100 || product_ > 1e100) {
            add(std::log(product_));
            product_ = 1.0;
        }
        product_ *= x;
    }

    double value() const { return sum_ + (error_ + std::log(product_)); }

  private:
    double sum_ = 0.0;
    double error_ = 0.0;
    double product_ = 1.0;
};

}  // namespace
}  // namespace coem::COEM_ISA
