// Sparse rows times tables: what the count families compute. Declarations shared by every
// instruction set; `counts.cpp` is compiled once for each of them.
#pragma once

#include <cstdint>

namespace coem {

// The numbers of a CSR matrix as the caller holds them: nothing is copied or converted up front.
enum class Number : int { f32, f64, i32, i64 };

struct Csr {
    const void* indptr;   // IN, n_rows + 1
    const void* indices;  // IN
    const void* data;     // IN
    Number index;         // i32 or i64, of indptr and indices
    Number value;         // of data
    std::int64_t n_rows;
    std::int64_t n_entries;  // of indices and data
};

// Posterior rule for one block of rows. `log_joint` becomes log p(component | row) at beta = 1;
// forbidden components get a large negative number, never -inf.
struct PosteriorArgs {
    double* log_joint;             // IN/OUT (n, k): log p(row | component), without the weights
    const double* log_weights;     // IN (k)
    const std::uint8_t* allowed;   // IN (n, k), or null: every component is allowed
    std::int64_t n_rows;
    std::int64_t n_components;
    double beta;
    bool hard;
    double* evidence;              // OUT (n): log sum_k exp(log joint)
    double* objective;             // OUT (n): what the rule maximises, tempered
};

// Rows that matter to components, and how much; every component owns a range of entries.
template <class T>
struct Lists {
    std::int32_t* rows;
    T* weights;
};

// Sums (m, V) of some components, in either order of memory.
struct Sums {
    const double* data;
    std::int64_t m;
    std::int64_t component_step;
    std::int64_t word_step;
};

// What becomes of sums in a table.
struct Fill {
    double alpha;         // added to every sum
    const double* scale;  // (m), by which the sums of a component are multiplied
    bool logs;            // take logarithms,
    double floor;         // that of zero being this
};

struct Words {
    std::int64_t begin;
    std::int64_t end;
    bool sorted;  // the words of every row are in order
};

// Rows that go from one component to another; -1 is none.
struct Moves {
    const std::int32_t* rows;
    const std::int32_t* from;
    const std::int32_t* to;
    const double* weights;
    std::int64_t n;
};

// Sums of rows, and what is made of them, while rows come and go.
template <class T>
struct Followed {
    double* sums;     // IN/OUT (k, n_words)
    T* table;         // OUT (n_words, k): the same as a table, where they change
    double* squares;  // IN/OUT (k): what the squares of their lengths grow by is added
    std::int64_t k;
    std::int64_t n_words;
};

// Upper bounds of the scores of rows, relative to a level of each row; 16 bits each.
struct Bounds {
    std::uint16_t* gaps;   // (n, stride), stride being k rounded up to eight
    double* level;         // (n)
    std::int64_t stride;
};

// Which components cannot matter.
struct Pruning {
    const double* rise;           // (k): what a count of one adds to a bound
    const double* log_weights;    // (k)
    const std::uint8_t* allowed;  // (n, k), or null
    const std::uint8_t* blank;    // (n): rows that count as empty, or null
    double reach;                 // how far behind the best one a component still matters
    std::int64_t k;
};

// Vectors of eight components that can matter to each row, and their log joints.
struct Found {
    std::int64_t* offsets;  // (n + 1), the first being set
    std::int32_t* units;    // (room)
    double* joint;          // (room, 8)
    std::int64_t room;
};

// Words with counts, and the counts, of one component after the other.
struct Pairs {
    std::int32_t* words;
    double* sums;
};

// Responsibilities of rows: those of row i are the entries from offsets[i] on.
template <class T>
struct RowLists {
    const std::int64_t* offsets;
    const std::int32_t* components;
    const T* values;
};

// Sums of words: those of word w are the pairs from offsets[w] on, by component, in order.
struct WordSums {
    const std::int64_t* offsets;
    const std::int32_t* components;
    const double* sums;
};

// A table (k, V) most of whose cells are those of words that a component has not seen.
template <class T>
struct SparseTable {
    const double* unseen;           // (k): such a cell
    const std::int32_t* places;     // (V): where a word is in `common`, or -1
    T* common;                      // (n_common, k): all cells of words that most components have
    const std::int64_t* offsets;    // (V + 1): the cells of other words, one word after the other
    std::int32_t* components;
    T* cells;
    std::int64_t k;
};

template <class T>
struct Kernels {
    // out (n, k) = X table^T. A table (V, k) holds the components of a word side by side, and has
    // eight spare cells at its end, for reading whole vectors.
    void (*scores)(const Csr&, const T* table, std::int64_t k, double* out);
    // labels (n) and values (n) = the largest of the scores of the rows first <= i < last, times
    // scale (k), and where it is; of equals the first
    void (*nearest)(const Csr&, const T* table, const double* scale, std::int64_t k,
                    std::int64_t first, std::int64_t last, std::int32_t* labels, double* values);
    void (*posterior)(const PosteriorArgs&, T* resp);
    // counts (k) += how many of the rows matter to each component
    void (*count_active)(const T* resp, std::int64_t n, std::int64_t k, std::int64_t* counts);
    // list the rows, numbered from `first` on, from places (k) on, which move to the end
    void (*list_active)(const T* resp, std::int64_t n, std::int64_t k, std::int64_t first,
                        std::int64_t* places, const Lists<T>&);
    // sums (V) += X^T resp over the list entries lo <= e < hi of one component
    void (*accumulate_list)(const Csr&, const Lists<T>&, std::int64_t lo, std::int64_t hi,
                            double* sums);
    // the same for the components first <= j < last, which own the entries from offsets[j] on, in
    // sums (k, n_words), set to zero before where `fresh`; squares (k) of their lengths
    void (*sum_lists)(const Csr&, const Lists<T>&, const std::int64_t* offsets,
                      const std::uint8_t* fresh, std::int64_t first, std::int64_t last,
                      std::int64_t n_words, double* sums, double* squares);
    // take rows from one component's sums to another's, for some words
    void (*move_rows)(const Csr&, const Moves&, Words, const Followed<T>&);
    // tile (V, 8) = X^T resp for the components lo <= j < hi and some words; hi - lo <= 8
    void (*accumulate_tile)(const Csr&, const T* resp, std::int64_t k, std::int64_t lo,
                            std::int64_t hi, Words, double* tile);
    // components first <= j < first + m of table (V, k) = (sums (m, V) + alpha) scale (m), or its
    // logarithm, for the words lo <= w < hi; returns the sum of these cells
    double (*fill_table)(const Sums&, std::int64_t lo, std::int64_t hi, const Fill&, T* table,
                         std::int64_t k, std::int64_t first);
    // the bounds of rows for scores (n, m) of some columns (m); of all, with levels, for null
    void (*set_bounds)(const Bounds&, const double* scores, const std::int32_t* columns,
                       std::int64_t n, std::int64_t m);
    // rise (k) = by how much the words lo <= w < hi of a table rose at most
    void (*rises)(const T* before, const T* after, std::int64_t k, std::int64_t lo,
                  std::int64_t hi, T* rise);
    // score what can matter to the rows from `first` on; returns the row it had no room for
    std::int64_t (*chances)(const Csr&, const T* table, const Pruning&, const Bounds&,
                            std::int64_t first, const Found&);
    // list what is in reach of the best of each row of log joints (n, k); false for want of room
    bool (*near)(const double* joint, std::int64_t n, std::int64_t k, double reach, const Found&);
    // list what is not zero in resp (n, k), row by row
    void (*list_rows)(const T* resp, std::int64_t n, std::int64_t k, std::int64_t* offsets,
                      std::int32_t* components, T* values);
    // add list entries to sums (V), which were zero, and list the words; returns their number
    std::int64_t (*touch)(const Csr&, const Lists<T>&, std::int64_t lo, std::int64_t hi,
                          double* sums, std::int32_t* words);
    // move the sums (V) of listed words to their pairs, so that they are zero again
    void (*collect)(double* sums, std::int64_t n, const Pairs&);
    // cells of words lo <= w < hi of a table (V, k): what a sum of zero becomes
    void (*fill_nothing)(const Fill&, std::int64_t lo, std::int64_t hi, T* table, std::int64_t k);
    // cells of component j for n pairs; returns what that adds to the sum of the cells
    double (*fill_pairs)(const Fill&, const Pairs&, std::int64_t n, T* table, std::int64_t k,
                         std::int64_t j);
    // sum of the cells lo <= c < hi
    double (*table_sum)(const T* table, std::int64_t lo, std::int64_t hi);
    // out (n, k) = X table^T
    void (*sparse_scores)(const Csr&, const SparseTable<T>&, double* out);
    // entries (V) += in how many rows each word is; pairs (V) += how many components these have
    void (*count_words)(const Csr&, const std::int64_t* offsets, std::int64_t* entries,
                        std::int64_t* pairs);
    // sums of some words: found (n words) = how many components each has, which fill `components`
    // and `sums`, one word after the other; the words are in `entries` (n words) rows; returns the
    // number of pairs
    std::int64_t (*sum_words)(const Csr&, const RowLists<T>&, Words, const std::int64_t* entries,
                              std::int64_t k, std::int64_t* found, std::int32_t* components,
                              double* sums);
    // cells of the words lo <= w < hi; sums below `least` are those of unseen words
    void (*fill_sparse)(const WordSums&, const Fill&, double least, std::int64_t lo,
                        std::int64_t hi, const SparseTable<T>&);
};

template <class T> const Kernels<T>& kernels();  // the fastest that this machine can run
const char* instruction_set();

namespace baseline { template <class T> const Kernels<T>& table(); }
#ifdef COEM_X86
namespace avx2 { template <class T> const Kernels<T>& table(); }
namespace avx512 { template <class T> const Kernels<T>& table(); }
#endif

}  // namespace coem
