// Python bindings of the kernels for tables that list the words of each component.

#include "bindings.hpp"
#include "counts.hpp"
#include "csr_arrays.hpp"

namespace coem {
namespace {

const auto unconverted = [](const char* name) { return nb::arg(name).noconvert(); };

template <class T>
SparseTable<T> sparse_table(const In1<double>& unseen, const In1<std::int32_t>& places,
                            const T* common, std::size_t n_common,
                            const In1<std::int64_t>& offsets, const std::int32_t* components,
                            const T* cells, std::size_t n_cells) {
    const std::int64_t k = extent(unseen.shape(0));
    require(k > 0 && n_common >= 8 && (extent(n_common) - 8) % k == 0,
            "common must have k cells a word and eight to spare");
    require(offsets.shape(0) == places.shape(0) + 1, "offsets must have one entry a word and one");
    require_within(offsets.data()[0], offsets.data()[places.shape(0)], n_cells);
    return {unseen.data(), places.data(), const_cast<T*>(common), offsets.data(),
            const_cast<std::int32_t*>(components), const_cast<T*>(cells), k};
}

template <class T>
void sparse_scores(const Any1& indptr, const Any1& indices, const Any1& data,
                   const In1<double>& unseen, const In1<std::int32_t>& places,
                   const In1<T>& common, const In1<std::int64_t>& offsets,
                   const In1<std::int32_t>& components, const In1<T>& cells,
                   const Out2<double>& out) {
    const Csr X = csr(indptr, indices, data);
    require(components.shape(0) == cells.shape(0), "components and cells must be as many");
    const SparseTable<T> table = sparse_table<T>(unseen, places, common.data(), common.shape(0),
                                                 offsets, components.data(), cells.data(),
                                                 cells.shape(0));
    require(extent(out.shape(0)) == X.n_rows && extent(out.shape(1)) == table.k,
            "out must have one entry for each row and component");
    const nb::gil_scoped_release free;
    kernels<T>().sparse_scores(X, table, out.data());
}

void count_words(const Any1& indptr, const Any1& indices, const Any1& data,
                 const In1<std::int64_t>& offsets, const Out1<std::int64_t>& entries,
                 const Out1<std::int64_t>& pairs) {
    const Csr X = csr(indptr, indices, data);
    require(extent(offsets.shape(0)) == X.n_rows + 1, "offsets must have one entry a row and one");
    require(entries.shape(0) == pairs.shape(0), "entries and pairs must have one entry a word");
    const nb::gil_scoped_release free;
    kernels<double>().count_words(X, offsets.data(), entries.data(), pairs.data());
}

// `entries` must be what `count_words` found of these words, and there must be room for all pairs.
template <class T>
std::int64_t sum_words(const Any1& indptr, const Any1& indices, const Any1& data,
                       const In1<std::int64_t>& offsets, const In1<std::int32_t>& components,
                       const In1<T>& values, std::int64_t lo, bool sorted,
                       const In1<std::int64_t>& entries, std::int64_t k,
                       const Out1<std::int64_t>& found, const Out1<std::int32_t>& owners,
                       const Out1<double>& sums) {
    const Csr X = csr(indptr, indices, data);
    require(extent(offsets.shape(0)) == X.n_rows + 1, "offsets must have one entry a row and one");
    require_within(offsets.data()[0], offsets.data()[X.n_rows], components.shape(0));
    require(components.shape(0) == values.shape(0), "components and values must be as many");
    require(entries.shape(0) == found.shape(0), "entries and found must have one entry a word");
    require(owners.shape(0) == sums.shape(0) && k > 0, "owners and sums must be as many");
    const Words words{lo, lo + extent(entries.shape(0)), sorted};
    const nb::gil_scoped_release free;
    return kernels<T>().sum_words(X, {offsets.data(), components.data(), values.data()}, words,
                                  entries.data(), k, found.data(), owners.data(), sums.data());
}

template <class T>
void fill_sparse(const In1<std::int64_t>& from, const In1<std::int32_t>& owners,
                 const In1<double>& sums, double alpha, const In1<double>& scale, double floor,
                 double least, std::int64_t lo, std::int64_t hi, const In1<double>& unseen,
                 const In1<std::int32_t>& places, const Out1<T>& common,
                 const In1<std::int64_t>& offsets, const Out1<std::int32_t>& components,
                 const Out1<T>& cells) {
    require(owners.shape(0) == sums.shape(0) && components.shape(0) == cells.shape(0),
            "components and values must be as many");
    const SparseTable<T> table = sparse_table<T>(unseen, places, common.data(), common.shape(0),
                                                 offsets, components.data(), cells.data(),
                                                 cells.shape(0));
    require(from.shape(0) == offsets.shape(0) && scale.shape(0) == unseen.shape(0),
            "sums and table must have the same shape");
    require_within(from.data()[0], from.data()[places.shape(0)], sums.shape(0));
    require(0 <= lo && lo <= hi && hi <= extent(places.shape(0)), "words out of range");
    const nb::gil_scoped_release free;
    kernels<T>().fill_sparse({from.data(), owners.data(), sums.data()},
                             {alpha, scale.data(), true, floor}, least, lo, hi, table);
}

template <class T> void bind_sparse(nb::module_& m) {
    m.def("sparse_scores", sparse_scores<T>, unconverted("indptr"), unconverted("indices"),
          unconverted("data"), unconverted("unseen"), unconverted("places"), unconverted("common"),
          unconverted("offsets"), unconverted("components"), unconverted("cells"),
          unconverted("out"));
    m.def("sum_words", sum_words<T>, unconverted("indptr"), unconverted("indices"),
          unconverted("data"), unconverted("offsets"), unconverted("components"),
          unconverted("values"), nb::arg("lo"), nb::arg("sorted"), unconverted("entries"),
          nb::arg("k"), unconverted("found"), unconverted("owners"), unconverted("sums"));
    m.def("fill_sparse", fill_sparse<T>, unconverted("from_offsets"), unconverted("owners"),
          unconverted("sums"), nb::arg("alpha"), unconverted("scale"), nb::arg("floor"),
          nb::arg("least"), nb::arg("lo"), nb::arg("hi"), unconverted("unseen"),
          unconverted("places"), unconverted("common"), unconverted("offsets"),
          unconverted("components"), unconverted("cells"));
}

}  // namespace

void bind_sparse_tables(nb::module_& m) {
    bind_sparse<float>(m);
    bind_sparse<double>(m);
    m.def("count_words", count_words, unconverted("indptr"), unconverted("indices"),
          unconverted("data"), unconverted("offsets"), unconverted("entries"),
          unconverted("pairs"));
}

}  // namespace coem
