// The kernels of hidden Markov chains. Compiled once per instruction set, with COEM_ISA naming it.
// Some sequences per call, serial; the caller releases the GIL and owns the threads.
//
// Forward: u_t(l) = sum_i a_{t-1}(i) A(i, l) predicts a state, and a_t(l) = u_t(l) b_t(l) / c_t is
// its filtered probability, b_t being the row's likelihoods over the largest of them. Backward:
// with w(l) = g_{t+1}(l) / u_{t+1}(l), where g is the posterior, the expected transitions are
// a_t(i) A(i, l) w(l), and g_t(i) is their sum over l. Unlike products of likelihoods from the end
// of the sequence, all of these are probabilities.
//
// Doubles end at 1e-308, but a state that is 1e-2000 of the others today may be the only one with
// a way to tomorrow's row. A step in doubles never lets a possible state fall below FLOOR. It
// counts only if no possible state is predicted with less than SAFE: then what was raised to the
// floor is less than 1e-19 of any sum. Otherwise that one step is done with logarithms.

#include "chain.hpp"

#include <limits>
#include <type_traits>

#include "buffer.hpp"
#include "simd.hpp"

namespace coem::COEM_ISA {
namespace {

using std::int32_t;
using std::int64_t;
using std::uint8_t;

constexpr double INFINITE = std::numeric_limits<double>::infinity();
constexpr double NEVER = -INFINITE;
constexpr double NOTHING = std::numeric_limits<double>::quiet_NaN();

constexpr double FLOOR = 1e-150;  // its square is a normal number
constexpr double SAFE = 1e-130;
constexpr double TRACE = 1e-30;  // a smaller posterior is none

// As for mixtures: below this share of its row a responsibility is nothing in single precision.
template <class T> constexpr double NEGLIGIBLE = std::is_same_v<T, float> ? 1e-9 : 0.0;

using Quad = HalfOf<double>::type;
typedef int64_t Mask __attribute__((vector_size(32)));
constexpr int QUAD = 4;
constexpr int MAX_QUADS = 6;  // twice as many sums stay in registers
constexpr int BATCH = 8;      // steps whose expected transitions are added at a time

inline Quad take(const double* p) {
    Quad v;
    std::memcpy(&v, p, sizeof v);
    return v;
}

inline void put(double* p, const Quad& v) { std::memcpy(p, &v, sizeof v); }

inline Quad all(double x) { return Quad{x, x, x, x}; }

// The quad at cell l of a row with k of them, filled up. By number: a vector that is loaded from
// where scalars were just stored waits for them.
inline Quad take_of(const double* row, int64_t l, int64_t k, double fill) {
    const double* p = row + l;
    switch (k - l) {
        case 1: return Quad{p[0], fill, fill, fill};
        case 2: return Quad{p[0], p[1], fill, fill};
        case 3: return Quad{p[0], p[1], p[2], fill};
        default: return take(p);
    }
}

template <class T> inline void put_of(T* row, int64_t l, int64_t k, const Quad& v) {
    const auto values = __builtin_convertvector(v, typename HalfOf<T>::type);
    T* p = row + l;
    if (k - l >= QUAD) {
        std::memcpy(p, &values, sizeof values);
        return;
    }
    p[0] = values[0];
    if (k - l > 1) p[1] = values[1];
    if (k - l > 2) p[2] = values[2];
}

inline Quad larger(const Quad& a, const Quad& b) { return a > b ? a : b; }
inline Quad smaller(const Quad& a, const Quad& b) { return a < b ? a : b; }

inline double sum_of(const Quad& v) { return (v[0] + v[2]) + (v[1] + v[3]); }

inline double largest_of(const Quad& v) {
    const double a = v[0] > v[2] ? v[0] : v[2];
    const double b = v[1] > v[3] ? v[1] : v[3];
    return a > b ? a : b;
}

inline double least_of(const Quad& v) { return -largest_of(-v); }

// exp for x <= 0 (Cephes' reduction and rational function), 2e-16 relative; zero below e^-708.
inline Quad exp_below(const Quad& x) {
    constexpr double lowest = -708.0;
    constexpr double magic = 6755399441055744.0;  // adding 1.5 * 2^52 rounds to an integer
    const Quad y = x < lowest ? all(lowest) : x;
    const Quad shifted = y * 1.4426950408889634 + magic;
    const Quad n = shifted - magic;
    const Quad r = (y - n * 6.93145751953125e-1) - n * 1.42860682030941723212e-6;
    const Quad s = r * r;
    const Quad p =
        r * ((1.26177193074810590878e-4 * s + 3.02994407707441961300e-2) * s + 1.0);
    const Quad q = ((3.00198505138664455042e-6 * s + 2.52448340349684104192e-3) * s +
                    2.27265548208155028766e-1) * s + 2.0;
    const Quad power = std::bit_cast<Quad>((std::bit_cast<Mask>(shifted) + 1023) << 52);
    return x < lowest ? Quad{} : (1.0 + 2.0 * (p / (q - p))) * power;
}

#define COEM_INLINE inline __attribute__((always_inline))

// Call step(first cell, number of quads as a type) for as many as registers hold at a time.
// Inlined, so that a width that is known leaves one call.
template <class Step> COEM_INLINE void by_quads(int64_t width, const Step& step) {
    int64_t quads = width / QUAD;
    for (int64_t first = 0; quads > 0;) {
        const int64_t share = quads <= MAX_QUADS       ? quads
                              : quads <= 2 * MAX_QUADS ? (quads + 1) / 2
                                                       : MAX_QUADS;
        switch (share) {
            case 1: step(first, std::integral_constant<int, 1>{}); break;
            case 2: step(first, std::integral_constant<int, 2>{}); break;
            case 3: step(first, std::integral_constant<int, 3>{}); break;
            case 4: step(first, std::integral_constant<int, 4>{}); break;
            case 5: step(first, std::integral_constant<int, 5>{}); break;
            default: step(first, std::integral_constant<int, 6>{}); break;
        }
        first += share * QUAD;
        quads -= share;
    }
}

// out (width) = sum_i x(i) matrix(i, :), for a matrix (k, width)
COEM_INLINE void multiply(const double* matrix, const double* x, int64_t k, int64_t width,
                          double* out) {
    by_quads(width, [&](int64_t first, auto quads) {
        constexpr int N = decltype(quads)::value;
        Quad even[N];
        Quad odd[N];  // two chains of additions: one would wait for itself
        for (int q = 0; q < N; ++q) even[q] = odd[q] = Quad{};
        const double* row = matrix + first;
        int64_t i = 0;
        for (; i + 1 < k; i += 2, row += 2 * width) {
            for (int q = 0; q < N; ++q) even[q] += x[i] * take(row + q * QUAD);
            for (int q = 0; q < N; ++q) odd[q] += x[i + 1] * take(row + width + q * QUAD);
        }
        if (i < k) {
            for (int q = 0; q < N; ++q) even[q] += x[i] * take(row + q * QUAD);
        }
        for (int q = 0; q < N; ++q) put(out + first + q * QUAD, even[q] + odd[q]);
    });
}

inline Quad lanes_of(const Quad& a, const Quad& b, const Mask& mask) {
#if defined(__clang__)
    Quad out;
    for (int l = 0; l < QUAD; ++l) out[l] = mask[l] < QUAD ? a[mask[l]] : b[mask[l] - QUAD];
    return out;
#else
    return __builtin_shuffle(a, b, mask);
#endif
}

// The sums of four quads, as one.
inline Quad sum_each_of(const Quad& a, const Quad& b, const Quad& c, const Quad& d) {
    const Quad ab = lanes_of(a, b, Mask{0, 4, 2, 6}) + lanes_of(a, b, Mask{1, 5, 3, 7});
    const Quad cd = lanes_of(c, d, Mask{0, 4, 2, 6}) + lanes_of(c, d, Mask{1, 5, 3, 7});
    return lanes_of(ab, cd, Mask{0, 1, 4, 5}) + lanes_of(ab, cd, Mask{2, 3, 6, 7});
}

// matrix(i, :) . x for four rows of a matrix, from the row i on
inline Quad dots(const double* matrix, int64_t i, const double* x, int64_t width) {
    const double* row = matrix + i * width;
    Quad a = {}, b = {}, c = {}, d = {};
    for (int64_t l = 0; l < width; l += QUAD) {
        const Quad v = take(x + l);
        a += v * take(row + l);
        b += v * take(row + width + l);
        c += v * take(row + 2 * width + l);
        d += v * take(row + 3 * width + l);
    }
    return sum_each_of(a, b, c, d);
}

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

// States filled up to whole quads.
inline int64_t width_of(int64_t k) { return (k + QUAD - 1) / QUAD * QUAD; }

// Call step(number of quads as a type), 0 if it is known at run time only. Short loops cost more
// than what is in them.
template <class Step> void by_size(int64_t k, const Step& step) {
    switch (width_of(k) / QUAD) {
        case 1: return step(std::integral_constant<int, 1>{});
        case 2: return step(std::integral_constant<int, 2>{});
        case 3: return step(std::integral_constant<int, 3>{});
        case 4: return step(std::integral_constant<int, 4>{});
        default: return step(std::integral_constant<int, 0>{});
    }
}

// Transitions to the power beta, with states filled up to whole quads by ones without a chance.
struct Model {
    explicit Model(const Chain& c)
        : k(c.k), width(width_of(c.k)), beta(c.beta) {
        onward = memory_.of((width + k + 1) * width);
        logs_ = onward + width * width;
        start = logs_ + k * width;
        from_ = places_.of(k * (width + 1));
        for (int64_t i = 0; i < width; ++i) start[i] = i < k ? beta * c.log_start[i] : NEVER;
        for (int64_t cell = 0; cell < width * width; ++cell) onward[cell] = 0.0;
        for (int64_t l = 0; l < k; ++l) set_ways_to(l, c);
    }

    // The possible transitions to a state, from `n` others.
    struct Ways {
        double top = NEVER;
        double sum = 0.0;
        const int64_t* from = nullptr;
        int64_t n = 0;
    };
    // terms (n) = exp(y(from) + log transition - top), and their sum
    Ways ways_to(int64_t l, const double* y, double* terms) const {
        Ways ways;
        ways.from = from_ + l * (width + 1) + 1;
        ways.n = ways.from[-1];
        const double* logs = logs_ + l * width;
        for (int64_t e = 0; e < ways.n; ++e) {
            terms[e] = y[ways.from[e]] + logs[e];
            ways.top = terms[e] > ways.top ? terms[e] : ways.top;
        }
        if (ways.top == NEVER) return ways;
        const int64_t whole = (ways.n + QUAD - 1) / QUAD * QUAD;
        for (int64_t e = ways.n; e < whole; ++e) terms[e] = NEVER;
        Quad part = {};
        for (int64_t e = 0; e < whole; e += QUAD) {
            const Quad term = exp_below(take(terms + e) - ways.top);
            put(terms + e, term);
            part += term;
        }
        ways.sum = sum_of(part);
        return ways;
    }

    const int64_t k;
    const int64_t width;
    const double beta;
    double* onward;  // (width, width), possible transitions raised to the floor
    double* start;   // (width), logarithms

  private:
    void set_ways_to(int64_t l, const Chain& c) {
        int64_t n = 0;
        for (int64_t i = 0; i < k; ++i) {
            const double log_value = beta * c.log_transition[i * k + l];
            if (log_value == NEVER) continue;
            onward[i * width + l] = raised(log_value);
            logs_[l * width + n] = log_value;
            from_[l * (width + 1) + 1 + n] = i;
            ++n;
        }
        from_[l * (width + 1)] = n;
    }

    static double raised(double log_value) {
        const double value = std::exp(log_value);
        return value > FLOOR ? value : FLOOR;
    }

    Buffer<double> memory_;
    Buffer<int64_t> places_;
    double* logs_;   // (k, width), for each state the possible transitions to it, as they are
    int64_t* from_;  // (k, width + 1), their number and where they come from
};

enum class Path { possible, impossible, broken };

// x (width) = beta log_prob, -inf where a state is not allowed. Returns the largest, or NaN if the
// row is broken.
inline double read_row(const Model& m, int64_t width, const double* log_prob,
                       const uint8_t* allowed, double* x) {
    Quad most = all(NEVER);
    Mask broken = {};
    for (int64_t l = 0; l < width; l += QUAD) {
        const Quad row = m.beta * take_of(log_prob, l, m.k, NEVER);
        put(x + l, row);
        broken |= ~(row < INFINITE);
        most = larger(row, most);
    }
    if ((broken[0] | broken[1]) | (broken[2] | broken[3])) return NOTHING;
    if (!allowed) return largest_of(most);
    double top = NEVER;
    for (int64_t l = 0; l < m.k; ++l) {
        x[l] = allowed[l] ? x[l] : NEVER;
        top = x[l] > top ? x[l] : top;
    }
    return top;
}

// Whether no possible state is predicted with less than SAFE. One with zero is impossible.
inline bool is_safe(const double* u, int64_t width) {
    Quad least = all(1.0);
    for (int64_t l = 0; l < width; l += QUAD) {
        const Quad v = take(u + l);
        least = smaller(v > 0.0 ? v : all(1.0), least);
    }
    return least_of(least) >= SAFE;
}

// Filtered probabilities, one row after the other. A row is kept as k numbers. Those from 0 to 1
// are probabilities. A negative one is the logarithm of a probability below the floor; there are
// such only before and after steps with logarithms.
template <int N>
class Filter {
  public:
    explicit Filter(const Model& m) : m_(m) {
        const int64_t w = m.width;
        a_ = memory_.of(6 * w);
        u_ = a_ + w;
        last_u_ = a_ + 2 * w;
        x_ = a_ + 3 * w;
        y_ = a_ + 4 * w;
        terms_ = a_ + 5 * w;
    }

    // The sequence's first row. `kept` (k) receives the row, unless it is null.
    Path begin(const double* log_prob, const uint8_t* allowed, double* kept) {
        total_ = Total{};
        top_ = read_row(m_, width(), log_prob, allowed, x_);
        if (!(top_ < INFINITE)) return Path::broken;
        top_ = NEVER;
        for (int64_t l = 0; l < width(); ++l) {
            u_[l] = 1.0;
            x_[l] += m_.start[l];
            top_ = x_[l] > top_ ? x_[l] : top_;
        }
        return absorb(kept);
    }

    // The next one; `before` is where the row before was kept.
    Path next(const double* log_prob, const uint8_t* allowed, double* before, double* kept) {
        swap(u_, last_u_);
        multiply(m_.onward, a_, m_.k, width(), u_);
        const bool safe = is_safe(u_, width());
        if (!safe && !exact_) find_logs(before);
        top_ = read_row(m_, width(), log_prob, allowed, x_);
        if (!(top_ < INFINITE)) return Path::broken;
        return safe ? absorb(kept) : absorb_logs(kept);
    }

    double log_evidence() const { return total_.value(); }

    const double* row() const { return a_; }  // (width)

  private:
    int64_t width() const { return N > 0 ? N * QUAD : m_.width; }

    static void swap(double*& a, double*& b) {
        double* c = a;
        a = b;
        b = c;
    }

    // From the prediction u and the row x to filtered probabilities.
    Path absorb(double* kept) {
        join();
        if (!(sum_ >= SAFE)) {  // the state that the row likes best is hardly possible
            if (!find_top()) return Path::impossible;
            join();
        }
        const double scale = 1.0 / sum_;
        for (int64_t l = 0; l < width(); l += QUAD) {
            const Quad floor = (take(x_ + l) > NEVER) & (take(u_ + l) > 0.0) ? all(FLOOR) : Quad{};
            const Quad a = larger(take(a_ + l) * scale, floor);
            put(a_ + l, a);
            if (kept) put_of(kept, l, m_.k, a);
        }
        total_.add(top_);
        total_.add_log(sum_);
        exact_ = false;
        return Path::possible;
    }

    // a = u exp(x - top), and their sum
    void join() {
        Quad part = {};
        for (int64_t l = 0; l < width(); l += QUAD) {
            const Quad joint = take(u_ + l) * exp_below(take(x_ + l) - top_);
            put(a_ + l, joint);
            part += joint;
        }
        sum_ = sum_of(part);
    }

    // The largest x of a possible state; false if there is none. The others become impossible.
    bool find_top() {
        top_ = NEVER;
        for (int64_t l = 0; l < width(); ++l) {
            x_[l] = u_[l] > 0.0 ? x_[l] : NEVER;
            top_ = x_[l] > top_ ? x_[l] : top_;
        }
        return top_ > NEVER;
    }

    // y = the logarithms of the row before, also of what is below the floor.
    void find_logs(double* before) {
        const double scale = std::log(sum_);
        for (int64_t l = 0; l < width(); ++l) {
            const bool possible = x_[l] > NEVER && last_u_[l] > 0.0;
            y_[l] = possible ? std::log(last_u_[l]) + (x_[l] - top_ - scale) : NEVER;
        }
        keep(before);
    }

    // Keep the row of the logarithms y, whose probabilities are a.
    void keep(double* row) const {
        if (!row) return;
        for (int64_t l = 0; l < m_.k; ++l) row[l] = a_[l] == FLOOR && y_[l] < 0.0 ? y_[l] : a_[l];
    }

    double log_prediction(int64_t l) const {
        if (u_[l] >= SAFE || u_[l] == 0.0) return std::log(u_[l]);
        const auto ways = m_.ways_to(l, y_, terms_);
        return ways.top + std::log(ways.sum);
    }

    Path absorb_logs(double* kept) {
        double top = NEVER;
        for (int64_t l = 0; l < m_.k; ++l) {
            if (x_[l] > NEVER) x_[l] += log_prediction(l);
            top = x_[l] > top ? x_[l] : top;
        }
        if (top == NEVER) return Path::impossible;
        Quad part = {};
        for (int64_t l = 0; l < width(); l += QUAD) part += exp_below(take(x_ + l) - top);
        const double scale = std::log(sum_of(part));
        for (int64_t l = 0; l < width(); ++l) y_[l] = x_[l] - top - scale;
        for (int64_t l = 0; l < width(); l += QUAD) {
            const Quad y = take(y_ + l);
            const Quad floor = y > NEVER ? all(FLOOR) : Quad{};
            put(a_ + l, larger(exp_below(smaller(y, Quad{})), floor));
        }
        total_.add(top);
        total_.add(scale);
        exact_ = true;
        keep(kept);
        return Path::possible;
    }

    const Model& m_;
    Buffer<double> memory_;
    double* a_;       // filtered probabilities, not below the floor if possible
    double* u_;       // predictions
    double* last_u_;
    double* x_;       // the row, -inf where a state is impossible
    double* y_;       // logarithms of a, if exact_
    double* terms_;
    double top_ = 0.0;
    double sum_ = 0.0;
    bool exact_ = false;
    Total total_;
};

// Posteriors from the last row to the first, and expected transitions.
template <int N>
class Smoother {
  public:
    explicit Smoother(const Model& m) : m_(m) {
        const int64_t w = m.width;
        g_ = memory_.of((4 + 2 * BATCH + m.k) * w);
        u_ = g_ + w;
        y_ = g_ + 2 * w;
        terms_ = g_ + 3 * w;
        a_ = g_ + 4 * w;
        w_ = a_ + BATCH * w;
        sums_ = w_ + BATCH * w;
        for (int64_t c = 0; c < m.k * w; ++c) sums_[c] = 0.0;
    }

    // The last row's posterior, which is its filtered probabilities.
    template <class T> void begin(const double* row, T* resp) {
        for (int64_t l = 0; l < width(); ++l) g_[l] = row[l];
        normalise();
        for (int64_t l = 0; l < width(); l += QUAD) write(take(g_ + l), l, resp);
    }

    // From the posterior of the next row to that of the row that is kept.
    template <class T> void back(const double* kept, double weight, double* transitions, T* resp) {
        double* a = a_ + n_ * width();
        for (int64_t i = 0; i < width(); i += QUAD) {
            const Quad row = take_of(kept, i, m_.k, 0.0);
            put(a + i, row < 0.0 ? all(FLOOR) : row);
        }
        multiply(m_.onward, a, m_.k, width(), u_);
        // What is not there need not be predicted.
        for (int64_t l = 0; l < width(); l += QUAD) {
            put(u_ + l, take(g_ + l) > 0.0 ? take(u_ + l) : all(1.0));
        }
        if (!is_safe(u_, width())) {
            back_by_logs(kept, weight, transitions);
            for (int64_t l = 0; l < width(); l += QUAD) write(take(g_ + l), l, resp);
            return;
        }
        double* w = w_ + n_ * width();
        for (int64_t l = 0; l < width(); l += QUAD) put(w + l, take(g_ + l) / take(u_ + l));
        for (int64_t i = 0; i < width(); i += QUAD) {
            const Quad g = take(a + i) * dots(m_.onward, i, w, width());
            put(g_ + i, g < TRACE ? Quad{} : g);
            write(g, i, resp);
        }
        weights_[n_] = weight;
        if (++n_ == BATCH) {
            add_batch();
            normalise();
        }
    }

    // transitions (k, k) += all that is not there yet
    void finish(const Chain& c, double* transitions) {
        add_batch();
        for (int64_t i = 0; i < m_.k; ++i) {
            for (int64_t l = 0; l < m_.k; ++l) {
                const double share = std::exp(m_.beta * c.log_transition[i * m_.k + l]);
                transitions[i * m_.k + l] += share * sums_[i * width() + l];
            }
        }
    }

    const double* row() const { return g_; }

  private:
    int64_t width() const { return N > 0 ? N * QUAD : m_.width; }

    template <class T> void write(const Quad& g, int64_t l, T* resp) const {
        put_of(resp, l, m_.k, g < NEGLIGIBLE<T> ? Quad{} : g);
    }

    // Rounding errors must not add up over a long sequence.
    void normalise() {
        Quad part = {};
        for (int64_t l = 0; l < width(); l += QUAD) part += take(g_ + l);
        const double scale = 1.0 / sum_of(part);
        for (int64_t l = 0; l < width(); l += QUAD) {
            const Quad g = take(g_ + l) * scale;
            put(g_ + l, g < TRACE ? Quad{} : g);
        }
    }

    void back_by_logs(const double* kept, double weight, double* transitions) {
        const int64_t k = m_.k;
        for (int64_t i = 0; i < k; ++i) y_[i] = kept[i] < 0.0 ? kept[i] : std::log(kept[i]);
        double* sums = u_;
        for (int64_t i = 0; i < width(); ++i) sums[i] = 0.0;
        for (int64_t l = 0; l < k; ++l) {
            if (!(g_[l] > 0.0)) continue;
            const auto ways = m_.ways_to(l, y_, terms_);
            for (int64_t e = 0; e < ways.n; ++e) {
                const double expected = g_[l] / ways.sum * terms_[e];
                sums[ways.from[e]] += expected;
                transitions[ways.from[e] * k + l] += weight * expected;
            }
        }
        for (int64_t i = 0; i < width(); ++i) g_[i] = sums[i];
        normalise();
    }

    // sums (k, width) += sum over the batch of a(i) w(l)
    void add_batch() {
        int64_t i = 0;
        for (; i + 1 < m_.k; i += 2) add_batch_to<2>(i);
        if (i < m_.k) add_batch_to<1>(i);
        n_ = 0;
    }

    template <int ROWS> void add_batch_to(int64_t i) {
        by_quads(width(), [&](int64_t first, auto quads) {
            constexpr int M = decltype(quads)::value;
            double* to = sums_ + i * width() + first;
            Quad part[ROWS][M];
            for (int r = 0; r < ROWS; ++r) {
                for (int q = 0; q < M; ++q) part[r][q] = take(to + r * width() + q * QUAD);
            }
            for (int64_t s = 0; s < n_; ++s) {
                double a[ROWS];
                for (int r = 0; r < ROWS; ++r) a[r] = weights_[s] * a_[s * width() + i + r];
                const double* w = w_ + s * width() + first;
                for (int q = 0; q < M; ++q) {
                    const Quad v = take(w + q * QUAD);
                    for (int r = 0; r < ROWS; ++r) part[r][q] += a[r] * v;
                }
            }
            for (int r = 0; r < ROWS; ++r) {
                for (int q = 0; q < M; ++q) put(to + r * width() + q * QUAD, part[r][q]);
            }
        });
    }

    const Model& m_;
    Buffer<double> memory_;
    double* g_;      // the posterior
    double* u_;
    double* y_;
    double* terms_;
    double* a_;      // (BATCH, width)
    double* w_;      // (BATCH, width)
    double weights_[BATCH];
    double* sums_;   // (k, width), to be multiplied by the transitions
    int64_t n_ = 0;  // steps in the batch
};

inline double value_of(Path path, double value) {
    return path == Path::possible     ? value
           : path == Path::impossible ? NEVER
                                      : NOTHING;
}

// Filter a sequence of n rows; they are kept in place if wished.
template <int N>
Path filter_all(Filter<N>& filter, int64_t k, int64_t n, double* rows, const uint8_t* allowed,
                       bool keep) {
    Path path = Path::possible;
    for (int64_t t = 0; t < n && path == Path::possible; ++t) {
        double* row = rows + t * k;
        const uint8_t* open = allowed ? allowed + t * k : nullptr;
        double* to = keep ? row : nullptr;
        path = t == 0 ? filter.begin(row, open, to)
                      : filter.next(row, open, keep ? row - k : nullptr, to);
    }
    return path;
}

template <int N> void forward_sized(const Chain& c, const Sequences& seq, double* objective) {
    const Model model(c);
    Filter<N> filter(model);
    for (int64_t s = seq.lo; s < seq.hi; ++s) {
        const int64_t first = seq.offsets[s];
        const int64_t n = seq.offsets[s + 1] - first;
        const uint8_t* allowed = seq.allowed ? seq.allowed + first * c.k : nullptr;
        const Path path = filter_all(filter, c.k, n, seq.log_prob + first * c.k, allowed, false);
        objective[s] = n == 0 ? 0.0 : value_of(path, filter.log_evidence() / c.beta);
    }
}

inline void forward(const Chain& c, const Sequences& seq, double* objective) {
    by_size(c.k, [&](auto n) { forward_sized<decltype(n)::value>(c, seq, objective); });
}

template <int N, class T>
void forward_backward_sized(const Chain& c, const Sequences& seq, const ChainCounts& counts,
                            double* objective, T* resp) {
    const int64_t k = c.k;
    const Model model(c);
    Filter<N> filter(model);
    Smoother<N> smoother(model);
    for (int64_t s = seq.lo; s < seq.hi; ++s) {
        const int64_t first = seq.offsets[s];
        const int64_t n = seq.offsets[s + 1] - first;
        objective[s] = 0.0;
        if (n == 0) continue;
        double* rows = seq.log_prob + first * k;
        T* out = resp + first * k;
        const double weight = seq.weights ? seq.weights[s] : 1.0;
        const uint8_t* allowed = seq.allowed ? seq.allowed + first * k : nullptr;
        const Path path = filter_all(filter, k, n, rows, allowed, true);
        objective[s] = value_of(path, filter.log_evidence() / c.beta);
        if (path != Path::possible) {
            for (int64_t cell = 0; cell < n * k; ++cell) out[cell] = T{0};
            continue;
        }
        smoother.begin(filter.row(), out + (n - 1) * k);
        for (int64_t t = n - 2; t >= 0; --t) {
            smoother.back(rows + t * k, weight, counts.transitions, out + t * k);
        }
        for (int64_t l = 0; l < k; ++l) counts.starts[l] += weight * smoother.row()[l];
    }
    smoother.finish(c, counts.transitions);
}

template <class T>
void forward_backward(const Chain& c, const Sequences& seq, const ChainCounts& counts,
                      double* objective, T* resp) {
    by_size(c.k, [&](auto n) {
        forward_backward_sized<decltype(n)::value>(c, seq, counts, objective, resp);
    });
}

// The best paths to every state of a row, with pointers of type P to the states before.
template <int N, class P>
class Decoder {
  public:
    Decoder(const Chain& c, void* pointers)
        : k_(c.k), width_(width_of(c.k)), chain_(c),
          pointers_(static_cast<P*>(pointers)) {
        logs_ = memory_.of((k_ + 2) * width_);
        best_ = logs_ + k_ * width_;
        next_ = best_ + width_;
        for (int64_t i = 0; i < k_; ++i) {
            for (int64_t l = 0; l < width_; ++l) {
                logs_[i * width_ + l] = l < k_ ? c.log_transition[i * k_ + l] : NEVER;
            }
        }
    }

    Path run(int64_t n, const double* rows, const uint8_t* allowed) {
        total_ = Total{};
        for (int64_t l = 0; l < width_; ++l) next_[l] = l < k_ ? chain_.log_start[l] : NEVER;
        for (int64_t t = 0; t < n; ++t) {
            if (t > 0) extend(pointers_ + t * k_);
            const Path path = absorb(rows + t * k_, allowed ? allowed + t * k_ : nullptr);
            if (path != Path::possible) return path;
        }
        return Path::possible;
    }

    double log_joint() const { return total_.value(); }

    // states (n) = the best path, of equals the one with the least states from its end
    void trace(int64_t n, int32_t* states) const {
        int64_t at = 0;
        for (int64_t l = 1; l < k_; ++l) at = best_[l] > best_[at] ? l : at;
        for (int64_t t = n - 1; t > 0; --t) {
            states[t] = static_cast<int32_t>(at);
            at = static_cast<int64_t>(pointers_[t * k_ + at]);
        }
        states[0] = static_cast<int32_t>(at);
    }

  private:
    int64_t width() const { return N > 0 ? N * QUAD : width_; }

    // next(l) = max_i best(i) + log transition(i, l), and to(l) the least such i
    void extend(P* to) {
        by_quads(width(), [&](int64_t first, auto quads) {
            constexpr int M = decltype(quads)::value;
            Quad most[M];
            Mask where[M];
            for (int q = 0; q < M; ++q) {
                most[q] = all(NEVER);
                where[q] = Mask{};
            }
            const double* row = logs_ + first;
            for (int64_t i = 0; i < k_; ++i, row += width()) {
                const Mask here = Mask{i, i, i, i};
                for (int q = 0; q < M; ++q) {
                    const Quad way = best_[i] + take(row + q * QUAD);
                    where[q] = way > most[q] ? here : where[q];
                    most[q] = larger(way, most[q]);
                }
            }
            for (int q = 0; q < M; ++q) {
                const int64_t l = first + q * QUAD;
                put(next_ + l, most[q]);
                for (int64_t e = 0; e < QUAD && l + e < k_; ++e) {
                    to[l + e] = static_cast<P>(where[q][e]);
                }
            }
        });
    }

    // best = next + the row, less the largest of them
    Path absorb(const double* log_prob, const uint8_t* allowed) {
        Quad most = all(NEVER);
        Mask broken = {};
        for (int64_t l = 0; l < width(); l += QUAD) {
            const Quad row = take_of(log_prob, l, k_, NEVER);
            const Quad joint = take(next_ + l) + row;
            broken |= ~(row < INFINITE);
            most = larger(joint, most);
            put(best_ + l, joint);
        }
        if ((broken[0] | broken[1]) | (broken[2] | broken[3])) return Path::broken;
        double top = largest_of(most);
        if (allowed) {
            top = NEVER;
            for (int64_t l = 0; l < k_; ++l) {
                best_[l] = allowed[l] ? best_[l] : NEVER;
                top = best_[l] > top ? best_[l] : top;
            }
        }
        if (top == NEVER) return Path::impossible;
        for (int64_t l = 0; l < width(); l += QUAD) put(best_ + l, take(best_ + l) - top);
        total_.add(top);
        return Path::possible;
    }

    int64_t k_;
    int64_t width_;
    const Chain& chain_;
    P* pointers_;
    Buffer<double> memory_;
    double* logs_;  // (k, width)
    double* best_;  // (width)
    double* next_;  // (width)
    Total total_;
};

template <int N, class P, class T>
void decode(const Chain& c, const Sequences& seq, const ChainCounts& counts, void* pointers,
            double* objective, int32_t* states, T* resp) {
    const int64_t k = c.k;
    Decoder<N, P> decoder(c, pointers);
    for (int64_t s = seq.lo; s < seq.hi; ++s) {
        const int64_t first = seq.offsets[s];
        const int64_t n = seq.offsets[s + 1] - first;
        objective[s] = 0.0;
        if (n == 0) continue;
        int32_t* path = states + first;
        const Path found = decoder.run(n, seq.log_prob + first * k,
                                       seq.allowed ? seq.allowed + first * k : nullptr);
        objective[s] = value_of(found, decoder.log_joint());
        if (resp) {
            for (int64_t cell = first * k; cell < (first + n) * k; ++cell) resp[cell] = T{0};
        }
        if (found != Path::possible) {
            for (int64_t t = 0; t < n; ++t) path[t] = -1;
            continue;
        }
        decoder.trace(n, path);
        const double weight = seq.weights ? seq.weights[s] : 1.0;
        counts.starts[path[0]] += weight;
        for (int64_t t = 1; t < n; ++t) counts.transitions[path[t - 1] * k + path[t]] += weight;
        for (int64_t t = 0; resp && t < n; ++t) resp[(first + t) * k + path[t]] = T{1};
    }
}

template <class T>
void viterbi(const Chain& c, const Sequences& seq, const ChainCounts& counts, void* pointers,
             double* objective, int32_t* states, T* resp) {
    const auto run = [&](auto n, auto pointer) {
        decode<decltype(n)::value, decltype(pointer)>(c, seq, counts, pointers, objective, states,
                                                      resp);
    };
    constexpr std::integral_constant<int, 0> many{};
    switch (pointer_size(c.k)) {
        case 1: return by_size(c.k, [&](auto n) { run(n, uint8_t{}); });
        case 2: return run(many, std::uint16_t{});
        default: return run(many, int32_t{});
    }
}

}  // namespace

template <class T> const ChainKernels<T>& chain_table() {
    static const ChainKernels<T> all{forward_backward<T>, forward, viterbi<T>};
    return all;
}
template const ChainKernels<float>& chain_table<float>();
template const ChainKernels<double>& chain_table<double>();

}  // namespace coem::COEM_ISA
