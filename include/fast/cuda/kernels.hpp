// Averaging on the device. The order of operations and the fused multiply-adds are those of
// fast/mixing/kernels.hpp. Values must lie in memory that the device of the stream can read; an
// alignment of 16 bytes makes it fast. Only the arrays of pointers and weights lie in host memory.
// Calls enqueue work and return. Throws Error(argument) on more neighbors than max_neighbors or on
// spans of different lengths, and Error(resource) if CUDA fails.
#pragma once

#include <fast/core/element.hpp>
#include <fast/cuda/stream.hpp>

#include <cstddef>
#include <span>

namespace fast::cuda {

inline constexpr int max_neighbors = 128;

/// current[e] += Σ_j weights[j] · (values[j][e] - own[e]), and next[e] = current[e], rounded to
/// nearest even for bfloat16 slots. If `current` is null, the weights of the worker are `own` and
/// exist only in slots. Memory traffic: 2 + neighbors vectors read and 2 written; without
/// `current`, 1 + neighbors read and 1 written. (T, Stored) is (float, float), (double, double) or
/// (float, BFloat16).
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

}  // namespace fast::cuda
