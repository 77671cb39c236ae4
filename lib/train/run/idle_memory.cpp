#include "train/run/idle_memory.hpp"

#include <sys/mman.h>

#include <fast/core/memory.hpp>

namespace fast::train {

void release_pages(const std::vector<TensorView>& tensors) {
  for (const TensorView& tensor : tensors) {
    if (tensor.device != Device{}) continue;
    const auto begin = reinterpret_cast<std::size_t>(tensor.data);
    const std::size_t first = round_up(begin, page_bytes);
    const std::size_t end = (begin + tensor.size_bytes()) / page_bytes * page_bytes;
    if (end > first) madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
  }
}

}  // namespace fast::train
