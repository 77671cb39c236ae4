#include <sys/mman.h>

#include <cstdlib>
#include <cstring>
#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>

namespace fast {
namespace {
constexpr std::size_t huge_page_bytes = std::size_t{2} << 20;
}

AlignedBuffer::AlignedBuffer(std::size_t size_bytes) : size_(size_bytes) {
  if (size_bytes == 0) return;
  const bool huge = size_bytes >= 2 * huge_page_bytes;
  const std::size_t alignment = huge ? huge_page_bytes : cache_line_bytes;
  data_ = static_cast<std::byte*>(std::aligned_alloc(alignment, round_up(size_bytes, alignment)));
  require(data_ != nullptr, ErrorKind::resource, "AlignedBuffer: no memory for {} bytes",
          size_bytes);
  if (huge) madvise(data_, size_bytes, MADV_HUGEPAGE);
  std::memset(data_, 0, size_bytes);
}

AlignedBuffer::~AlignedBuffer() { std::free(data_); }

}  // namespace fast
