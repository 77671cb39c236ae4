// The library's own networks behind the adapter that the Trainer drives.
#pragma once

#include <fast/backend/backend.hpp>
#include <fast/nn/model_spec.hpp>
#include <fast/nn/optimizer.hpp>

#include <cstdint>
#include <memory>

namespace fast::nn {

struct BackendOptions {
  OptimizerSpec optimizer = SgdOptions{};
  /// Gradients of a larger Euclidean norm, over all parameters, are scaled down to it (Pascanu et
  /// al. 2013, arXiv 1211.5063), after the hook; 0: never.
  double clip_norm = 0;
  /// A batch is taken in so many parts, of nearly equal size, one after the other; their gradients
  /// are averaged by samples. Memory is that of one part.
  int accumulate = 1;
  /// Cores to use: so many threads take parts of a batch, of whole SIMD blocks of samples. Results
  /// are the same, bit for bit, for the same number of threads. Batch normalization is over each
  /// thread's part; the running statistics are averaged.
  int threads = 1;
};

/// A Network<T> with an Optimizer<T>; T is float or double. name() is "nn". Parameters are views of
/// one flat vector in their order, optimizer_state() is the optimizer's. Throws Error(argument) on
/// options out of range, and as Network and Optimizer do.
template <class T>
std::unique_ptr<Backend> make_backend(ModelSpec spec, std::uint64_t seed,
                                      BackendOptions options = {});

}  // namespace fast::nn
