// Convolutions by cuDNN's graph interface.
#pragma once

#include <cudnn_graph.h>

#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "cuda/network/program.hpp"

namespace fast::cuda {

/// Throws Error(resource) with what cuDNN says of the last failure.
void check(cudnnStatus_t status, std::string_view operation);

/// Owns one of the graph interface's descriptors.
class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type);
  cudnnBackendDescriptor_t get() const { return handle_.get(); }

  template <class T>
  void set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type, const T* values,
           std::int64_t count = 1) {
    set_raw(name, type, count, values);
  }
  void set(cudnnBackendAttributeName_t name, const Descriptor& value);
  void finalize(std::string_view what);

 private:
  struct Destroy {
    void operator()(cudnnBackendDescriptor_t handle) const;
  };
  void set_raw(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
               std::int64_t count, const void* values);
  std::unique_ptr<std::remove_pointer_t<cudnnBackendDescriptor_t>, Destroy> handle_;
};

/// f32 or bf16 in cuDNN's words.
cudnnDataType_t data_type(DType type);

/// The graph's one operation, finalized: cuDNN has found its shapes to fit. Needs no device.
/// Tensors are 1 (a), 2 (b) and 3 (out).
Descriptor convolution_operation(Convolution::Kind kind, const ConvolutionShape& shape);

/// Which of cuDNN's engines may compute.
struct PlanRules {
  bool tf32 = false;           ///< those that round factors of f32 to TF32, too
  bool deterministic = false;  ///< only those whose results are the same in every run
};
/// Whether an engine with these notes may compute on such tensors.
bool suits(std::span<const cudnnBackendNumericalNote_t> notes, DType type, const PlanRules& rules);

/// Plans for one device, each made once for a kind and shape: the first that can be made of what
/// cuDNN's heuristics propose, then of its fall-backs; or the fastest of the first few.
class Convolutions {
 public:
  /// On the current device.
  Convolutions(const PlanRules& rules, bool autotune);

  /// Of the plan for it, made now if it is new; to choose the fastest writes to `out`. On the
  /// current device, as run().
  std::size_t workspace_bytes(const Convolution& work);
  void run(const Convolution& work, void* workspace, void* stream);

 private:
  struct Plan {
    Descriptor plan;
    std::size_t workspace_bytes;
  };
  struct Destroy {
    void operator()(cudnnHandle_t handle) const;
  };
  struct Less {
    bool operator()(const std::pair<Convolution::Kind, ConvolutionShape>& a,
                    const std::pair<Convolution::Kind, ConvolutionShape>& b) const;
  };
  Plan& plan_of(const Convolution& work);
  Plan make_plan(const Convolution& work);
  std::vector<Plan> plans_for(const Convolution& work, std::size_t most);
  void execute(const Plan& plan, const Convolution& work, void* workspace, void* stream);

  PlanRules rules_;
  bool autotune_;
  std::unique_ptr<std::remove_pointer_t<cudnnHandle_t>, Destroy> handle_;
  std::map<std::pair<Convolution::Kind, ConvolutionShape>, Plan, Less> plans_;
};

}  // namespace fast::cuda
