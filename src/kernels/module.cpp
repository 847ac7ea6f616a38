// Python bindings of the kernels, and the choice of instruction set.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <cstdlib>
#include <cstring>
#include <optional>
#include <vector>

#if defined(__GLIBC__)
#include <malloc.h>
#endif

#include "agglomerate.hpp"
#include "aspect.hpp"
#include "bindings.hpp"
#include "chain.hpp"
#include "counts.hpp"
#include "csr_arrays.hpp"
#include "dense.hpp"
#include "isa.hpp"

namespace coem {

namespace {

[[maybe_unused]] Isa detect() {
    // COEM_ISA holds the kernels down to an older instruction set, for the same bits elsewhere, for
    // tests and for debugging. coem/kernels/__init__.py refuses a wish that is not granted here.
    const char* wish = std::getenv("COEM_ISA");
    const Isa best = best_isa();
    for (const Isa isa : {Isa::baseline, Isa::avx2}) {
        if (wish && isa < best && !std::strcmp(wish, name_of(isa))) return isa;
    }
    return best;
}

// COEM_ONLY names the one instruction set of a build for this machine alone.
#if defined(COEM_ONLY)
const Isa isa = Isa::COEM_ONLY;
#define COEM_PICK(table) COEM_ONLY::table
#elif defined(COEM_X86)
const Isa isa = detect();
#define COEM_PICK(table) \
    (isa == Isa::avx512 ? avx512::table : isa == Isa::avx2 ? avx2::table : baseline::table)
#else
const Isa isa = detect();
#define COEM_PICK(table) baseline::table
#endif

}  // namespace

template <class T> const Kernels<T>& kernels() { return COEM_PICK(table<T>()); }
template const Kernels<float>& kernels<float>();
template const Kernels<double>& kernels<double>();

template <class T> const AspectKernels<T>& aspect_kernels() { return COEM_PICK(aspect_table<T>()); }
template const AspectKernels<float>& aspect_kernels<float>();
template const AspectKernels<double>& aspect_kernels<double>();

template <class T> const ChainKernels<T>& chain_kernels() { return COEM_PICK(chain_table<T>()); }
template const ChainKernels<float>& chain_kernels<float>();
template const ChainKernels<double>& chain_kernels<double>();

const DenseKernels& dense_kernels() { return COEM_PICK(dense_table()); }

const char* instruction_set() { return name_of(isa); }

// Let malloc keep the memory of arrays that are freed, up to 32 MB each, for the next ones.
void keep_freed_memory() {
#if defined(__GLIBC__)
    mallopt(M_MMAP_THRESHOLD, 32 << 20);  // glibc allows no more
    mallopt(M_TRIM_THRESHOLD, 64 << 20);
#endif
}

namespace {

template <class T>
void scores(const Any1& indptr, const Any1& indices, const Any1& data, const In1<T>& table,
            const Out2<double>& out) {
    const Csr X = csr(indptr, indices, data);
    const std::int64_t k = extent(out.shape(1));
    require(extent(out.shape(0)) == X.n_rows, "out must have one row for each row of X");
    require(k > 0 && table.shape(0) >= 8 && (extent(table.shape(0)) - 8) % k == 0,
            "table must have k cells a word and eight to spare");
    const nb::gil_scoped_release free;
    kernels<T>().scores(X, table.data(), k, out.data());
}

template <class T>
void nearest(const Any1& indptr, const Any1& indices, const Any1& data, const In1<T>& table,
             const In1<double>& scale, std::int64_t first, std::int64_t last,
             const Out1<std::int32_t>& labels, const Out1<double>& values) {
    const Csr X = csr(indptr, indices, data);
    const std::int64_t k = extent(scale.shape(0));
    require(extent(labels.shape(0)) == X.n_rows && extent(values.shape(0)) == X.n_rows,
            "labels and values must have one entry for each row of X");
    require(k > 0 && table.shape(0) >= 8 && (extent(table.shape(0)) - 8) % k == 0,
            "table must have k cells a word and eight to spare");
    require(0 <= first && first <= last && last <= X.n_rows, "rows out of range");
    const nb::gil_scoped_release free;
    kernels<T>().nearest(X, table.data(), scale.data(), k, first, last, labels.data(),
                         values.data());
}

template <class T> std::vector<std::int64_t> count_active(const In2<T>& resp) {
    std::vector<std::int64_t> counts(resp.shape(1), 0);
    const nb::gil_scoped_release free;
    kernels<T>().count_active(resp.data(), extent(resp.shape(0)), extent(resp.shape(1)),
                              counts.data());
    return counts;
}

// `places` must come from counts of the same responsibilities: the lists hold what they announce.
template <class T>
void list_active(const In2<T>& resp, std::int64_t first, const Out1<std::int64_t>& places,
                 const Out1<std::int32_t>& rows, const Out1<T>& weights) {
    require(places.shape(0) == resp.shape(1), "places must have one entry a component");
    require(rows.shape(0) == weights.shape(0), "rows and weights must have the same length");
    const nb::gil_scoped_release free;
    kernels<T>().list_active(resp.data(), extent(resp.shape(0)), extent(resp.shape(1)), first,
                             places.data(), {rows.data(), weights.data()});
}

template <class T>
void accumulate_list(const Any1& indptr, const Any1& indices, const Any1& data,
                     const Out1<std::int32_t>& rows, const Out1<T>& weights, std::int64_t lo,
                     std::int64_t hi, const Out1<double>& sums) {
    const Csr X = csr(indptr, indices, data);
    require(0 <= lo && lo <= hi && hi <= extent(rows.shape(0)) &&
                rows.shape(0) == weights.shape(0),
            "list entries out of range");
    const nb::gil_scoped_release free;
    kernels<T>().accumulate_list(X, {rows.data(), weights.data()}, lo, hi, sums.data());
}

template <class T>
void sum_lists(const Any1& indptr, const Any1& indices, const Any1& data,
               const Out1<std::int32_t>& rows, const Out1<T>& weights,
               const In1<std::int64_t>& offsets, const In1<std::uint8_t>& fresh,
               std::int64_t first, std::int64_t last, const Out2<double>& sums,
               const Out1<double>& squares) {
    const Csr X = csr(indptr, indices, data);
    require(0 <= first && first <= last && last <= extent(sums.shape(0)),
            "components out of range");
    require(offsets.shape(0) == sums.shape(0) + 1 && fresh.shape(0) == sums.shape(0) &&
                squares.shape(0) == sums.shape(0),
            "offsets, fresh and squares must have one entry a component");
    require(rows.shape(0) == weights.shape(0) && 0 <= offsets.data()[first] &&
                offsets.data()[last] <= extent(rows.shape(0)),
            "list entries out of range");
    const nb::gil_scoped_release free;
    kernels<T>().sum_lists(X, {rows.data(), weights.data()}, offsets.data(), fresh.data(), first,
                           last, extent(sums.shape(1)), sums.data(), squares.data());
}

// The words of every row must be in order, and be words of the sums.
template <class T>
void move_rows(const Any1& indptr, const Any1& indices, const Any1& data,
               const In1<std::int32_t>& rows, const In1<std::int32_t>& from,
               const In1<std::int32_t>& to, const In1<double>& weights, std::int64_t first,
               std::int64_t last, const Out2<double>& sums, const Out1<T>& table,
               const Out1<double>& squares) {
    const Csr X = csr(indptr, indices, data);
    const std::int64_t k = extent(sums.shape(0));
    const std::int64_t n_words = extent(sums.shape(1));
    const std::size_t n = rows.shape(0);
    require(from.shape(0) == n && to.shape(0) == n && weights.shape(0) == n,
            "from, to and weights must have one entry a row that moves");
    for (std::size_t e = 0; e < n; ++e) {
        require(0 <= rows.data()[e] && rows.data()[e] < X.n_rows, "rows out of range");
        require(-1 <= from.data()[e] && from.data()[e] < k && -1 <= to.data()[e] &&
                    to.data()[e] < k,
                "components out of range");
    }
    require(0 <= first && first <= last && last <= n_words, "words out of range");
    require(extent(table.shape(0)) >= k * n_words && extent(squares.shape(0)) == k,
            "table and squares must fit the sums");
    const nb::gil_scoped_release free;
    kernels<T>().move_rows(
        X, {rows.data(), from.data(), to.data(), weights.data(), extent(n)}, {first, last, true},
        {sums.data(), table.data(), squares.data(), k, n_words});
}

template <class T>
void accumulate_tile(const Any1& indptr, const Any1& indices, const Any1& data,
                     const In2<T>& resp, std::int64_t lo, std::int64_t hi, std::int64_t first,
                     std::int64_t last, bool sorted, const Out2<double>& tile) {
    const Csr X = csr(indptr, indices, data);
    const std::int64_t k = extent(resp.shape(1));
    require(extent(resp.shape(0)) == X.n_rows, "resp must have one row for each row of X");
    require(0 <= lo && lo <= hi && hi <= k && hi - lo <= 8, "components out of range");
    require(tile.shape(1) == 8, "tile must be (words, 8)");
    require(0 <= first && first <= last && last <= extent(tile.shape(0)), "words out of range");
    const nb::gil_scoped_release free;
    kernels<T>().accumulate_tile(X, resp.data(), k, lo, hi, {first, last, sorted}, tile.data());
}

PosteriorArgs posterior_args(const In1<double>& log_weights,
                             const std::optional<In2<std::uint8_t>>& allowed,
                             double beta, bool hard, const Out1<double>& evidence,
                             const Out1<double>& objective) {
    const std::size_t n = evidence.shape(0);
    const std::size_t k = log_weights.shape(0);
    require(objective.shape(0) == n, "objective must have one entry a row");
    require(!allowed || (allowed->shape(0) == n && allowed->shape(1) == k), "allowed: wrong shape");
    return {nullptr, log_weights.data(), allowed ? allowed->data() : nullptr,
            extent(n), extent(k), beta, hard, evidence.data(), objective.data()};
}

template <class T>
void posterior(const Out2<double>& log_joint, const In1<double>& log_weights,
               const std::optional<In2<std::uint8_t>>& allowed, double beta, bool hard,
               const Out1<double>& evidence, const Out1<double>& objective, const Out2<T>& resp) {
    PosteriorArgs args = posterior_args(log_weights, allowed, beta, hard, evidence, objective);
    const auto fits = [&](const auto& a) {
        return extent(a.shape(0)) == args.n_rows && extent(a.shape(1)) == args.n_components;
    };
    require(fits(log_joint) && fits(resp), "log_joint and resp must be (rows, components)");
    args.log_joint = log_joint.data();
    const nb::gil_scoped_release free;
    kernels<T>().posterior(args, resp.data());
}

template <class T>
double fill_table(const Strided2& sums, std::int64_t lo, std::int64_t hi, double alpha,
                  const In1<double>& scale, const std::optional<double>& floor,
                  const Out1<T>& table, std::int64_t k, std::int64_t first) {
    const std::int64_t m = extent(sums.shape(0));
    const std::int64_t n_words = extent(sums.shape(1));
    require(extent(table.shape(0)) >= k * n_words && extent(scale.shape(0)) == m,
            "table and scale must fit the sums");
    require(0 <= first && first + m <= k, "components out of range");
    require(0 <= lo && lo <= hi && hi <= n_words, "words out of range");
    const nb::gil_scoped_release free;
    const Fill fill{alpha, scale.data(), floor.has_value(), floor.value_or(0.0)};
    return kernels<T>().fill_table({sums.data(), m, sums.stride(0), sums.stride(1)}, lo, hi, fill,
                                   table.data(), k, first);
}

template <class T> double table_sum(const In1<T>& table, std::int64_t lo, std::int64_t hi) {
    require(0 <= lo && lo <= hi && hi <= extent(table.shape(0)), "cells out of range");
    const nb::gil_scoped_release free;
    return kernels<T>().table_sum(table.data(), lo, hi);
}

bool no_signal() {
    const nb::gil_scoped_acquire held;
    return PyErr_CheckSignals() == 0;
}

template <class T>
void agglomerate(const Out2<T>& cells, int linkage, const Out2<std::int64_t>& children,
                 const Out1<double>& distances, const Out1<std::int64_t>& sizes) {
    const std::int64_t n = extent(children.shape(0)) + 1;
    require(0 <= linkage && linkage <= 2, "linkage must be 0, 1 or 2");
    require(n > 1 && n < (std::int64_t{1} << 31) && cells.shape(0) >= 1 &&
                extent(cells.shape(1)) == n * (n - 1) / 2,
            "cells must hold the distances of all pairs of rows, a view at least");
    require(children.shape(1) == 2 && extent(distances.shape(0)) == n - 1 &&
                extent(sizes.shape(0)) == n - 1,
            "outputs must have one row a merge");
    const Merges merges{children.data(), distances.data(), sizes.data()};
    bool done = false;
    {
        const nb::gil_scoped_release free;
        done = coem::agglomerate(cells.data(), extent(cells.shape(0)), n,
                                 static_cast<Linkage>(linkage), no_signal, merges);
    }
    if (!done) throw nb::python_error();
}

template <class T> void bind_counts(nb::module_& m) {
    const auto exact = [](const char* name) { return nb::arg(name).noconvert(); };
    m.def("scores", scores<T>, exact("indptr"), exact("indices"), exact("data"), exact("table"),
          exact("out"));
    m.def("nearest", nearest<T>, exact("indptr"), exact("indices"), exact("data"), exact("table"),
          exact("scale"), nb::arg("first"), nb::arg("last"), exact("labels"), exact("values"));
    m.def("count_active", count_active<T>, exact("resp"));
    m.def("list_active", list_active<T>, exact("resp"), nb::arg("first"), exact("places"),
          exact("rows"), exact("weights"));
    m.def("accumulate_list", accumulate_list<T>, exact("indptr"), exact("indices"),
          exact("data"), exact("rows"), exact("weights"), nb::arg("lo"),
          nb::arg("hi"), exact("sums"));
    m.def("sum_lists", sum_lists<T>, exact("indptr"), exact("indices"), exact("data"),
          exact("rows"), exact("weights"), exact("offsets"), exact("fresh"), nb::arg("first"),
          nb::arg("last"), exact("sums"), exact("squares"));
    m.def("move_rows", move_rows<T>, exact("indptr"), exact("indices"), exact("data"),
          exact("rows"), exact("from_"), exact("to"), exact("weights"), nb::arg("first"),
          nb::arg("last"), exact("sums"), exact("table"), exact("squares"));
    m.def("accumulate_tile", accumulate_tile<T>, exact("indptr"), exact("indices"), exact("data"),
          exact("resp"), nb::arg("lo"), nb::arg("hi"), nb::arg("first"), nb::arg("last"),
          nb::arg("sorted"), exact("tile"));
    m.def("posterior", posterior<T>, exact("log_joint"), exact("log_weights"),
          exact("allowed").none(), nb::arg("beta"), nb::arg("hard"), exact("evidence"),
          exact("objective"), exact("resp"));
    m.def("fill_table", fill_table<T>, exact("sums"), nb::arg("lo"), nb::arg("hi"),
          nb::arg("alpha"), exact("scale"), nb::arg("floor").none(), exact("table"),
          nb::arg("n_components"), nb::arg("first"));
    m.def("agglomerate", agglomerate<T>, exact("cells"), nb::arg("linkage"), exact("children"),
          exact("distances"), exact("sizes"));
    m.def("table_sum", table_sum<T>, exact("table"), nb::arg("lo"), nb::arg("hi"));
}

}  // namespace

}  // namespace coem

NB_MODULE(_compiled, m) {
    m.doc() = "Compiled kernels. Use their faces in coem.kernels.";
    m.def("instruction_set", coem::instruction_set);
    m.def("keep_freed_memory", coem::keep_freed_memory);
    coem::bind_counts<float>(m);
    coem::bind_counts<double>(m);
    coem::bind_aspect(m);
    coem::bind_chain(m);
    coem::bind_dense(m);
    coem::bind_pruning(m);
    coem::bind_sparse_tables(m);
    coem::bind_structure(m);
    coem::bind_words(m);
}
