#include "structure.hpp"

#include <algorithm>
#include <limits>
#include <type_traits>

namespace coem {

using std::int64_t;

static constexpr int64_t kCanonical = -1, kLoose = -2;

static constexpr int64_t kBlock = 1 << 16;  // indices whose descents a 32-bit number can count

// Return how many of `n` indices are not above the one before them. Rows play no part, so that the
// loop is long, and several indices are compared at once.
template <class Index> int64_t count_descents(const Index* indices, int64_t n) {
    int64_t total = 0;
    for (int64_t lo = 1; lo < n; lo += kBlock) {
        const int64_t hi = std::min(lo + kBlock, n);
        Index found = 0;
        for (int64_t i = lo; i < hi; ++i) found += indices[i] <= indices[i - 1];
        total += found;
    }
    return total;
}

template <class Index>
int64_t look_at(const Index* indptr, int64_t n_rows, const Index* indices, int64_t n_stored,
                int64_t n_columns) {
    using Unsigned = std::make_unsigned_t<Index>;
    // An index below 0 is far above as unsigned, and never below the width.
    const auto width = std::min(static_cast<std::uint64_t>(n_columns),
                                std::uint64_t{std::numeric_limits<Index>::max()} + 1);
    const int64_t first = indptr[0];
    int64_t between = 0;       // descents from the end of a row to the beginning of the next
    int64_t sound = 0;         // rows before the first one that is not in the arrays
    int64_t outside = n_rows;  // the first row that is known to point outside
    for (; sound < n_rows; ++sound) {
        const int64_t lo = indptr[sound], hi = indptr[sound + 1];
        if (lo < 0 || hi < lo || hi > n_stored) {
            outside = std::min(outside, sound);
            break;
        }
        if (lo == hi) continue;
        if (lo > first) between += indices[lo] <= indices[lo - 1];
        const auto top = std::max(static_cast<Unsigned>(indices[lo]),
                                  static_cast<Unsigned>(indices[hi - 1]));
        if (top >= width) outside = std::min(outside, sound);
    }
    // Of columns in order the first and the last say whether all are inside.
    const bool loose =
        sound > 0 && count_descents(indices + first, indptr[sound] - first) > between;
    for (int64_t row = 0; loose && row < outside; ++row) {
        Unsigned top = 0;
        for (int64_t i = indptr[row]; i < indptr[row + 1]; ++i) {
            top = std::max(top, static_cast<Unsigned>(indices[i]));
        }
        if (top >= width) return row;
    }
    if (outside < n_rows) return outside;
    return loose ? kLoose : kCanonical;
}

template int64_t look_at<std::int32_t>(const std::int32_t*, int64_t, const std::int32_t*, int64_t,
                                       int64_t);
template int64_t look_at<int64_t>(const int64_t*, int64_t, const int64_t*, int64_t, int64_t);

}  // namespace coem
