// The backend of the library's own networks, for the Trainer.
#pragma once

#include <fast/backend/backend.hpp>
#include <fast/nn/model_spec.hpp>
#include <fast/nn/optimizer.hpp>

#include <cstdint>
#include <memory>

namespace fast::nn {

struct BackendOptions {
  OptimizerSpec optimizer = SgdOptions{};
  /// Gradients with a larger Euclidean norm, over all parameters, are scaled down to this norm,
  /// after the hook (Pascanu et al. 2013, arXiv 1211.5063). 0: no limit.
  double clip_norm = 0;
  /// Number of parts of a batch, of nearly equal size, which are processed one after the other.
  /// Their gradients are averaged by number of samples. Memory is needed for one part only.
  int accumulate = 1;
  /// Number of threads. Each takes a part of the batch in whole SIMD blocks of samples. The same
  /// number of threads gives the same bits. Each thread normalizes its own part in batch
  /// normalization; the running statistics are averaged.
  int threads = 1;
};

/// A Network<T> with an Optimizer<T>. T is float or double; name() is "nn". Parameters are views of
/// one flat vector in its order. Throws Error(argument) on options out of range, and as Network and
/// Optimizer do.
template <class T>
std::unique_ptr<Backend> make_backend(ModelSpec spec, std::uint64_t seed,
                                      BackendOptions options = {});

}  // namespace fast::nn
