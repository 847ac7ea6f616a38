// The instruction sets that the kernels are compiled for, and what the processor can do.
#pragma once

namespace coem {

enum class Isa { baseline, avx2, avx512 };

inline Isa best_isa() {
#if defined(__x86_64__)
    __builtin_cpu_init();
    const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    if (has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
        __builtin_cpu_supports("avx512vl")) {
        return Isa::avx512;
    }
    if (has_avx2) return Isa::avx2;
#endif
    return Isa::baseline;
}

inline const char* name_of(Isa isa) {
    return isa == Isa::avx512 ? "avx512" : isa == Isa::avx2 ? "avx2" : "baseline";
}

}  // namespace coem
