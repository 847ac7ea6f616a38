// Whether the arrays of a CSR matrix fit each other. The other kernels, and SciPy's, trust what is
// said here.
#pragma once

#include <cstdint>

namespace coem {

// Return the first row that points outside the arrays or the columns; else -1 if all rows have
// their columns in order and none twice, and -2 if not. `indptr` must begin with 0. Nothing is read
// beyond `n_stored` indices, whatever the arrays hold.
template <class Index>
std::int64_t look_at(const Index* indptr, std::int64_t n_rows, const Index* indices,
                     std::int64_t n_stored, std::int64_t n_columns);

}  // namespace coem
