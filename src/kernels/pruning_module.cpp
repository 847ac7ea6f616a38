// Python bindings of the kernels for many components.

#include <nanobind/stl/optional.h>

#include <optional>

#include "bindings.hpp"
#include "counts.hpp"
#include "csr_arrays.hpp"

namespace coem {
namespace {

const auto as_it_is = [](const char* name) { return nb::arg(name).noconvert(); };

std::int64_t whole_units(std::int64_t k) { return (k + 7) / 8 * 8; }

template <class Gaps, class Level> Bounds bounds(const Gaps& gaps, const Level& level, std::int64_t n) {
    require(extent(gaps.shape(0)) == n && extent(level.shape(0)) == n,
            "gaps and level must have one entry for each row");
    return {gaps.data(), level.data(), extent(gaps.shape(1))};
}

void set_bounds(const In2<double>& scores, const std::optional<In1<std::int32_t>>& columns,
                const Out1<double>& level, const Out2<std::uint16_t>& gaps) {
    const std::int64_t n = extent(scores.shape(0));
    const std::int64_t m = extent(scores.shape(1));
    const Bounds b = bounds(gaps, level, n);
    require(m > 0 && (!columns || extent(columns->shape(0)) == m), "columns must fit the scores");
    for (std::int64_t c = 0; columns && c < m; ++c) {
        require(0 <= columns->data()[c] && columns->data()[c] < b.stride, "columns out of range");
    }
    require(m <= b.stride, "gaps must have a column a component");
    const nb::gil_scoped_release free;
    kernels<float>().set_bounds(b, scores.data(), columns ? columns->data() : nullptr, n, m);
}

template <class T>
void rises(const In1<T>& before, const In1<T>& after, std::int64_t lo, std::int64_t hi,
           const Out1<T>& rise) {
    const std::int64_t k = extent(rise.shape(0));
    require(before.shape(0) == after.shape(0) && k > 0, "the tables must have the same size");
    require(0 <= lo && lo <= hi && hi * k <= extent(before.shape(0)), "words out of range");
    const nb::gil_scoped_release free;
    kernels<T>().rises(before.data(), after.data(), k, lo, hi, rise.data());
}

template <class T>
std::int64_t chances(const Any1& indptr, const Any1& indices, const Any1& data,
                     const In1<T>& table, const In1<double>& rise, const In1<double>& log_weights,
                     const std::optional<In2<std::uint8_t>>& allowed,
                     const std::optional<In1<std::uint8_t>>& blank, double reach,
                     const Out1<double>& level, const Out2<std::uint16_t>& gaps,
                     std::int64_t first, const Out1<std::int64_t>& offsets,
                     const Out1<std::int32_t>& units, const Out2<double>& found) {
    const Csr X = csr(indptr, indices, data);
    const std::int64_t n = X.n_rows;
    const std::int64_t k = extent(rise.shape(0));
    const Bounds b = bounds(gaps, level, n);
    require(k > 0 && table.shape(0) >= 8 && (extent(table.shape(0)) - 8) % k == 0,
            "table must have k cells a word and eight to spare");
    require(extent(log_weights.shape(0)) == k && b.stride == whole_units(k),
            "log_weights and gaps must have one entry a component");
    require(!allowed || (extent(allowed->shape(0)) == n && extent(allowed->shape(1)) == k),
            "allowed: wrong shape");
    require(!blank || extent(blank->shape(0)) == n, "blank: wrong shape");
    require(0 <= first && first <= n && extent(offsets.shape(0)) == n + 1, "rows out of range");
    require(found.shape(0) == units.shape(0) && found.shape(1) == 8, "found must be (room, 8)");
    require(0 <= offsets.data()[first], "offsets must not be negative");
    const Pruning p{rise.data(), log_weights.data(), allowed ? allowed->data() : nullptr,
                    blank ? blank->data() : nullptr, reach, k};
    const Found out{offsets.data(), units.data(), found.data(), extent(units.shape(0))};
    const nb::gil_scoped_release free;
    return kernels<T>().chances(X, table.data(), p, b, first, out);
}

bool near(const In2<double>& joint, double reach, const Out1<std::int64_t>& offsets,
          const Out1<std::int32_t>& units, const Out2<double>& found) {
    const std::int64_t n = extent(joint.shape(0));
    const std::int64_t k = extent(joint.shape(1));
    require(k > 0 && extent(offsets.shape(0)) == n + 1, "offsets must have n + 1 entries");
    require(found.shape(0) == units.shape(0) && found.shape(1) == 8, "found must be (room, 8)");
    const Found out{offsets.data(), units.data(), found.data(), extent(units.shape(0))};
    const nb::gil_scoped_release free;
    return kernels<double>().near(joint.data(), n, k, reach, out);
}

template <class T>
void list_rows(const In2<T>& resp, const Out1<std::int64_t>& offsets,
               const Out1<std::int32_t>& components, const Out1<T>& values) {
    const std::int64_t n = extent(resp.shape(0));
    const std::int64_t k = extent(resp.shape(1));
    require(extent(offsets.shape(0)) == n + 1, "offsets must have n + 1 entries");
    require(extent(components.shape(0)) >= n * k && extent(values.shape(0)) >= n * k,
            "components and values must have room for all");
    const nb::gil_scoped_release free;
    kernels<T>().list_rows(resp.data(), n, k, offsets.data(), components.data(), values.data());
}

// `sums` must be zero. Words of the rows must be words of the sums, and `words` and `found` have
// room for all non-zeros of the listed rows.
template <class T>
std::int64_t touch(const Any1& indptr, const Any1& indices, const Any1& data,
                   const In1<std::int32_t>& rows, const In1<T>& weights, std::int64_t lo,
                   std::int64_t hi, const Out1<double>& sums, const Out1<std::int32_t>& words) {
    const Csr X = csr(indptr, indices, data);
    require(0 <= lo && lo <= hi && hi <= extent(rows.shape(0)) && rows.shape(0) == weights.shape(0),
            "list entries out of range");
    const nb::gil_scoped_release free;
    // The lists are read only: `Lists` is also for those that are written.
    const Lists<T> lists{const_cast<std::int32_t*>(rows.data()), const_cast<T*>(weights.data())};
    return kernels<T>().touch(X, lists, lo, hi, sums.data(), words.data());
}

void collect(const Out1<double>& sums, const Out1<std::int32_t>& words, const Out1<double>& found,
             std::int64_t n) {
    require(0 <= n && n <= extent(words.shape(0)) && n <= extent(found.shape(0)),
            "pairs out of range");
    const nb::gil_scoped_release free;
    kernels<double>().collect(sums.data(), n, {words.data(), found.data()});
}

template <class T>
void fill_nothing(std::int64_t lo, std::int64_t hi, double alpha, const In1<double>& scale,
                  double floor, const Out1<T>& table) {
    const std::int64_t k = extent(scale.shape(0));
    require(0 <= lo && lo <= hi && hi * k <= extent(table.shape(0)), "words out of range");
    const nb::gil_scoped_release free;
    kernels<T>().fill_nothing({alpha, scale.data(), true, floor}, lo, hi, table.data(), k);
}

template <class T>
double fill_pairs(const Out1<std::int32_t>& words, const Out1<double>& sums, double alpha,
                  const In1<double>& scale, double floor, std::int64_t j, const Out1<T>& table) {
    const std::int64_t k = extent(scale.shape(0));
    require(words.shape(0) == sums.shape(0), "words and sums must have the same length");
    require(0 <= j && j < k, "component out of range");
    const nb::gil_scoped_release free;
    return kernels<T>().fill_pairs({alpha, scale.data(), true, floor}, {words.data(), sums.data()},
                                   extent(words.shape(0)), table.data(), k, j);
}

template <class T> void bind_tables(nb::module_& m) {
    m.def("rises", rises<T>, as_it_is("before"), as_it_is("after"), nb::arg("lo"), nb::arg("hi"),
          as_it_is("rise"));
    m.def("chances", chances<T>, as_it_is("indptr"), as_it_is("indices"), as_it_is("data"), as_it_is("table"),
          as_it_is("rise"), as_it_is("log_weights"), as_it_is("allowed").none(), as_it_is("blank").none(),
          nb::arg("reach"), as_it_is("level"), as_it_is("gaps"), nb::arg("first"), as_it_is("offsets"),
          as_it_is("units"), as_it_is("found"));
    m.def("list_rows", list_rows<T>, as_it_is("resp"), as_it_is("offsets"), as_it_is("components"),
          as_it_is("values"));
    m.def("touch", touch<T>, as_it_is("indptr"), as_it_is("indices"), as_it_is("data"), as_it_is("rows"),
          as_it_is("weights"), nb::arg("lo"), nb::arg("hi"), as_it_is("sums"), as_it_is("words"));
    m.def("fill_nothing", fill_nothing<T>, nb::arg("lo"), nb::arg("hi"), nb::arg("alpha"),
          as_it_is("scale"), nb::arg("floor"), as_it_is("table"));
    m.def("fill_pairs", fill_pairs<T>, as_it_is("words"), as_it_is("sums"), nb::arg("alpha"),
          as_it_is("scale"), nb::arg("floor"), nb::arg("j"), as_it_is("table"));
}

}  // namespace

void bind_pruning(nb::module_& m) {
    bind_tables<float>(m);
    bind_tables<double>(m);
    m.def("set_bounds", set_bounds, as_it_is("scores"), as_it_is("columns").none(),
          as_it_is("level"), as_it_is("gaps"));
    m.def("near", near, as_it_is("joint"), nb::arg("reach"), as_it_is("offsets"), as_it_is("units"),
          as_it_is("found"));
    m.def("collect", collect, as_it_is("sums"), as_it_is("words"), as_it_is("found"),
          nb::arg("n"));
}

}  // namespace coem
