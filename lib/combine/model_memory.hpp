// The memory that a worker's weights are in, on the host or on a device, and copies to and from it.
#pragma once

#include <fast/core/tensor_view.hpp>

#include <cstddef>
#include <cstring>
#include <utility>

#include "combine/finite.hpp"
#include "combine/gathered_tensors.hpp"

namespace fast::combine {

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

class HostMemory final : public ModelMemory {
 public:
  explicit HostMemory(ParameterLayout layout)
      : ModelMemory(std::move(layout)), tensors_(this->layout()) {}
  void rebind(ParameterLayout layout) override {
    ModelMemory::rebind(std::move(layout));
    tensors_ = GatheredTensors(this->layout());
  }
  const ParameterLayout& swept() const override { return tensors_.layout(); }
  void gather() const override { tensors_.gather(); }
  void scatter() const override { tensors_.scatter(); }
  bool is_finite() const override { return combine::is_finite(layout()); }
  void copy(std::byte* to, const std::byte* from, std::size_t size_bytes) const override {
    std::memcpy(to, from, size_bytes);
  }
  void settle() const override {}

 private:
  GatheredTensors tensors_;
};

}  // namespace fast::combine
