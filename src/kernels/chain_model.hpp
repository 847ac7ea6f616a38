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
            put(onward_true + cell, exp_or_zero(take(logs + cell)));
        }
    }

    // The width, and how many rows of a matrix to visit, if there are N quads or an unknown number.
    // A known number of rows that hold nothing is faster than an unknown one of rows that do.
    template <int N> int64_t width_of() const { return N > 0 ? N * QUAD : width; }
    template <int N> int64_t rows_of() const { return N > 0 ? N * QUAD : k; }

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
        const Quad values = exp_or_zero(log_values);
        const Quad floor = only_where(log_values > NEVER, all(FLOOR));
        is_raised |= bits_of(values < floor) != 0;
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

    // x (width) = beta log_prob of a row, -inf where a state is not allowed. Returns the largest;
    // NaN is passed over.
    template <class Row>
    COEM_INLINE double read(int64_t t, double beta, int64_t width, Row& x) const {
        Quad most = all(NEVER);
        for (int64_t l = 0; l < width; l += QUAD) {
            Quad row = beta * take_of(log_prob + t * k, l, k, NEVER);
            if (allowed) [[unlikely]] row = closed_to(t, l, row);
            x.set(l, row);
            most = larger(row, most);
        }
        return largest_of(most);
    }

    bool has_broken(int64_t t) const {
        for (int64_t l = 0; l < k; ++l) {
            if (!(log_prob[t * k + l] < INFINITE)) return true;
        }
        return false;
    }

    const int64_t first;
    const int64_t n;
    const int64_t k;
    const double* const log_prob;
    const uint8_t* const allowed;
    const double weight;

  private:
    // What is broken stays so, allowed or not.
    COEM_INLINE Quad closed_to(int64_t t, int64_t l, const Quad& row) const {
        const Mask open = flags_of(allowed + t * k, l, k) | ~(row < INFINITE);
        return open ? row : all(NEVER);
    }
};

// A sum of many numbers whose rounding errors do not add up, and of logarithms taken together.
class Total {
  public:
    COEM_INLINE void add(double x) {
        const double next = sum_ + x;
        const double was = next - x;
        error_ += (sum_ - was) + (x - (next - was));
        sum_ = next;
    }

    // of a number up to 1, but not below 1e-100
    COEM_INLINE void add_log(double x) {
        product_ *= x;
        if (product_ < 1e-200) [[unlikely]] {
            add(std::log(product_));
            product_ = 1.0;
        }
    }

    double value() const { return sum_ + (error_ + std::log(product_)); }

  private:

    double sum_ = 0.0;
    double error_ = 0.0;
    double product_ = 1.0;
};

}  // namespace
}  // namespace coem::COEM_ISA
