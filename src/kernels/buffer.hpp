// Scratch memory of the kernels.
// Included by one translation unit per instruction set: everything here is inline and static.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>

namespace {

// Scratch memory for a row or for a few components. Not std::vector: its code would be compiled
// here for a newer instruction set, and the linker may hand that one copy to the baseline.
template <class T>
class Buffer {
  public:
    Buffer() = default;
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() { std::free(memory_); }

    T* of(std::size_t n) {
        if (n > capacity_) {
            std::free(memory_);
            memory_ = static_cast<T*>(std::malloc(n * sizeof(T)));
            if (!memory_) std::abort();  // the machine is out of memory
            capacity_ = n;
        }
        return memory_;
    }
    T* of(std::int64_t n) { return of(static_cast<std::size_t>(n)); }

  private:
    T* memory_ = nullptr;
    std::size_t capacity_ = 0;
};

}  // namespace
