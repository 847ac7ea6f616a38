// Whether the arrays of a CSR matrix fit each other, and its Python binding. The other kernels, and
// SciPy's, trust what is said here.

#include <algorithm>
#include <cstdint>
#include <limits>
#include <type_traits>

#include "bindings.hpp"

namespace coem {
namespace {

using std::int64_t;

constexpr int64_t kCanonical = -1, kLoose = -2;

// What `structure` returns. Nothing is read beyond `n_stored`, whatever the arrays hold.
template <class Index>
int64_t look(const Index* indptr, int64_t n_rows, const Index* indices, int64_t n_stored,
             int64_t n_columns) {
    using Unsigned = std::make_unsigned_t<Index>;
    // An index below 0 is far above as unsigned, and never below the width.
    const auto width = std::min(static_cast<std::uint64_t>(n_columns),
                                std::uint64_t{std::numeric_limits<Index>::max()} + 1);
    bool loose = false;
    for (int64_t row = 0; row < n_rows; ++row) {
        const int64_t lo = indptr[row], hi = indptr[row + 1];
        if (lo < 0 || hi < lo || hi > n_stored) return row;
        // Without branches, so that several are compared at once.
        Unsigned top = 0;
        unsigned back = 0;
        for (int64_t i = lo; i < hi; ++i) {
            top = static_cast<Unsigned>(indices[i]) > top ? static_cast<Unsigned>(indices[i]) : top;
        }
        if (lo < hi && top >= width) return row;
        for (int64_t i = lo + 1; i < hi; ++i) back |= indices[i] <= indices[i - 1];
        loose |= back != 0;
    }
    return loose ? kLoose : kCanonical;
}

// Return the first row that points outside the arrays or the columns; else -1 if all rows have
// their columns in order and none twice, and -2 if not. `indptr` must begin with 0.
template <class Index>
int64_t structure(const In1<Index>& indptr, const In1<Index>& indices, int64_t n_columns) {
    require(indptr.shape(0) >= 1, "indptr must not be empty");
    require(n_columns >= 0, "there cannot be fewer than 0 columns");
    const nb::gil_scoped_release free;
    return look(indptr.data(), extent(indptr.shape(0)) - 1, indices.data(),
                extent(indices.shape(0)), n_columns);
}

}  // namespace

void bind_structure(nb::module_& m) {
    const auto exact = [](const char* name) { return nb::arg(name).noconvert(); };
    m.def("structure", structure<std::int32_t>, exact("indptr"), exact("indices"),
          nb::arg("n_columns"));
    m.def("structure", structure<int64_t>, exact("indptr"), exact("indices"),
          nb::arg("n_columns"));
}

}  // namespace coem
