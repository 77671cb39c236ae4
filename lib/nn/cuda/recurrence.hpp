// Recurrent layers by cuDNN's RNN interface. The graph interface has none.
#pragma once

#include <cudnn_adv.h>

#include <fast/cuda/memory.hpp>
#include <map>
#include <memory>

#include "nn/cuda/program.hpp"

namespace fast::cuda {

template <class T, cudnnStatus_t (*destroy)(T)>
struct DestroyOwned {
  void operator()(T handle) const { destroy(handle); }
};
template <class T, cudnnStatus_t (*destroy)(T)>
using Owned = std::unique_ptr<std::remove_pointer_t<T>, DestroyOwned<T, destroy>>;

/// cuDNN's descriptions of the layer and its tensors. Without a handle, they need no device.
struct RecurrentDescription {
  RecurrentDescription(const RecurrentShape& shape, bool tf32, cudnnHandle_t handle = nullptr);

  Owned<cudnnDropoutDescriptor_t, cudnnDestroyDropoutDescriptor> dropout;
  Owned<cudnnRNNDescriptor_t, cudnnDestroyRNNDescriptor> layer;
  Owned<cudnnRNNDataDescriptor_t, cudnnDestroyRNNDataDescriptor> x, y;
  Owned<cudnnTensorDescriptor_t, cudnnDestroyTensorDescriptor> state;  // of h, and of c of an LSTM
};

/// Recurrent layers on one device: descriptions for each shape. For each layer of a model, also its
/// weights in cuDNN's order and the values that training keeps for the gradients.
class Recurrences {
 public:
  /// With `tf32`, factors may be rounded to TF32. For the current device.
  explicit Recurrences(bool tf32) : tf32_(tf32) {}

  /// Allocates all that run() needs. Returns the size of its workspace in bytes. On the current
  /// device.
  std::size_t prepare(const Recurrence& work);
  void run(const Recurrence& work, void* workspace, void* stream);
  /// Changes when memory that works refer to has moved.
  std::uint64_t version() const { return version_; }

 private:
  struct Plan {
    Plan(const RecurrentShape& shape, bool tf32, cudnnHandle_t handle)
        : description(shape, tf32, handle) {}
    RecurrentDescription description;
    std::size_t space_bytes = 0, workspace_bytes[2] = {},
                reserve_bytes = 0;  // evaluation, training
    RecurrentOffsets offsets = {};
  };
  struct Kept {
    DeviceBuffer weights, reserve;
  };
  struct Less {
    bool operator()(const RecurrentShape& a, const RecurrentShape& b) const;
  };
  Plan& plan_of(const RecurrentShape& shape);
  void read_offsets(const RecurrentShape& shape, const void* space, Plan& plan);
  void grow(DeviceBuffer& buffer, std::size_t size_bytes);
  template <class V>
  void run_on(const Recurrence& work, const Plan& plan, void* workspace, void* stream);
  void forward(const Recurrence& work, const Plan& plan, const Kept& kept, void* workspace);
  void backward(const Recurrence& work, const Plan& plan, const Kept& kept, void* workspace);

  bool tf32_;
  Owned<cudnnHandle_t, cudnnDestroy> handle_;  // made for the first layer
  std::map<RecurrentShape, Plan, Less> plans_;
  std::map<Index, Kept> kept_;  // by layer
  DeviceBuffer gradients_;
  std::uint64_t version_ = 0;
};

}  // namespace fast::cuda
