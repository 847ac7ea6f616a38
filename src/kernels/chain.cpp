// The kernels of hidden Markov chains. Compiled once per instruction set, with COEM_ISA naming it.
// Some sequences per call, serial; the caller releases the GIL and owns the threads.

#include "chain.hpp"

#include "chain_decoder.hpp"
#include "chain_filter.hpp"
#include "chain_logs.hpp"
#include "chain_smoother.hpp"

namespace coem::COEM_ISA {
namespace {

inline double value_of(Path path, double value) {
    return path == Path::possible     ? value
           : path == Path::impossible ? NEVER
                                      : std::numeric_limits<double>::quiet_NaN();
}

// Fill `kept` with the filtered rows of a sequence, and find its posteriors in doubles or else with
// logarithms. Returns log Z.
template <int N>
class Passes {
  public:
    explicit Passes(const Chain& c) : model_(c), filter_(model_), smoother_(model_), logs_(model_) {}

    // log Z alone
    double forward(const Rows& rows, double* kept) {
        const Path path = filter_.run(rows, kept);
        if (path != Path::possible) return value_of(path, 0.0);
        const bool exact = filter_.is_exact(rows.n, kept) || smoother_.run(rows.n, kept, Unwanted{});
        return exact ? filter_.log_evidence() : forward_by_logs(rows, kept);
    }

    template <class T>
    double forward_backward(const Rows& rows, double* kept, const ChainCounts& counts, T* resp) {
        const Responsibilities<T> out{resp, rows.k};
        const Path path = filter_.run(rows, kept);
        if (path != Path::possible) {
            for (int64_t cell = 0; cell < rows.n * rows.k; ++cell) resp[cell] = T{0};
            return value_of(path, 0.0);
        }
        if (smoother_.run(rows.n, kept, out)) {
            smoother_.count(rows.weight, counts);
            return filter_.log_evidence();
        }
        const double found = forward_by_logs(rows, kept);
        logs_.smooth(rows, kept, counts, out);
        return found;
    }

  private:
    double forward_by_logs(const Rows& rows, double* kept) {
        const Path path = logs_.filter(rows, kept);
        return value_of(path, logs_.log_evidence());
    }

    const Model model_;
    Filter<N> filter_;
    Smoother<N> smoother_;
    LogPass logs_;
};

inline void forward(const Chain& c, const Sequences& seq, double* scratch, double* objective) {
    by_size(c.k, [&](auto n) {
        Passes<decltype(n)::value> passes(c);
        for (int64_t s = seq.lo; s < seq.hi; ++s) {
            const Rows rows(seq, s, c.k);
            objective[s] = rows.n > 0 ? passes.forward(rows, scratch) / c.beta : 0.0;
        }
    });
}

template <class T>
void forward_backward(const Chain& c, const Sequences& seq, const ChainCounts& counts,
                      double* scratch, double* objective, T* resp) {
    by_size(c.k, [&](auto n) {
        Passes<decltype(n)::value> passes(c);
        for (int64_t s = seq.lo; s < seq.hi; ++s) {
            const Rows rows(seq, s, c.k);
            T* out = resp + rows.first * c.k;
            objective[s] =
                rows.n > 0 ? passes.forward_backward(rows, scratch, counts, out) / c.beta : 0.0;
        }
    });
}

// What a path counts: its states (n) are -1 if there is none.
template <class T>
void count_path(const Rows& rows, const int32_t* states, const ChainCounts& counts, T* resp) {
    for (int64_t cell = 0; resp && cell < rows.n * rows.k; ++cell) resp[cell] = T{0};
    if (states[0] < 0) return;
    counts.starts[states[0]] += rows.weight;
    for (int64_t t = 1; t < rows.n; ++t) {
        counts.transitions[states[t - 1] * rows.k + states[t]] += rows.weight;
    }
    for (int64_t t = 0; resp && t < rows.n; ++t) resp[t * rows.k + states[t]] = T{1};
}

template <int N, class T>
void viterbi_sized(const Chain& c, const Sequences& seq, const ChainCounts& counts,
                   double* scratch, double* objective, int32_t* states, T* resp) {
    const Model model(c);
    Decoder<N> decoder(model);
    for (int64_t s = seq.lo; s < seq.hi; ++s) {
        const Rows rows(seq, s, c.k);
        int32_t* out = states + rows.first;
        objective[s] = 0.0;
        if (rows.n == 0) continue;
        const Path path = decoder.run(rows, scratch);
        objective[s] = value_of(path, decoder.log_joint());
        if (path == Path::possible) {
            decoder.trace(rows.n, scratch, out);
        } else {
            for (int64_t t = 0; t < rows.n; ++t) out[t] = -1;
        }
        count_path(rows, out, counts, resp ? resp + rows.first * c.k : nullptr);
    }
}

template <class T>
void viterbi(const Chain& c, const Sequences& seq, const ChainCounts& counts, double* scratch,
             double* objective, int32_t* states, T* resp) {
    by_size(c.k, [&](auto n) {
        viterbi_sized<decltype(n)::value>(c, seq, counts, scratch, objective, states, resp);
    });
}

}  // namespace

template <class T> const ChainKernels<T>& chain_table() {
    static const ChainKernels<T> all{forward_backward<T>, forward, viterbi<T>};
    return all;
}
template const ChainKernels<float>& chain_table<float>();
template const ChainKernels<double>& chain_table<double>();

}  // namespace coem::COEM_ISA
