// The models of fast-train on other frameworks; registry.hpp has their names. LibTorch is in a
// module that is loaded when it is chosen (load_torch.cpp). A framework that was not found at
// configuration has no_<name>.cpp instead. Its error names the package to install.
#pragma once

#include <fast/core/observer.hpp>
#include <fast/nn/backend.hpp>
#include <fast/torch/replica.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace backends {

/// The same model, initial weights, names and optimizer on LibTorch as
/// nn::make_backend<T>(spec, seed, options) has. T is float or double.
template <class T>
std::unique_ptr<fast::Backend> make_torch(const fast::nn::ModelSpec& spec, std::uint64_t seed,
                                          const fast::nn::BackendOptions& options = {},
                                          const fast::torch::ReplicaOptions& replica = {});

// What fast-train finds in its module of LibTorch.

/// make_torch<float>() with default replica options; the caller owns the result.
using MakeTorch = fast::Backend*(const fast::nn::ModelSpec& spec, std::uint64_t seed,
                                 const fast::nn::BackendOptions& options);
inline constexpr const char* make_torch_symbol = "fast_train_make_torch";

/// lenet5() and mlp({784, 256, classes}) on dlib, from nn's initial weights; SGD without Nesterov,
/// or Adam, one thread, no clipping and accumulation: Error(argument) otherwise.
std::unique_ptr<fast::Backend> make_dlib(const fast::nn::ModelSpec& spec, std::uint64_t seed,
                                         const fast::nn::BackendOptions& options = {});

/// A replica and what it computes on, for the opening table: "cuda:0 (NVIDIA H200)",
/// nothing for the CPU; and where its batches are best made, null for anywhere.
struct OnDevice {
  std::unique_ptr<fast::Backend> backend;
  std::string device;
  std::shared_ptr<fast::BatchMemory> memory = {};
};

/// Where a worker computes: on that GPU, or on the one that is its turn among its host's workers.
struct CudaPlace {
  std::optional<int> gpu;
  int rank;
  std::vector<int> hosts;  ///< by rank, of spares too
  std::string precision;   ///< f32, tf32 or bf16
  bool autotune, graph, deterministic, staged;
  fast::LogSink log;  ///< for what worker 0 has to say
};
OnDevice make_cuda(const fast::nn::ModelSpec& spec, std::uint64_t seed,
                   const fast::nn::BackendOptions& options, const CudaPlace& place);

}  // namespace backends
