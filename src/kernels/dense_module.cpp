// Python bindings of the kernels of dense rows.

#include <nanobind/stl/optional.h>

#include <optional>

#include "bindings.hpp"
#include "dense.hpp"

namespace coem {
namespace {

DenseRows dense_rows(const In2<double>& rows) {
    return {rows.data(), extent(rows.shape(0)), extent(rows.shape(1))};
}

void closeness(const In2<double>& rows, const In2<double>& means, double constant,
               const Out2<double>& out) {
    require(means.shape(0) > 0 && rows.shape(1) == means.shape(1),
            "means must be as wide as the rows, one at least");
    require(out.shape(0) == rows.shape(0) && out.shape(1) == means.shape(0),
            "out must be (rows, means)");
    const nb::gil_scoped_release free;
    dense_kernels().closeness(dense_rows(rows), dense_rows(means), constant, out.data());
}

void assign(const Out2<double>& log_joint, const In1<double>& log_weights,
            const std::optional<In2<std::uint8_t>>& allowed, const Out1<double>& evidence,
            const Out1<double>& objective, const Out1<std::int32_t>& labels) {
    const std::size_t n = log_joint.shape(0);
    const std::size_t k = log_joint.shape(1);
    require(k > 0 && log_weights.shape(0) == k, "log_weights must have one entry a component");
    require(!allowed || (allowed->shape(0) == n && allowed->shape(1) == k), "allowed: wrong shape");
    require(evidence.shape(0) == n && objective.shape(0) == n && labels.shape(0) == n,
            "evidence, objective and labels must have one entry a row");
    const nb::gil_scoped_release free;
    dense_kernels().assign({log_joint.data(), log_weights.data(),
                            allowed ? allowed->data() : nullptr, extent(n), extent(k), 1.0, true,
                            evidence.data(), objective.data()},
                           labels.data());
}

void sum_by_label(const In2<double>& rows, const In1<std::int32_t>& labels,
                  const std::optional<In1<double>>& weights, const Out2<double>& sums) {
    const DenseRows x = dense_rows(rows);
    require(extent(labels.shape(0)) == x.n && (!weights || extent(weights->shape(0)) == x.n),
            "labels and weights must have one entry a row");
    require(extent(sums.shape(1)) == x.d, "sums must be as wide as the rows");
    for (std::int64_t i = 0; i < x.n; ++i) {
        require(0 <= labels.data()[i] && labels.data()[i] < extent(sums.shape(0)),
                "labels out of range");
    }
    const nb::gil_scoped_release free;
    dense_kernels().sum_by_label(x, labels.data(), weights ? weights->data() : nullptr,
                                 sums.data());
}

}  // namespace

void bind_dense(nb::module_& m) {
    const auto exact = [](const char* name) { return nb::arg(name).noconvert(); };
    m.def("closeness", closeness, exact("rows"), exact("means"), nb::arg("constant"),
          exact("out"));
    m.def("assign", assign, exact("log_joint"), exact("log_weights"), exact("allowed").none(),
          exact("evidence"), exact("objective"), exact("labels"));
    m.def("sum_by_label", sum_by_label, exact("rows"), exact("labels"), exact("weights").none(),
          exact("sums"));
}

}  // namespace coem
