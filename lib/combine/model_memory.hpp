// The memory that a worker's weights are in, on the host or on a device: copies to and from it, and
// whether its values are finite.
#pragma once

#include <fast/core/memory.hpp>
#include <fast/core/tensor_view.hpp>

#include <cstddef>
#include <cstring>
#include <string>
#include <utility>
#include <vector>

namespace fast::combine {

/// Returns whether a packed vector of that layout is finite.
bool is_finite(const ParameterLayout& layout, const std::byte* packed);
/// Returns whether the model's memory, which is the host's, is finite.
bool is_finite(const ParameterLayout& layout);
/// The first tensor in that memory with a value that is not finite, as describe(TensorView); empty:
/// there is none.
std::string first_not_finite(const ParameterLayout& layout);

class ModelMemory {
 public:
  explicit ModelMemory(ParameterLayout layout) : layout_(std::move(layout)) {}
  virtual ~ModelMemory() = default;

  const ParameterLayout& layout() const { return layout_; }
  virtual void rebind(ParameterLayout layout) { layout_ = std::move(layout); }

  /// The memory that sweeps use, which may be copies of the weights: a sweep gathers them before,
  /// and scatters them after it has changed them.
  virtual const ParameterLayout& swept() const { return layout_; }
  virtual void gather() const {}
  virtual void scatter() const {}
  /// Whether the weights are finite. Those on a device are not looked at.
  virtual bool is_finite() const { return true; }

  /// Copies the weights to a packed vector, on the host or in a slot, or a packed vector to memory
  /// of that layout. Block.
  void copy_weights_to(std::byte* packed) const;
  void copy_weights_from(const std::byte* packed, const ParameterLayout& to) const;
  void copy_weights_from(const std::byte* packed) const { copy_weights_from(packed, layout_); }
  /// Copies bytes that may be the model's, a slot's or the host's, by the time settle() returns.
  virtual void copy(std::byte* to, const std::byte* from, std::size_t size_bytes) const = 0;
  virtual void settle() const = 0;

 private:
  ParameterLayout layout_;
};

/// Small tensors that lie apart in memory are swept as copies that lie one after the other: a sweep
/// takes longer from one tensor to the next than for their elements.
class HostMemory final : public ModelMemory {
 public:
  explicit HostMemory(ParameterLayout layout) : ModelMemory(std::move(layout)) { place_copies(); }
  void rebind(ParameterLayout layout) override {
    ModelMemory::rebind(std::move(layout));
    place_copies();
  }
  const ParameterLayout& swept() const override { return swept_; }
  void gather() const override;
  void scatter() const override;
  bool is_finite() const override { return combine::is_finite(layout()); }
  void copy(std::byte* to, const std::byte* from, std::size_t size_bytes) const override {
    std::memcpy(to, from, size_bytes);
  }
  void settle() const override {}

 private:
  struct Copy {
    std::byte* model;
    std::byte* here;
    std::size_t size_bytes;
  };
  void place_copies();

  AlignedBuffer memory_;
  std::vector<Copy> copies_;
  ParameterLayout swept_;
};

}  // namespace fast::combine
