#include "combine/model_memory.hpp"

namespace fast::combine {

void ModelMemory::copy_weights_to(std::byte* packed) const {
  for (const Segment& s : layout_.segments()) {
    copy(packed + s.offset_bytes, static_cast<const std::byte*>(s.data), s.size_bytes());
  }
  settle();
}

void ModelMemory::copy_weights_from(const std::byte* packed, const ParameterLayout& to) const {
  for (const Segment& s : to.segments()) {
    copy(static_cast<std::byte*>(s.data), packed + s.offset_bytes, s.size_bytes());
  }
  settle();
}

}  // namespace fast::combine
