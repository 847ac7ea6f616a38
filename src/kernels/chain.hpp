// Hidden Markov chains: posteriors and best paths of whole sequences.
// Declarations shared by every instruction set; `chain.cpp` is compiled once for each of them.
#pragma once

#include <cstdint>

namespace coem {

// A chain with k states. All are log probabilities, -inf where there is none.
struct Chain {
    const double* log_start;       // IN, k
    const double* log_transition;  // IN, k x k, from the row's state to the column's
    std::int64_t k;
    double beta;  // inverse temperature, positive
};

// Rows of several sequences, one sequence after the other; those from lo to hi are visited.
struct Sequences {
    const double* log_prob;       // IN, n x k, log p(row | state)
    const std::uint8_t* allowed;  // IN, n x k, or null
    const std::int64_t* offsets;  // IN, one more than there are sequences
    const double* weights;        // IN, one per sequence, or null: what their counts are worth
    std::int64_t lo;
    std::int64_t hi;
};

// Expected counts, which are added to.
struct ChainCounts {
    double* starts;       // k
    double* transitions;  // k x k
};

// Values per sequence are -inf if no path is possible, and NaN if a row holds NaN or +inf. Such a
// sequence adds no counts, its responsibilities are zero, and its states are -1.
// `scratch` has room for `padded` numbers per row of the longest sequence.
template <class T>
struct ChainKernels {
    // resp (n, k) = posterior of each row's state; objective = log Z / beta, where Z is the sum of
    // the joint probabilities of all paths, each to the power beta.
    void (*forward_backward)(const Chain&, const Sequences&, const ChainCounts&, double* scratch,
                             double* objective, T* resp);
    // the objective alone
    void (*forward)(const Chain&, const Sequences&, double* scratch, double* objective);
    // states (n) = the best path, and objective its log joint probability. resp may be null.
    void (*viterbi)(const Chain&, const Sequences&, const ChainCounts&, double* scratch,
                    double* objective, std::int32_t* states, T* resp);
};

// States filled up to whole vectors of four.
inline std::int64_t padded(std::int64_t k) { return (k + 3) / 4 * 4; }

template <class T> const ChainKernels<T>& chain_kernels();  // the fastest this machine can run

namespace baseline { template <class T> const ChainKernels<T>& chain_table(); }
#ifdef COEM_X86
namespace avx2 { template <class T> const ChainKernels<T>& chain_table(); }
namespace avx512 { template <class T> const ChainKernels<T>& chain_table(); }
#endif

}  // namespace coem
