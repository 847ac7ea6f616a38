#include "structure.hpp"

#include <algorithm>
#include <limits>
#include <type_traits>

namespace coem {

using std::int64_t;

static constexpr int64_t kCanonical = -1, kLoose = -2;

template <class Index>
int64_t look_at(const Index* indptr, int64_t n_rows, const Index* indices, int64_t n_stored,
                int64_t n_columns) {
    using Unsigned = std::make_unsigned_t<Index>;
    // An index below 0 is far above as unsigned, and never below the width.
    const auto width = std::min(static_cast<std::uint64_t>(n_columns),
                                std::uint64_t{std::numeric_limits<Index>::max()} + 1);
    bool loose = false;
    for (int64_t row = 0; row < n_rows; ++row) {
        const int64_t lo = indptr[row], hi = indptr[row + 1];
        if (lo < 0 || hi < lo || hi > n_stored) return row;
        if (lo == hi) continue;
        // Without branches, so that several are compared at once.
        int back = 0;
        for (int64_t i = lo + 1; i < hi; ++i) back |= indices[i] <= indices[i - 1];
        // Of columns in order the first and the last say whether all are inside.
        Unsigned top = std::max(static_cast<Unsigned>(indices[lo]),
                                static_cast<Unsigned>(indices[hi - 1]));
        if (back) {
            loose = true;
            for (int64_t i = lo; i < hi; ++i) {
                top = std::max(top, static_cast<Unsigned>(indices[i]));
            }
        }
        if (top >= width) return row;
    }
    return loose ? kLoose : kCanonical;
}

template int64_t look_at<std::int32_t>(const std::int32_t*, int64_t, const std::int32_t*, int64_t,
                                       int64_t);
template int64_t look_at<int64_t>(const int64_t*, int64_t, const int64_t*, int64_t, int64_t);

}  // namespace coem
