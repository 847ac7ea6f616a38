// Components that cannot matter to a row are not scored: bounds of the scores of rows.
// Included by one translation unit per instruction set: everything here is inline and static.
#pragma once

#include <bit>
#include <cmath>
#include <cstring>
#include <limits>

#include "posterior.hpp"
#include "rows.hpp"
#include "scores.hpp"
#include "simd.hpp"

namespace coem::COEM_ISA {
namespace {

// A bound is the upper half of a float: 16 bits, rounded up. Bounds are relative to the level of
// their row, so that they are good to a hundredth of what a component is behind.
inline std::uint16_t bound_of(double gap) {
    const double more = gap + std::fabs(gap) * 1e-6;  // so that rounding to float cannot lower it
    auto whole = std::bit_cast<std::uint32_t>(static_cast<float>(more));
    if (more > 0.0) whole += 0xffff;  // cutting digits off lowers what is above zero
    return static_cast<std::uint16_t>(whole >> 16);
}

typedef std::uint16_t Short8 __attribute__((vector_size(LANES * 2)));
typedef std::uint32_t Word8 __attribute__((vector_size(LANES * 4)));

inline Vec<float> bounds_at(const std::uint16_t* from) {
    Short8 half;
    std::memcpy(&half, from, sizeof half);
    return std::bit_cast<Vec<float>>(__builtin_convertvector(half, Word8) << 16);
}

// The bounds of some columns; of all of them, if there is no list.
inline void set_bounds(const Bounds& b, const double* scores, const std::int32_t* columns,
                       int64_t n, int64_t m) {
    for (int64_t i = 0; i < n; ++i, scores += m) {
        std::uint16_t* row = b.gaps + i * b.stride;
        if (!columns) {
            double top = scores[0];
            for (int64_t j = 1; j < m; ++j) top = scores[j] > top ? scores[j] : top;
            b.level[i] = top;
        }
        const double level = b.level[i];
        for (int64_t c = 0; c < m; ++c) row[columns ? columns[c] : c] = bound_of(scores[c] - level);
    }
}

// rise (k) = by how much each component's cells of the words lo <= w < hi rose at most
template <class T>
void rises(const T* before, const T* after, int64_t k, int64_t lo, int64_t hi, T* rise) {
    for (int64_t j = 0; j < k; ++j) rise[j] = -std::numeric_limits<T>::infinity();
    for (int64_t w = lo; w < hi; ++w) {
        const T* a = before + w * k;
        const T* b = after + w * k;
        for (int64_t j = 0; j < k; ++j) {
            const T by = b[j] - a[j];
            rise[j] = by > rise[j] ? by : rise[j];
        }
    }
}

// One row's bounds, and which vectors of components can matter to it.
template <class T>
class Chances {
  public:
    Chances(const Pruning& p, const Bounds& b) : p_(p), b_(b) {
        units_ = (p.k + LANES - 1) / LANES;
        bound_ = floats_.of(3 * units_ * LANES);
        rise_ = bound_ + units_ * LANES;
        weight_ = rise_ + units_ * LANES;
        for (int64_t j = 0; j < units_ * LANES; ++j) {
            rise_[j] = j < p.k ? static_cast<float>(p.rise[j]) : 0.0f;
            weight_[j] = j < p.k ? static_cast<float>(p.log_weights[j]) : 0.0f;
        }
    }

    int64_t units() const { return units_; }

    // Set the bounds of a row; return the vector of components with the largest.
    int64_t set(int64_t i, float length, const std::uint8_t* allowed) {
        const std::uint16_t* gaps = b_.gaps + i * b_.stride;
        Vec<float> most = Vec<float>{} + LOWEST;
        for (int64_t u = 0; u < units_; ++u) {
            const int64_t at = u * LANES;
            Vec<float> some = bounds_at(gaps + at) + length * load(rise_ + at) + load(weight_ + at);
            if (allowed || at + LANES > p_.k) {
                for (int l = 0; l < LANES; ++l) {
                    const int64_t j = at + l;
                    some[l] = j < p_.k && (!allowed || allowed[j]) ? some[l] : LOWEST;
                }
            }
            store(bound_ + at, some);
            most = some > most ? some : most;
        }
        float top = LOWEST;
        for (int l = 0; l < LANES; ++l) top = most[l] > top ? most[l] : top;
        int64_t u = 0;
        while (u + 1 < units_ && !reaches(u, top)) ++u;
        return u;
    }

    bool reaches(int64_t u, float least) const {
        return any_of(load(bound_ + u * LANES) >= Vec<float>{} + least);
    }

    // From scores to the log joint of a vector of components, -inf for one that cannot be; returns
    // the largest.
    double join(int64_t u, double* scores, const std::uint8_t* allowed) const {
        double top = NEVER;
        for (int l = 0; l < LANES; ++l) {
            const int64_t j = u * LANES + l;
            const bool open = j < p_.k && (!allowed || allowed[j]);
            scores[l] = open ? scores[l] + p_.log_weights[j] : NEVER;
            top = scores[l] > top ? scores[l] : top;
        }
        return top;
    }

  private:
    static constexpr float LOWEST = -std::numeric_limits<float>::max();

    const Pruning& p_;
    const Bounds& b_;
    int64_t units_;
    Buffer<float> floats_;
    float* bound_;
    float* rise_;
    float* weight_;
};

template <class T> double row_sum(const Rows<T>& row) {
    double total = 0.0;
    for (int64_t p = 0; p < row.length; ++p) total += static_cast<double>(row.value[p]);
    return total;
}

// Log joints of the components that can matter, eight at a time, from scores to the bit as `scores`
// computes them. Returns the row that it stopped before, for want of room.
template <class T>
int64_t chances(const Csr& X, const T* table, const Pruning& p, const Bounds& b, int64_t first,
                const Found& out) {
    Rows<T> row(X);
    Chances<T> chances(p, b);
    double tried[LANES];
    int64_t at = out.offsets[first];
    for (int64_t i = first; i < row.size(); ++i) {
        if (at + chances.units() > out.room) return i;
        row.seek(i);
        if (p.blank && p.blank[i]) row.length = 0;
        const std::uint8_t* allowed = p.allowed ? p.allowed + i * p.k : nullptr;
        const int64_t leader = chances.set(i, static_cast<float>(row_sum(row)), allowed);
        score_units<T, 1>(row, table + leader * LANES, p.k, tried);
        const double top = chances.join(leader, tried, allowed);
        // Scores are sums of floats: what they and the bounds lose to rounding is less than this.
        const double rounding = 0.5 + 1e-5 * std::fabs(top);
        const auto least = static_cast<float>(top - b.level[i] - p.reach - rounding);
        for (int64_t u = 0; u < chances.units(); ++u) {
            if (u != leader && !chances.reaches(u, least)) continue;
            out.units[at] = static_cast<std::int32_t>(u);
            double* to = out.joint + at * LANES;
            if (u == leader) {
                std::memcpy(to, tried, sizeof tried);
            } else {
                score_units<T, 1>(row, table + u * LANES, p.k, to);
                chances.join(u, to, allowed);
            }
            ++at;
        }
        out.offsets[i + 1] = at;
    }
    return row.size();
}

inline double largest(const double* row, int64_t k) {
    Half<double> most = Half<double>{} + NEVER;
    int64_t j = 0;
    for (; j + HALF <= k; j += HALF) most = larger(load_half<double>(row + j), most);
    double top = largest_of(most);
    for (; j < k; ++j) top = row[j] > top ? row[j] : top;
    return top;
}

inline bool reaches(const double* some, int64_t m, double least) {
    if (m == LANES) {
        const Half<double> bar = Half<double>{} + least;
        return bits(load_half<double>(some) >= bar) | bits(load_half<double>(some + HALF) >= bar);
    }
    bool any = false;
    for (int64_t l = 0; l < m; ++l) any |= some[l] >= least;
    return any;
}

// Vectors of eight components of which one is in reach of the best of its row, from the log joints
// of all. Returns false as soon as there are more than there is room for.
inline bool near(const double* joint, int64_t n, int64_t k, double reach, const Found& out) {
    int64_t at = 0;
    out.offsets[0] = 0;
    for (int64_t i = 0; i < n; ++i, joint += k) {
        const double least = largest(joint, k) - reach;
        for (int64_t first = 0; first < k; first += LANES) {
            const int64_t m = k - first < LANES ? k - first : LANES;
            if (!reaches(joint + first, m, least)) continue;
            if (at == out.room) return false;
            out.units[at] = static_cast<std::int32_t>(first / LANES);
            double* to = out.joint + at * LANES;
            for (int64_t l = 0; l < LANES; ++l) {
                to[l] = l < m && joint[first + l] >= least ? joint[first + l] : NEVER;
            }
            ++at;
        }
        out.offsets[i + 1] = at;
    }
    return true;
}

// The responsibilities that are not zero, in order.
template <class T>
void list_rows(const T* resp, int64_t n, int64_t k, int64_t* offsets, std::int32_t* components,
               T* values) {
    int64_t at = 0;
    offsets[0] = 0;
    for (int64_t i = 0; i < n; ++i, resp += k) {
        for (int64_t first = 0; first < k; first += LANES) {
            const int64_t end = k - first < LANES ? k : first + LANES;
            bool any = false;
            for (int64_t j = first; j < end; ++j) any |= resp[j] != T{0};
            for (int64_t j = first; any && j < end; ++j) {
                components[at] = static_cast<std::int32_t>(j);
                values[at] = resp[j];
                at += resp[j] != T{0};
            }
        }
        offsets[i + 1] = at;
    }
}

}  // namespace
}  // namespace coem::COEM_ISA
