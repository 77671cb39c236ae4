// Optimistic reads, as of a seqlock: a reader loads memory that its writer may change at the same
// time, then checks that the writer did not (still_holds() of slot_protocol.hpp). Only then what it
// read counts. The language has no such reads but of atomics, element by element; why these are
// sound is in docs/explanation/slot-protocol.md.
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

// read_optimistically() returns `size_bytes` at `from`, possibly torn. They are read in place,
// without a copy. The thread sanitizer does not know optimistic reads: there, this one function,
// which the sanitizer ignores, copies the bytes to `scratch`. It does not know fences either.
#ifdef FAST_THREAD_SANITIZER
inline constexpr bool guarded_reads = true;
__attribute__((no_sanitize("thread"), noinline)) inline const std::byte* read_optimistically(
    const std::byte* from, std::byte* scratch, std::size_t size_bytes) {
  const volatile std::byte* source = from;
  for (std::size_t i = 0; i < size_bytes; ++i) scratch[i] = source[i];
  return scratch;
}
inline void order_loads() {}
inline void order_stores() {}
inline void copy_optimistically(std::byte* to, const std::byte* from, std::size_t size_bytes) {
  read_optimistically(from, to, size_bytes);
}
#else
inline constexpr bool guarded_reads = false;
inline const std::byte* read_optimistically(const std::byte* from, std::byte*, std::size_t) {
  return from;
}
/// Orders the loads before it before the loads after it.
inline void order_loads() { std::atomic_thread_fence(std::memory_order_acquire); }
/// Orders the stores before it before the stores after it, but for streaming stores on x86.
inline void order_stores() { std::atomic_thread_fence(std::memory_order_release); }
inline void copy_optimistically(std::byte* to, const std::byte* from, std::size_t size_bytes) {
  std::memcpy(to, from, size_bytes);
}
#endif

}  // namespace fast
