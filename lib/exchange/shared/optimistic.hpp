// Reading memory that its writer may change meanwhile; what was read counts only if a check
// afterwards says that the writer did not.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstring>

#if defined(__SANITIZE_THREAD__)
#define FAST_THREAD_SANITIZER 1
#elif defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define FAST_THREAD_SANITIZER 1
#endif
#endif

namespace fast {

/// `size_bytes` at `from`, possibly torn: in place, or, under the thread sanitizer, which has no
/// notion of such reads, as a copy in `scratch` made by this one function that it does not look
/// into.
#ifdef FAST_THREAD_SANITIZER
inline constexpr bool guarded_reads = true;
__attribute__((no_sanitize("thread"), noinline)) inline const std::byte* read_optimistically(
    const std::byte* from, std::byte* scratch, std::size_t size_bytes) {
  const volatile std::byte* source = from;
  for (std::size_t i = 0; i < size_bytes; ++i) scratch[i] = source[i];
  return scratch;
}
/// Orders the loads before it before those after it.
inline void order_loads() {}
#else
inline constexpr bool guarded_reads = false;
inline const std::byte* read_optimistically(const std::byte* from, std::byte*, std::size_t) {
  return from;
}
inline void order_loads() { std::atomic_thread_fence(std::memory_order_acquire); }
#endif

}  // namespace fast
