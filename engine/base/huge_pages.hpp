// Memory in huge pages, for large arrays with random access: with 4 KiB pages, thousands of
// endpoints exceed the processor's TLB.
#pragma once

#include <sys/mman.h>

#include <cstddef>
#include <new>

namespace daqloom::base {

/// A standard allocator that requests huge pages for blocks of at least one huge page. If the
/// system refuses, the memory has ordinary pages.
template <class T>
struct HugePages {
    using value_type = T;

    HugePages() = default;
    template <class U>
    explicit HugePages(const HugePages<U>& /*other*/) {}

    [[nodiscard]] T* allocate(std::size_t count) {
        const std::size_t bytes = count * sizeof(T);
        void* block = ::operator new(bytes, alignment(bytes));
        if (bytes >= kHugePage) {
            // Whole huge pages only, so that memory of other blocks is not affected.
            ::madvise(block, bytes / kHugePage * kHugePage, MADV_HUGEPAGE);
        }
        return static_cast<T*>(block);
    }

    void deallocate(T* block, std::size_t count) noexcept {
        const std::size_t bytes = count * sizeof(T);
        ::operator delete(block, alignment(bytes));
    }

    friend bool operator==(const HugePages& /*a*/, const HugePages& /*b*/) { return true; }

  private:
    static constexpr std::size_t kHugePage = std::size_t{1} << 21;

    static std::align_val_t alignment(std::size_t bytes) {
        return std::align_val_t{bytes >= kHugePage ? kHugePage : alignof(T)};
    }
};

}  // namespace daqloom::base
