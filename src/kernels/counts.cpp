// The kernels over sparse rows. Compiled once per instruction set, with COEM_ISA naming it.
// One block of rows per call, serial; the caller releases the GIL and owns the threads.

#include "counts.hpp"

#include "posterior.hpp"
#include "pruning.hpp"
#include "scores.hpp"
#include "sparse_tables.hpp"
#include "sums.hpp"

namespace coem::COEM_ISA {

template <class T> const Kernels<T>& table() {
    static const Kernels<T> all{scores<T>,          nearest<T>,   posterior<T>,
                                count_active<T>,    list_active<T>, accumulate_list<T>,
                                sum_lists<T>,       move_rows<T>, accumulate_tile<T>,
                                fill_table<T>,      set_bounds,   rises<T>,
                                chances<T>,         near,         list_rows<T>,
                                touch<T>,           collect,      fill_nothing<T>,
                                fill_pairs<T>,      table_sum<T>, sparse_scores<T>,
                                count_words,        sum_words<T>, fill_sparse<T>};
    return all;
}
template const Kernels<float>& table<float>();
template const Kernels<double>& table<double>();

}  // namespace coem::COEM_ISA
