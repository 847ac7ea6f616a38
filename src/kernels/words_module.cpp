// Python bindings of the counting of words.

#include <nanobind/stl/optional.h>
#include <nanobind/stl/vector.h>

#include <optional>
#include <utility>
#include <vector>

#include "bindings.hpp"
#include "words.hpp"

namespace coem {
namespace {

using std::int32_t;
using std::int64_t;
using Bytes = In1<std::uint8_t>;

Strings strings(const In1<int64_t>& offsets, const Bytes& data) {
    require(offsets.shape(0) >= 1, "offsets must not be empty");
    return {offsets.data(), extent(offsets.shape(0)) - 1,
            reinterpret_cast<const char*>(data.data()), extent(data.shape(0))};
}

std::span<const int32_t> span(const In1<int32_t>& array) { return {array.data(), array.shape(0)}; }

// An array that owns what a vector held.
template <class T, class U> nb::object owned(std::vector<U>&& values) {
    static_assert(sizeof(T) == sizeof(U));
    auto* kept = new std::vector<U>(std::move(values));
    nb::capsule owner(kept, [](void* p) noexcept { delete static_cast<std::vector<U>*>(p); });
    const std::size_t shape[] = {kept->size()};
    return nb::cast(nb::ndarray<nb::numpy, T>(kept->data(), 1, shape, owner));
}

// Only tests name a seed.
void new_counter(WordCounter* self, int64_t min_n, int64_t max_n,
                 const std::optional<std::uint64_t>& seed) {
    new (self) WordCounter(min_n, max_n, seed.value_or(random_seed()));
}

void count_text(WordCounter& counter, const In1<int64_t>& offsets, const Bytes& data,
                const std::optional<Bytes>& valid, const In1<int32_t>& rule, int64_t lo,
                int64_t hi) {
    const Strings rows = strings(offsets, data);
    require(0 <= lo && lo <= hi && hi <= rows.n, "rows out of range");
    require(!valid || extent(valid->shape(0)) == rows.n, "valid must have one entry a row");
    require(rule.shape(0) >= 128, "rule must have an entry for each ASCII character");
    const nb::gil_scoped_release free;
    counter.text(rows, valid ? valid->data() : nullptr, span(rule), lo, hi);
}

void count_items(WordCounter& counter, const In1<int64_t>& starts, const In1<int64_t>& offsets,
                 const Bytes& data) {
    const Strings words = strings(offsets, data);
    require(starts.shape(0) >= 1, "starts must not be empty");
    const nb::gil_scoped_release free;
    counter.items(starts.data(), words, 0, extent(starts.shape(0)) - 1);
}

nb::tuple merge_counters(const std::vector<WordCounter*>& counters) {
    Merged merged;
    {
        const nb::gil_scoped_release free;
        merged = merge(counters);
    }
    return nb::make_tuple(owned<int64_t>(std::move(merged.offsets)),
                          owned<std::uint8_t>(std::move(merged.bytes)),
                          owned<int64_t>(std::move(merged.n_rows)),
                          owned<int64_t>(std::move(merged.n_times)));
}

void count_kept(const WordCounter& counter, const In1<int32_t>& columns,
                const Out1<int64_t>& n_kept) {
    require(extent(columns.shape(0)) >= counter.n_words(), "columns must have one entry a word");
    require(extent(n_kept.shape(0)) == counter.n_rows(), "n_kept must have one entry a row");
    const nb::gil_scoped_release free;
    counter.count_kept(span(columns), n_kept.data());
}

// `indptr` must come from `count_kept` with the same columns.
template <class Index>
void fill(const WordCounter& counter, const In1<int32_t>& columns, const In1<Index>& indptr,
          const Out1<Index>& indices, const Out1<float>& data) {
    require(extent(columns.shape(0)) >= counter.n_words(), "columns must have one entry a word");
    require(extent(indptr.shape(0)) == counter.n_rows() + 1, "indptr must have one entry a row");
    require(indices.shape(0) == data.shape(0), "indices and data must have the same length");
    require_within(indptr.data()[0], indptr.data()[counter.n_rows()], indices.shape(0));
    const nb::gil_scoped_release free;
    counter.fill(span(columns), indptr.data(), indices.data(), data.data());
}

}  // namespace

void bind_words(nb::module_& m) {
    const auto exact = [](const char* name) { return nb::arg(name).noconvert(); };
    using Free = nb::call_guard<nb::gil_scoped_release>;
    nb::class_<WordCounter>(m, "WordCounter")
        .def("__init__", new_counter, nb::arg("min_n"), nb::arg("max_n"),
             nb::arg("seed") = nb::none())
        .def("stop", [](WordCounter& c, const In1<int64_t>& offsets,
                        const Bytes& data) { c.stop(strings(offsets, data)); },
             exact("offsets"), exact("data"))
        .def("know", [](WordCounter& c, const In1<int64_t>& offsets,
                        const Bytes& data) { c.know(strings(offsets, data)); },
             exact("offsets"), exact("data"))
        .def("text", count_text, exact("offsets"), exact("data"), exact("valid").none(),
             exact("rule"), nb::arg("lo"), nb::arg("hi"))
        .def("items", count_items, exact("starts"), exact("offsets"), exact("data"))
        .def("sort", &WordCounter::sort, Free())
        .def("count_kept", count_kept, exact("columns"), exact("n_kept"))
        .def("fill", fill<int32_t>, exact("columns"), exact("indptr"), exact("indices"),
             exact("data"))
        .def("fill", fill<int64_t>, exact("columns"), exact("indptr"), exact("indices"),
             exact("data"))
        .def_prop_ro("n_probes", &WordCounter::n_probes)
        .def_prop_ro("n_rows", &WordCounter::n_rows);
    m.def("merge_words", merge_counters, nb::arg("counters"));
}

}  // namespace coem
