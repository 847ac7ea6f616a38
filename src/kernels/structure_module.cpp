// The Python binding of the check of CSR matrices.

#include "bindings.hpp"
#include "structure.hpp"

namespace coem {
namespace {

using std::int64_t;

template <class Index>
int64_t structure(const In1<Index>& indptr, const In1<Index>& indices, int64_t n_columns) {
    require(indptr.shape(0) >= 1, "indptr must not be empty");
    require(n_columns >= 0, "there cannot be fewer than 0 columns");
    const nb::gil_scoped_release free;
    return look_at(indptr.data(), extent(indptr.shape(0)) - 1, indices.data(),
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
