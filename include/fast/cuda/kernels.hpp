// The arithmetic of averaging on the device: what fast/mixing/kernels.hpp does on the host, in the
// same order with the same fused multiply-adds, and with the optimizer's step in the same pass. All
// pointers but those within spans' own arrays are to memory that the stream's device can read; 16
// bytes of alignment make it fast. Calls enqueue and return. Throws Error(argument) on more
// neighbors than max_neighbors or spans of different lengths, and Error(resource) when CUDA fails.
#pragma once

#include <fast/core/element.hpp>
#include <fast/cuda/stream.hpp>
#include <fast/nn/optimizer.hpp>

#include <cstddef>
#include <span>

namespace fast::cuda {

inline constexpr int max_neighbors = 128;

/// current[e] += Σ_j weights[j] · (values[j][e] - own[e]), and next[e] = current[e], rounded to
/// nearest even where slots are of bfloat16. Without `current` (null) the weights are `own` and
/// live in slots alone. Streams moved: read 2 + neighbors, written 2; without `current` read 1 +
/// neighbors, written 1. (T, Stored) is (float, float), (double, double) or (float, BFloat16).
template <class T, class Stored>
struct Average {
  T* current;
  Stored* next;
  const Stored* own;
  std::span<const Stored* const> values;
  std::span<const T> weights;
  std::size_t count;
};
void average(const Average<float, float>& work, const Stream& stream);
void average(const Average<double, double>& work, const Stream& stream);
void average(const Average<float, BFloat16>& work, const Stream& stream);

/// The step of nn::SgdOptions for gradients of the weights, and its momentum (null without).
template <class T>
struct SgdStep {
  nn::SgdOptions options;
  const T* gradients;
  T* momentum;
};
/// The same after the step: current (or a copy of own) gets its δ first. One pass over memory for
/// optimizer, averaging and publishing: without `current` read 3 + neighbors, written 2.
void average(const Average<float, float>& work, const SgdStep<float>& step, const Stream& stream);
void average(const Average<double, double>& work, const SgdStep<double>& step,
             const Stream& stream);
void average(const Average<float, BFloat16>& work, const SgdStep<float>& step,
             const Stream& stream);

}  // namespace fast::cuda
