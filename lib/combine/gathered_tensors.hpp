// Small tensors that lie apart in memory. A sweep takes longer from one to the next than for their
// elements, so it runs over copies that lie one after the other.
#pragma once

#include <fast/core/memory.hpp>
#include <fast/core/tensor_view.hpp>

#include <cstddef>
#include <vector>

namespace fast::combine {

class GatheredTensors {
 public:
  GatheredTensors() = default;
  explicit GatheredTensors(const ParameterLayout& layout);

  /// The given layout over the memory that sweeps use: the copies, and the model's own memory of
  /// all other tensors.
  const ParameterLayout& layout() const { return layout_; }
  /// Copies from the model, and to it.
  void gather() const;
  void scatter() const;

 private:
  struct Copy {
    std::byte* model;
    std::byte* here;
    std::size_t size_bytes;
  };

  AlignedBuffer memory_;
  std::vector<Copy> copies_;
  ParameterLayout layout_;
};

}  // namespace fast::combine
