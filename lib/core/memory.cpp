#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>

namespace fast {
namespace {

constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;

bool is_large(std::size_t size_bytes) { return size_bytes >= 2 * huge_page_bytes; }

}  // namespace

void ask_for_huge_pages(void* memory, std::size_t size_bytes) {
  if (!is_large(size_bytes)) return;
  const auto begin = round_up(reinterpret_cast<std::size_t>(memory), page_bytes);
  const auto end = reinterpret_cast<std::size_t>(memory) + size_bytes;
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

AlignedBuffer::AlignedBuffer(std::size_t size_bytes) : size_(size_bytes) {
  if (size_bytes == 0) return;
  const std::size_t alignment = is_large(size_bytes) ? huge_page_bytes : cache_line_bytes;
  data_ = static_cast<std::byte*>(std::aligned_alloc(alignment, round_up(size_bytes, alignment)));
  require(
      data_ != nullptr, ErrorKind::resource,
      "AlignedBuffer: no memory for {} bytes; use a smaller model or fewer workers on this host",
      size_bytes);
  ask_for_huge_pages(data_, size_bytes);
  std::memset(data_, 0, size_bytes);
}

AlignedBuffer::~AlignedBuffer() { std::free(data_); }

}  // namespace fast
