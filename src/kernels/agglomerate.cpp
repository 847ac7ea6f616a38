// Every slot knows the nearest of the slots after it, or only that none is nearer than a bound:
// the generic algorithm of Müllner (2011), with a scan of the bounds in place of a heap. Chains of
// nearest neighbours would be simpler, but they merge out of order, and views that take turns
// need the order.

#include "agglomerate.hpp"

#include <algorithm>
#include <cstddef>
#include <limits>
#include <numeric>
#include <vector>

#include "simd.hpp"

namespace coem {
namespace {

using std::int32_t;
using std::int64_t;

constexpr int64_t AHEAD = 16;          // rows between a prefetch and its use
constexpr int32_t UNKNOWN = -1;        // the nearest slot must be looked for
constexpr int64_t PATIENCE = 1 << 24;  // cells, about, between two questions if to keep on
template <class T> constexpr T FAR = std::numeric_limits<T>::infinity();  // a slot given up

template <class T> T least(const T* p, int64_t n) {
    Vec<T> low = Vec<T>{} + FAR<T>;
    Vec<T> high = low;  // two, because one would wait for itself
    int64_t i = 0;
    for (; i + 2 * LANES <= n; i += 2 * LANES) {
        const Vec<T> x = load(p + i), y = load(p + i + LANES);
        low = x < low ? x : low;
        high = y < high ? y : high;
    }
    T best = FAR<T>;
    for (int l = 0; l < LANES; ++l) best = std::min({best, low[l], high[l]});
    for (; i < n; ++i) best = std::min(best, p[i]);
    return best;
}

// Returns the first place of the least of n numbers, or n if they are all FAR.
template <class T> int64_t first_least(const T* p, int64_t n) {
    constexpr int64_t stretch = 512;
    T best = FAR<T>;
    int64_t where = n;
    for (int64_t i = 0; i < n; i += stretch) {
        const T here = least(p + i, std::min(stretch, n - i));
        if (here < best) {
            best = here;
            where = i;
        }
    }
    if (where < n) {
        while (p[where] != best) ++where;
    }
    return where;
}

// The distance of a cluster from the union of two (Lance and Williams).
template <class T, Linkage linkage> struct Join {
    double size_a, size_b;

    T operator()(T x, T y) const {
        if constexpr (linkage == Linkage::single) return y < x ? y : x;
        if constexpr (linkage == Linkage::complete) return x < y ? y : x;
        // Rounded like NumPy: this file is compiled without contraction to fused operations.
        return static_cast<T>((size_a * x + size_b * y) / (size_a + size_b));
    }
};

// The distances between slots in one view. A given-up slot is FAR from all slots before it, and
// its own row is never read again.
template <class T> class Distances {
  public:
    Distances(T* cells, int64_t n) : cells_(cells), n_(n), bound_(n), nearest_(n) {
        for (int64_t i = 0; i < n; ++i) rescan(i);
    }

    int64_t partner(int64_t slot) const { return nearest_[slot]; }
    T bound(int64_t slot) const { return bound_[slot]; }

    // Returns the first slot of the closest pair. Adds the cells it looked at to `work`.
    int64_t closest(int64_t& work) {
        for (;;) {
            const int64_t i = first_least(bound_.data(), n_);
            work += n_;
            if (nearest_[i] != UNKNOWN) return i;
            rescan(i);
            work += n_ - i;
        }
    }

    // Puts the union of slots a < b into slot a and gives up slot b.
    template <class Rule> void merge(int64_t a, int64_t b, const int64_t* sizes, Rule join) {
        T* const row_a = row(a);
        const T* const row_b = row(b);
        merge_before(a, b, sizes, join);
        for (int64_t k = a + 1; k < b; ++k) {
            __builtin_prefetch(row(std::min(k + AHEAD, b - 1)) + b, 1);
            if (!sizes[k]) continue;
            T& cell = row(k)[b];
            row_a[k] = join(row_a[k], cell);
            cell = FAR<T>;
            if (nearest_[k] == b) nearest_[k] = UNKNOWN;
        }
        row_a[b] = FAR<T>;
        for (int64_t k = b + 1; k < n_; ++k) row_a[k] = join(row_a[k], row_b[k]);
        bound_[b] = FAR<T>;
        nearest_[b] = UNKNOWN;
        rescan(a);
    }

    // Moves the kept slots together, in their order. Cells only ever move forwards.
    void compact(const std::vector<int64_t>& kept) {
        const int64_t m = static_cast<int64_t>(kept.size());
        std::vector<int32_t> place(n_, UNKNOWN);
        for (int64_t i = 0; i < m; ++i) place[kept[i]] = static_cast<int32_t>(i);
        T* to = cells_;
        for (int64_t i = 0; i < m; ++i) {
            const T* const from = row(kept[i]);
            for (int64_t k = i + 1; k < m; ++k) *to++ = from[kept[k]];
            const int32_t old = nearest_[kept[i]];
            nearest_[i] = old == UNKNOWN ? UNKNOWN : place[old];
            bound_[i] = bound_[kept[i]];
        }
        n_ = m;
    }

  private:
    // Returns the row of a slot, such that row(i)[k] is the distance of i and k > i.
    T* row(int64_t i) { return cells_ + (i * (2 * n_ - i - 1) / 2 - i - 1); }

    void rescan(int64_t i) {
        const T* const after = row(i) + i + 1;
        const int64_t rest = n_ - i - 1;
        const int64_t j = first_least(after, rest);
        bound_[i] = j < rest ? after[j] : FAR<T>;
        nearest_[i] = j < rest ? static_cast<int32_t>(i + 1 + j) : UNKNOWN;
    }

    // A union is no nearer than its nearer part (but for rounding), so bounds stay true.
    template <class Rule>
    void merge_before(int64_t a, int64_t b, const int64_t* sizes, Rule join) {
        for (int64_t k = 0; k < a; ++k) {
            const T* const soon = row(std::min(k + AHEAD, a - 1));
            __builtin_prefetch(soon + a, 1);
            __builtin_prefetch(soon + b, 1);
            if (!sizes[k]) continue;
            T* const cells = row(k);
            const T d = join(cells[a], cells[b]);
            cells[a] = d;
            cells[b] = FAR<T>;
            const int32_t old = nearest_[k];
            const bool gone = old == a || old == b;
            if (d < bound_[k] || (d == bound_[k] && old != UNKNOWN && (gone || a < old))) {
                bound_[k] = d;
                nearest_[k] = static_cast<int32_t>(a);
            } else if (gone) {
                nearest_[k] = UNKNOWN;
            }
        }
    }

    T* cells_;
    int64_t n_;
    std::vector<T> bound_;          // no slot after this one is nearer
    std::vector<int32_t> nearest_;  // the first slot at that distance, or UNKNOWN
};

template <class T, Linkage linkage> class Agglomeration {
  public:
    Agglomeration(T* cells, int64_t n_views, int64_t n) : n_(n), sizes_(n, 1), clusters_(n) {
        std::iota(clusters_.begin(), clusters_.end(), 0);
        for (int64_t v = 0; v < n_views; ++v) views_.emplace_back(cells + v * (n * (n - 1) / 2), n);
    }

    bool run(bool (*keep_on)(), const Merges& merges) {
        int64_t work = 0;
        for (int64_t t = 0; t + 1 < n_; ++t) {
            Distances<T>& view = views_[t % views_.size()];
            const int64_t a = view.closest(work), b = view.partner(a);
            record(t, a, b, view.bound(a), merges);
            const Join<T, linkage> join{static_cast<double>(sizes_[a]),
                                        static_cast<double>(sizes_[b])};
            const int64_t both = sizes_[a] + sizes_[b];
            for (Distances<T>& each : views_) each.merge(a, b, sizes_.data(), join);
            sizes_[a] = both;
            sizes_[b] = 0;
            const int64_t n_left = n_ - t - 1;
            // Columns of fewer and shorter rows; nine sixteenths of the cells of the last time, so
            // that all the moving costs about two scans.
            if (4 * n_left <= 3 * static_cast<int64_t>(sizes_.size())) compact(n_left);
            work += static_cast<int64_t>(sizes_.size() * views_.size());
            if (work > PATIENCE) {
                work = 0;
                if (!keep_on()) return false;
            }
        }
        return true;
    }

  private:
    void record(int64_t t, int64_t a, int64_t b, T distance, const Merges& merges) {
        merges.children[2 * t] = std::min(clusters_[a], clusters_[b]);
        merges.children[2 * t + 1] = std::max(clusters_[a], clusters_[b]);
        merges.distances[t] = distance;
        merges.sizes[t] = sizes_[a] + sizes_[b];
        clusters_[a] = n_ + t;
    }

    void compact(int64_t n_left) {
        std::vector<int64_t> kept;
        kept.reserve(n_left);
        for (std::size_t i = 0; i < sizes_.size(); ++i) {
            if (sizes_[i]) kept.push_back(static_cast<int64_t>(i));
        }
        for (Distances<T>& view : views_) view.compact(kept);
        for (int64_t i = 0; i < n_left; ++i) {
            sizes_[i] = sizes_[kept[i]];
            clusters_[i] = clusters_[kept[i]];
        }
        sizes_.resize(n_left);
        clusters_.resize(n_left);
    }

    int64_t n_;
    std::vector<int64_t> sizes_;     // rows in a slot; 0: given up
    std::vector<int64_t> clusters_;  // number of the cluster in a slot
    std::vector<Distances<T>> views_;
};

}  // namespace

template <class T>
bool agglomerate(T* cells, int64_t n_views, int64_t n, Linkage linkage, bool (*keep_on)(),
                 const Merges& merges) {
    switch (linkage) {
        case Linkage::single:
            return Agglomeration<T, Linkage::single>(cells, n_views, n).run(keep_on, merges);
        case Linkage::complete:
            return Agglomeration<T, Linkage::complete>(cells, n_views, n).run(keep_on, merges);
        default:
            return Agglomeration<T, Linkage::average>(cells, n_views, n).run(keep_on, merges);
    }
}

template bool agglomerate(float*, int64_t, int64_t, Linkage, bool (*)(), const Merges&);
template bool agglomerate(double*, int64_t, int64_t, Linkage, bool (*)(), const Merges&);

}  // namespace coem
