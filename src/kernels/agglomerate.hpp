// Agglomerative clustering in which several views take turns (Bickel & Scheffer 2004, Table 2).
#pragma once

#include <cstdint>

namespace coem {

enum class Linkage : int { single, complete, average };

// What was merged, in order. Rows are clusters 0 to n - 1, the t-th merge makes cluster n + t.
struct Merges {
    std::int64_t* children;   // OUT (n - 1, 2), the smaller number first
    double* distances;        // OUT (n - 1): in the view whose turn it was
    std::int64_t* sizes;      // OUT (n - 1): rows of the new cluster
};

// Merges n rows until one cluster is left; merge t is the turn of view t modulo n_views. Of pairs
// equally close the one with the smallest slots (i, j), i < j, is merged. A row has the slot of
// its number, and a merged cluster the smaller slot of its two parts: the least of its rows.
//
// `cells` (n_views, n (n - 1) / 2) holds the distances of pairs in the order of scipy's pdist,
// finite and not negative, and is scratch memory afterwards. `keep_on` is asked now and then;
// once it says no, the merges end, and false is returned.
template <class T>
bool agglomerate(T* cells, std::int64_t n_views, std::int64_t n, Linkage linkage,
                 bool (*keep_on)(), const Merges& merges);

}  // namespace coem
