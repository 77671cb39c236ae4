// Owned, aligned, zeroed memory.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

namespace fast {

inline constexpr std::size_t cache_line_bytes = 64;
inline constexpr std::size_t page_bytes = 4096;

constexpr std::size_t round_up(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

/// Asks the system for huge pages in memory of 4 MiB or more that nobody has touched yet; where
/// they are not allowed, nothing changes. The settings of
/// /sys/kernel/mm/transparent_hugepage/shmem_enabled hold for shared memory, and every process that
/// maps it asks.
void ask_for_huge_pages(void* memory, std::size_t size_bytes);

/// Zeroed host memory, aligned to 64 bytes, or to 2 MiB (with huge pages asked for) from 4 MiB on.
/// Moveable; a moved-from buffer is empty. Throws Error(resource) when there is no memory.
class AlignedBuffer {
 public:
  AlignedBuffer() = default;
  explicit AlignedBuffer(std::size_t size_bytes);
  AlignedBuffer(AlignedBuffer&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  AlignedBuffer& operator=(AlignedBuffer&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~AlignedBuffer();

  std::byte* data() const noexcept { return data_; }
  std::size_t size_bytes() const noexcept { return size_; }
  template <class T>
  std::span<T> as() const noexcept {
    return {reinterpret_cast<T*>(data_), size_ / sizeof(T)};
  }

 private:
  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace fast
