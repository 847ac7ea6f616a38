// Python bindings of the aspect model's kernels.

#include "aspect.hpp"
#include "bindings.hpp"

namespace coem {
namespace {

using std::int64_t;

template <class T>
Lines<T> lines(const In1<int64_t>& indptr, const In1<std::int32_t>& indices,
               const In1<T>& values, int64_t lo, int64_t hi) {
    require(0 <= lo && lo <= hi && hi < extent(indptr.shape(0)), "rows or columns out of range");
    require(indices.shape(0) == values.shape(0), "indices and values must have the same length");
    require_within(indptr.data()[lo], indptr.data()[hi], indices.shape(0));
    return {indptr.data(), indices.data(), values.data(), nullptr};
}

template <class T>
Factors<T> factors(const In2<T>& own, const In2<T>& other, const In1<T>& weights, int64_t hi) {
    const std::size_t width = weights.shape(0);
    require(width > 0 && width % 8 == 0, "tables must be a multiple of eight wide");
    require(own.shape(1) == width && other.shape(1) == width, "tables must have the same width");
    require(hi <= extent(own.shape(0)), "the table must have a row for each row or column");
    return {own.data(), other.data(), weights.data(), extent(width)};
}

Affine affine(const In1<double>& scale, const In1<double>& shift, std::size_t width) {
    require(scale.shape(0) == width && shift.shape(0) == width, "one scale and shift a cell");
    return {scale.data(), shift.data()};
}

template <class T>
double rows(const In1<int64_t>& indptr, const In1<std::int32_t>& indices, const In1<T>& values,
            const In2<T>& own, const In2<T>& other, const In1<T>& weights, int64_t lo, int64_t hi,
            const Out1<T>& ratios, const Out2<T>& sums, const Out1<double>& totals) {
    const Lines<T> l = lines<T>(indptr, indices, values, lo, hi);
    const Factors<T> f = factors<T>(own, other, weights, hi);
    require(ratios.shape(0) == values.shape(0), "one ratio a non-zero");
    require(sums.shape(0) == own.shape(0) && extent(sums.shape(1)) == f.width &&
                extent(totals.shape(0)) == f.width,
            "sums and totals must fit the tables");
    const nb::gil_scoped_release free;
    return aspect_kernels<T>().rows(l, f, lo, hi, ratios.data(), sums.data(), totals.data());
}

template <class T>
void columns(const In1<int64_t>& indptr, const In1<std::int32_t>& indices,
             const In1<int64_t>& places, const In1<T>& ratios, const In2<T>& own,
             const In2<T>& other, const In1<T>& weights, int64_t lo, int64_t hi,
             const In1<double>& scale, const In1<double>& shift, const Out2<T>& out) {
    Lines<T> l = lines<T>(indptr, indices, ratios, lo, hi);
    l.places = places.data();
    const Factors<T> f = factors<T>(own, other, weights, hi);
    require(places.shape(0) == ratios.shape(0), "one place a non-zero");
    require(out.shape(0) == own.shape(0) && extent(out.shape(1)) == f.width,
            "out must fit the table");
    const Affine a = affine(scale, shift, weights.shape(0));
    const nb::gil_scoped_release free;
    aspect_kernels<T>().columns(l, f, lo, hi, a, out.data());
}

template <class T>
void rescale(const In2<T>& table, int64_t lo, int64_t hi, const In1<double>& scale,
             const In1<double>& shift, const Out2<T>& out) {
    require(0 <= lo && lo <= hi && hi <= extent(table.shape(0)), "rows out of range");
    require(out.shape(0) == table.shape(0) && out.shape(1) == table.shape(1),
            "out must fit the table");
    const Affine a = affine(scale, shift, table.shape(1));
    const nb::gil_scoped_release free;
    aspect_kernels<T>().rescale(table.data(), extent(table.shape(1)), lo, hi, a, out.data());
}

template <class T>
void power(const In2<T>& table, int64_t lo, int64_t hi, double beta, const Out2<T>& out) {
    const int64_t width = extent(table.shape(1));
    require(width % 8 == 0 && out.shape(0) == table.shape(0) && out.shape(1) == table.shape(1),
            "out must fit the table, and both be a multiple of eight wide");
    require(0 <= lo && lo <= hi && hi <= extent(table.shape(0)), "rows out of range");
    const nb::gil_scoped_release free;
    aspect_kernels<T>().power(table.data(), lo * width, hi * width, beta, out.data());
}

template <class T>
double evidence(const In1<int64_t>& indptr, const In1<std::int32_t>& indices,
                const In1<T>& values, const In2<T>& own, const In2<T>& other,
                const In1<T>& weights, int64_t lo, int64_t hi) {
    const Lines<T> l = lines<T>(indptr, indices, values, lo, hi);
    const Factors<T> f = factors<T>(own, other, weights, hi);
    const nb::gil_scoped_release free;
    return aspect_kernels<T>().evidence(l, f, lo, hi);
}

template <class T>
void fold_in(const In1<int64_t>& indptr, const In1<std::int32_t>& indices, const In1<T>& values,
             const In2<T>& other, const In1<T>& weights, int64_t lo, int64_t hi, int64_t max_iter,
             double tol, const Out2<double>& shares) {
    const Lines<T> l = lines<T>(indptr, indices, values, lo, hi);
    const Factors<T> f = factors<T>(other, other, weights, 0);
    require(hi <= extent(shares.shape(0)) && extent(shares.shape(1)) == f.width,
            "shares must have one row for each row");
    const nb::gil_scoped_release free;
    aspect_kernels<T>().fold_in(l, f, lo, hi, {max_iter, tol}, shares.data());
}

template <class T>
double log_sum(const In2<T>& table, int64_t k, int64_t lo, int64_t hi) {
    require(0 < k && k <= extent(table.shape(1)) && table.shape(1) % 8 == 0, "too few cells");
    require(0 <= lo && lo <= hi && hi <= extent(table.shape(0)), "rows out of range");
    const nb::gil_scoped_release free;
    return aspect_kernels<T>().log_sum(table.data(), extent(table.shape(1)), k, lo, hi);
}

template <class T> void bind_aspect_of(nb::module_& m) {
    const auto exact = [](const char* name) { return nb::arg(name).noconvert(); };
    m.def("aspect_rows", rows<T>, exact("indptr"), exact("indices"), exact("values"), exact("own"),
          exact("other"), exact("weights"), nb::arg("lo"), nb::arg("hi"), exact("ratios"),
          exact("sums"), exact("totals"));
    m.def("aspect_columns", columns<T>, exact("indptr"), exact("indices"), exact("places"),
          exact("ratios"), exact("own"), exact("other"), exact("weights"), nb::arg("lo"),
          nb::arg("hi"), exact("scale"), exact("shift"), exact("out"));
    m.def("aspect_rescale", rescale<T>, exact("table"), nb::arg("lo"), nb::arg("hi"),
          exact("scale"), exact("shift"), exact("out"));
    m.def("aspect_power", power<T>, exact("table"), nb::arg("lo"), nb::arg("hi"), nb::arg("beta"),
          exact("out"));
    m.def("aspect_evidence", evidence<T>, exact("indptr"), exact("indices"), exact("values"),
          exact("own"), exact("other"), exact("weights"), nb::arg("lo"), nb::arg("hi"));
    m.def("aspect_fold_in", fold_in<T>, exact("indptr"), exact("indices"), exact("values"),
          exact("other"), exact("weights"), nb::arg("lo"), nb::arg("hi"), nb::arg("max_iter"),
          nb::arg("tol"), exact("shares"));
    m.def("aspect_log_sum", log_sum<T>, exact("table"), nb::arg("k"), nb::arg("lo"),
          nb::arg("hi"));
}

}  // namespace

void bind_aspect(nb::module_& m) {
    bind_aspect_of<float>(m);
    bind_aspect_of<double>(m);
}

}  // namespace coem
