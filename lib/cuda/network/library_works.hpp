// Works that CUDA's libraries carry out.
#pragma once

#include <fast/core/element.hpp>
#include <type_traits>

#include "cuda/kernels/layer_elements.hpp"

namespace fast::cuda {

/// Zeros around images. Filters are [filters][kernel][kernel][channels]. All three lie at multiples
/// of 16 bytes when the model's memory does.
struct ConvolutionShape {
  Index samples, channels, height, width, filters, out_height, out_width, kernel, stride, padding;
  DType type = DType::f32;  // of all three: f32 or bf16; sums are in f32
  bool operator==(const ConvolutionShape&) const = default;
};

/// out = y of (a = x, b = filters), dx of (a = dy, b = filters) or filters' gradient of (a = x,
/// b = dy).
struct Convolution {
  enum class Kind : std::uint8_t { forward, input_grads, filter_grads };
  Kind kind;
  ConvolutionShape shape;
  const void *a, *b;
  void* out;
};

/// c [n][m] = Σ_k op(a) op(b) of row-major a, [m][k] (or [k][m] with `a_by_k`), and b, [n][k] (or
/// [k][n] with `b_by_k`); with `bias` [m] that is added to each row, then, with `relu`, at least 0.
struct MatrixProduct {
  Index m, n, k;
  bool a_by_k, b_by_k;
  const void *a, *b;
  void* c;
  const void* bias = nullptr;
  bool relu = false;
  DType factors = DType::f32, result = DType::f32;  // f32 or bf16; the bias is like the result
};

struct LstmShape {
  Index samples, steps, inputs, hidden;
  DType type = DType::f32;  // of values; weights and gradients are f32
  bool operator==(const LstmShape&) const = default;
};

/// nn's Lstm with the outputs of every step: y of x, in training or not; or, after it in training,
/// dx and gradients of (x, y, dy). Values are [sample][step][feature], `weights` and `gradients`
/// those of the layer in nn's order. `layer` counts the model's: between the two, what carries them
/// out keeps memory of its own.
struct Recurrence {
  enum class Kind : std::uint8_t { training, evaluation, grads };
  Kind kind;
  LstmShape shape;
  Index layer;
  const float* weights;
  const void* x;
  void* y;
  const void* dy = nullptr;
  void* dx = nullptr;
  float* gradients = nullptr;
};

template <class W>
inline constexpr bool is_library_work =
    std::is_same_v<W, Convolution> || std::is_same_v<W, MatrixProduct> ||
    std::is_same_v<W, Recurrence>;

}  // namespace fast::cuda
