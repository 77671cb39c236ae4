// Convolutions by cuDNN's graph interface.
#pragma once

#include <cudnn_graph.h>

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "nn/cuda/program.hpp"
#include "nn/cuda/tuner.hpp"

namespace fast::cuda {

/// Throws Error(resource) with cuDNN's text for the last failure.
void check(cudnnStatus_t status, std::string_view operation);

/// Owns a descriptor of the graph interface.
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

/// cuDNN's name of f32 or bf16.
cudnnDataType_t data_type(DType type);

/// The only operation of the graph, finalized: cuDNN has checked its shapes. Needs no device. The
/// tensors have the numbers 1 (a), 2 (b) and 3 (out).
Descriptor convolution_operation(Convolution::Kind kind, const ConvolutionShape& shape);

/// The engines of cuDNN that may be used.
struct PlanRules {
  bool tf32 = false;           ///< also engines that round factors of f32 to TF32
  bool deterministic = false;  ///< only engines that give the same bits in every run
};
/// Whether an engine with these notes may be used on such tensors.
bool suits(std::span<const cudnnBackendNumericalNote_t> notes, DType type, const PlanRules& rules);

/// The name by which a Tuner knows the work. Kind, shape and precision alone decide it.
std::string tuned_name(const Convolution& work, bool tf32);

/// Plans for one device. Each is made once per kind and shape. It is the first one that works of
/// the proposals of cuDNN's heuristics, then of its fallbacks; or the one that the tuner chooses.
class Convolutions {
 public:
  /// Runs on the current device. The tuner, null for none, must live as long.
  Convolutions(const PlanRules& rules, Tuner* tuner);

  /// The workspace of its plan. A new plan is made now; the tuner writes to `out`. On the current
  /// device.
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
  std::optional<Plan> plan_for(const Descriptor& configuration, DType type);
  void execute(const Plan& plan, const Convolution& work, void* workspace, void* stream);

  PlanRules rules_;
  Tuner* tuner_;
  std::unique_ptr<std::remove_pointer_t<cudnnHandle_t>, Destroy> handle_;
  std::map<std::pair<Convolution::Kind, ConvolutionShape>, Plan, Less> plans_;
};

}  // namespace fast::cuda
