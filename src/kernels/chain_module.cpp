// Python bindings of the kernels of hidden Markov chains.

#include <nanobind/stl/optional.h>

#include <cmath>
#include <memory>
#include <optional>

#include "bindings.hpp"
#include "chain.hpp"

namespace coem {
namespace {

using std::int64_t;

using Allowed = std::optional<In2<std::uint8_t>>;
using Weights = std::optional<In1<double>>;

Chain chain(const In1<double>& log_start, const In2<double>& log_transition, double beta) {
    const std::size_t k = log_start.shape(0);
    require(k > 0, "there must be a state");
    require(log_transition.shape(0) == k && log_transition.shape(1) == k,
            "log_transition must be (states, states)");
    require(beta > 0.0 && std::isfinite(beta), "beta must be positive and finite");
    return {log_start.data(), log_transition.data(), extent(k), beta};
}

Sequences sequences(const In2<double>& log_prob, const Allowed& allowed,
                    const In1<int64_t>& offsets, const Weights& weights, int64_t lo, int64_t hi,
                    int64_t k) {
    const std::size_t n = log_prob.shape(0);
    require(extent(log_prob.shape(1)) == k, "log_prob must have one column for each state");
    require(!allowed || (allowed->shape(0) == n && extent(allowed->shape(1)) == k),
            "allowed must have the shape of log_prob");
    require(0 <= lo && lo <= hi && hi < extent(offsets.shape(0)), "sequences out of range");
    require(!weights || weights->shape(0) + 1 == offsets.shape(0),
            "weights must have one entry for each sequence");
    const int64_t* ends = offsets.data();
    require(0 <= ends[lo] && ends[hi] <= extent(n), "offsets point beyond the rows");
    for (int64_t s = lo; s < hi; ++s) require(ends[s] <= ends[s + 1], "offsets must not decrease");
    return {log_prob.data(), allowed ? allowed->data() : nullptr, ends,
            weights ? weights->data() : nullptr, lo, hi};
}

ChainCounts counts(const Out1<double>& starts, const Out2<double>& transitions, int64_t k) {
    require(extent(starts.shape(0)) == k && extent(transitions.shape(0)) == k &&
                extent(transitions.shape(1)) == k,
            "starts must be (states,) and transitions (states, states)");
    return {starts.data(), transitions.data()};
}

void require_objective(const Out1<double>& objective, const In1<int64_t>& offsets) {
    require(objective.shape(0) + 1 == offsets.shape(0),
            "objective must have one entry for each sequence");
}

// Memory for the rows that a pass computes of the longest sequence.
std::unique_ptr<double[]> scratch(const Sequences& seq, int64_t k) {
    int64_t longest = 0;
    for (int64_t s = seq.lo; s < seq.hi; ++s) {
        const int64_t n = seq.offsets[s + 1] - seq.offsets[s];
        longest = n > longest ? n : longest;
    }
    return std::unique_ptr<double[]>(new double[static_cast<std::size_t>(longest * padded(k))]);
}

template <class T>
void forward_backward(const In2<double>& log_prob, const In1<double>& log_start,
                      const In2<double>& log_transition, const Allowed& allowed, double beta,
                      const In1<int64_t>& offsets, const Weights& weights, int64_t lo, int64_t hi,
                      const Out1<double>& starts, const Out2<double>& transitions,
                      const Out1<double>& objective, const Out2<T>& resp) {
    const Chain c = chain(log_start, log_transition, beta);
    const Sequences seq = sequences(log_prob, allowed, offsets, weights, lo, hi, c.k);
    const ChainCounts to = counts(starts, transitions, c.k);
    require_objective(objective, offsets);
    require(resp.shape(0) == log_prob.shape(0) && resp.shape(1) == log_prob.shape(1),
            "resp must have the shape of log_prob");
    const nb::gil_scoped_release free;
    chain_kernels<T>().forward_backward(c, seq, to, scratch(seq, c.k).get(), objective.data(),
                                        resp.data());
}

void forward(const In2<double>& log_prob, const In1<double>& log_start,
             const In2<double>& log_transition, const Allowed& allowed, double beta,
             const In1<int64_t>& offsets, int64_t lo, int64_t hi, const Out1<double>& objective) {
    const Chain c = chain(log_start, log_transition, beta);
    const Sequences seq = sequences(log_prob, allowed, offsets, {}, lo, hi, c.k);
    require_objective(objective, offsets);
    const nb::gil_scoped_release free;
    chain_kernels<double>().forward(c, seq, scratch(seq, c.k).get(), objective.data());
}

template <class T>
void viterbi(const In2<double>& log_prob, const In1<double>& log_start,
             const In2<double>& log_transition, const Allowed& allowed,
             const In1<int64_t>& offsets, const Weights& weights, int64_t lo, int64_t hi,
             const Out1<double>& starts, const Out2<double>& transitions,
             const Out1<double>& objective, const Out1<std::int32_t>& states,
             const std::optional<Out2<T>>& resp) {
    const Chain c = chain(log_start, log_transition, 1.0);
    const Sequences seq = sequences(log_prob, allowed, offsets, weights, lo, hi, c.k);
    const ChainCounts to = counts(starts, transitions, c.k);
    require_objective(objective, offsets);
    require(states.shape(0) == log_prob.shape(0), "states must have one entry for each row");
    require(!resp || (resp->shape(0) == log_prob.shape(0) && resp->shape(1) == log_prob.shape(1)),
            "resp must have the shape of log_prob");
    const nb::gil_scoped_release free;
    chain_kernels<T>().viterbi(c, seq, to, scratch(seq, c.k).get(), objective.data(),
                               states.data(), resp ? resp->data() : nullptr);
}

template <class T> void bind_chain_of(nb::module_& m) {
    const auto exact = [](const char* name) { return nb::arg(name).noconvert(); };
    m.def("forward_backward", forward_backward<T>, exact("log_prob"), exact("log_start"),
          exact("log_transition"), exact("allowed").none(), nb::arg("beta"), exact("offsets"),
          exact("weights").none(), nb::arg("lo"), nb::arg("hi"), exact("starts"),
          exact("transitions"), exact("objective"), exact("resp"));
    m.def("viterbi", viterbi<T>, exact("log_prob"), exact("log_start"), exact("log_transition"),
          exact("allowed").none(), exact("offsets"), exact("weights").none(), nb::arg("lo"),
          nb::arg("hi"), exact("starts"), exact("transitions"), exact("objective"),
          exact("states"), exact("resp").none());
}

}  // namespace

void bind_chain(nb::module_& m) {
    const auto exact = [](const char* name) { return nb::arg(name).noconvert(); };
    m.def("forward", forward, exact("log_prob"), exact("log_start"), exact("log_transition"),
          exact("allowed").none(), nb::arg("beta"), exact("offsets"), nb::arg("lo"),
          nb::arg("hi"), exact("objective"));
    bind_chain_of<float>(m);
    bind_chain_of<double>(m);
}

}  // namespace coem
