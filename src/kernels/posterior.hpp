// From log joint to responsibilities.
// Included by one translation unit per instruction set: everything here is inline and static.
#pragma once

#include <bit>
#include <cmath>
#include <limits>
#include <type_traits>

#include "buffer.hpp"
#include "counts.hpp"
#include "simd.hpp"

namespace coem::COEM_ISA {
namespace {

using std::int64_t;

constexpr double FORBIDDEN = -1e30;   // log posterior of a component that is not allowed
constexpr double HOPELESS = -1e300;  // the least log joint of one that is: overflow ends here
constexpr double FAR = -37.0;         // beside 1, exp(-37) is lost in rounding
constexpr double NEVER = -std::numeric_limits<double>::infinity();

// Below this share of its row a responsibility is nothing in single precision.
template <class T> constexpr double NEGLIGIBLE = std::is_same_v<T, float> ? 1e-9 : 0.0;

struct Best {
    int64_t component;
    double total;  // the sum of exp(joint - top)
};

// One row's log joint, padded to whole vectors with components that have no chance.
template <class T>
class Joint {
  public:
    explicit Joint(int64_t k) : k_(k), units_((k + LANES - 1) / LANES) {
        joint_ = doubles_.of(2 * units_ * LANES);
        weights_ = joint_ + units_ * LANES;
        resp_ = values_.of(units_ * LANES);
    }

    void set_weights(const double* log_weights) {
        for (int64_t j = 0; j < units_ * LANES; ++j) weights_[j] = j < k_ ? log_weights[j] : 0.0;
    }

    void set(const double* log_prob, const std::uint8_t* allowed) {
        Half<double> most = Half<double>{} + NEVER;
        int64_t j = 0;
        for (; j + HALF <= k_; j += HALF) {
            const auto joint = load_half<double>(log_prob + j) + load_half<double>(weights_ + j);
            const auto some = larger(joint, Half<double>{} + HOPELESS);
            store_half<double>(joint_ + j, some);
            most = larger(some, most);
        }
        top = largest_of(most);
        for (; j < k_; ++j) {
            const double joint = log_prob[j] + weights_[j];
            joint_[j] = joint > HOPELESS ? joint : HOPELESS;
            top = joint_[j] > top ? joint_[j] : top;
        }
        for (; j < units_ * LANES; ++j) joint_[j] = NEVER;
        if (allowed) forbid(allowed);
    }

    // Set the responsibilities to exp(beta (joint - top)) and return their sum.
    double soften(double beta) {
        for (int64_t j = 0; j < units_ * LANES; ++j) {
            resp_[j] = static_cast<T>(beta * (joint_[j] - top));
        }
        Vec<T> part = {};
        each([&](int64_t j) {
            exp_in_place(resp_ + j);
            part += load(resp_ + j);
        });
        return static_cast<double>(sum(part));
    }

    // beta = 0: every allowed component alike. Returns the mean log joint, which is the limit of
    // the tempered objective less the constant log(k) / beta.
    double level(T* resp) const {
        int64_t open = 0;
        double total = 0.0;
        for (int64_t j = 0; j < k_; ++j) {
            open += joint_[j] > NEVER;
            total += joint_[j] > NEVER ? joint_[j] : 0.0;
        }
        const T share = static_cast<T>(1.0 / static_cast<double>(open));
        for (int64_t j = 0; j < k_; ++j) resp[j] = joint_[j] > NEVER ? share : T{0};
        return total / static_cast<double>(open);
    }

    // The best component, of equals the first, and the sum of all relative to it.
    Best best() const {
        Best best{0, 0.0};
        Half<double> part = {};
        for (int64_t first = (units_ - 1) / LANES * 64; first >= 0; first -= 64) {
            const int64_t n = units_ * LANES - first < 64 ? units_ * LANES - first : 64;
            const std::uint64_t equal = add_terms(joint_ + first, n, part);
            if (equal) best.component = first + std::countr_zero(equal);
        }
        best.total = (part[0] + part[2]) + (part[1] + part[3]);
        return best;
    }

    void write_resp(double total, T* resp) const {
        const T factor = static_cast<T>(1.0 / total);
        const T least = static_cast<T>(NEGLIGIBLE<T> * total);
        for (int64_t j = 0; j < k_; ++j) resp[j] = resp_[j] < least ? T{0} : resp_[j] * factor;
    }

    void write_log_posterior(double evidence, double* out) const {
        for (int64_t j = 0; j < k_; ++j) {
            out[j] = joint_[j] > NEVER ? joint_[j] - evidence : FORBIDDEN;
        }
    }

    double top = 0.0;

  private:
    void forbid(const std::uint8_t* allowed) {
        top = NEVER;
        for (int64_t j = 0; j < k_; ++j) {
            joint_[j] = allowed[j] ? joint_[j] : NEVER;
            top = joint_[j] > top ? joint_[j] : top;
        }
    }

    // Add exp(joint - top) of up to 64 numbers to `part`, and return a bit for each that is the top.
    // If few are near the top, the others take no time. If many are, it is faster to take all.
    std::uint64_t add_terms(const double* numbers, int64_t n, Half<double>& part) const {
        std::uint64_t near = 0;
        for (int64_t j = 0; j < n; j += HALF) {
            near |= bits(load_half<double>(numbers + j) >= top + FAR) << j;
        }
        std::uint64_t equal = 0;
        const auto add = [&](int64_t j) COEM_INLINED {
            const Half<double> some = load_half<double>(numbers + j);
            part += exp_term(some - top);
            equal |= bits(some == top) << j;
        };
        if (4 * std::popcount(near) > n) {
            for (int64_t j = 0; j < n; j += HALF) add(j);
            return equal;
        }
        while (near) {
            const int j = std::countr_zero(near) / HALF * HALF;
            add(j);
            near &= ~(std::uint64_t{15} << j);
        }
        return equal;
    }

    template <class Step> void each(const Step& step) const {
        for (int64_t u = 0; u < units_; ++u) step(u * LANES);
    }

    int64_t k_;
    int64_t units_;
    Buffer<double> doubles_;
    Buffer<T> values_;
    double* joint_;
    double* weights_;
    T* resp_;
};

// All to the best component.
template <class T> void harden(const PosteriorArgs& a, int64_t i, const Joint<T>& joint, T* resp) {
    const Best best = joint.best();
    a.evidence[i] = joint.top + std::log(best.total);
    a.objective[i] = joint.top;
    for (int64_t j = 0; j < a.n_components; ++j) resp[j] = j == best.component ? T{1} : T{0};
}

template <class T> void soften(const PosteriorArgs& a, int64_t i, Joint<T>& joint, T* resp) {
    double total = joint.soften(1.0);
    a.evidence[i] = joint.top + std::log(total);
    a.objective[i] = a.evidence[i];
    if (a.beta == 0.0) {
        a.objective[i] = joint.level(resp);
        return;
    }
    if (a.beta != 1.0) {
        total = joint.soften(a.beta);
        a.objective[i] = joint.top + std::log(total) / a.beta;
    }
    joint.write_resp(total, resp);
}

template <class T>
void posterior_row(const PosteriorArgs& a, int64_t i, Joint<T>& joint, T* resp) {
    const int64_t k = a.n_components;
    double* log_prob = a.log_joint + i * k;
    joint.set(log_prob, a.allowed ? a.allowed + i * k : nullptr);
    if (a.hard) {
        harden(a, i, joint, resp);
    } else {
        soften(a, i, joint, resp);
    }
    joint.write_log_posterior(a.evidence[i], log_prob);
}

template <class T> void posterior(const PosteriorArgs& a, T* resp) {
    Joint<T> joint(a.n_components);
    joint.set_weights(a.log_weights);
    for (int64_t i = 0; i < a.n_rows; ++i) posterior_row(a, i, joint, resp + i * a.n_components);
}

}  // namespace
}  // namespace coem::COEM_ISA
