// Works that libraries of CUDA run.
#pragma once

#include <fast/core/element.hpp>

#include <type_traits>

#include "nn/cuda/layer_elements.hpp"

namespace fast::cuda {

// Works before and after recurrent layers of cuDNN: weights in the orders of nn and cuDNN, and the
// last step of sequences [sample][step][feature].

/// The offsets of the matrices and biases of the gates in the weight space of cuDNN, in elements.
/// Gates are i, f, g, o of an LSTM and r, z, n of a GRU, in nn as in cuDNN. Matrices are row-major,
/// [hidden][inputs] and [hidden][hidden]. The first biases belong to the inputs, the second ones to
/// the hidden units.
struct RecurrentOffsets {
  Index inputs[4], hidden[4], bias[2][4];
};

/// The weights of the layer in nn's flat vector: of the inputs [gates·hidden][inputs], of the
/// hidden units [gates·hidden][hidden], biases [biases][gates·hidden].
struct RecurrentSizes {
  Index inputs, hidden, gates, biases;

  FAST_HOST_DEVICE Index count() const { return gates * hidden * (inputs + hidden + biases); }
  /// The offset of element e in the weight space of cuDNN.
  FAST_HOST_DEVICE Index offset(const RecurrentOffsets& offsets, Index e) const {
    const Index matrix = hidden * inputs, square = hidden * hidden;
    if (e < gates * matrix) return offsets.inputs[e / matrix] + e % matrix;
    e -= gates * matrix;
    if (e < gates * square) return offsets.hidden[e / square] + e % square;
    e -= gates * square;
    return offsets.bias[e / hidden / gates][e / hidden % gates] + e % hidden;
  }
};

template <class V>
struct PackRecurrent {
  const float* weights;
  V* space;
  RecurrentSizes sizes;
  RecurrentOffsets offsets;

  Index size() const { return sizes.count(); }
  FAST_HOST_DEVICE void at(Index e) const { put(weights[e], space, sizes.offset(offsets, e)); }
};

template <class V>
struct UnpackRecurrent {
  const V* space;
  float* weights;
  RecurrentSizes sizes;
  RecurrentOffsets offsets;

  Index size() const { return sizes.count(); }
  FAST_HOST_DEVICE void at(Index e) const { weights[e] = get(space, sizes.offset(offsets, e)); }
};

template <class V>
struct TakeLast {
  const V* sequences;
  V* last;  // [sample][feature]
  Index samples, steps, features;

  Index size() const { return samples * features; }
  FAST_HOST_DEVICE void at(Index e) const {
    last[e] = sequences[((e / features + 1) * steps - 1) * features + e % features];
  }
};

/// Sets all steps but the last to zero.
template <class V>
struct SpreadLast {
  const V* last;
  V* sequences;
  Index samples, steps, features;

  Index size() const { return samples * steps * features; }
  FAST_HOST_DEVICE void at(Index e) const {
    const Index sample = e / features / steps;
    const bool kept = e / features % steps == steps - 1;
    sequences[e] = kept ? last[sample * features + e % features] : V{};
  }
};

/// Shapes of a convolution with zero padding. Filters are [filters][kernel rows][kernel][channels].
/// All three tensors lie at multiples of 16 bytes if the memory of the model does.
struct ConvolutionShape {
  Index samples, channels, height, width, filters, out_height, out_width, kernel, stride, padding;
  DType type = DType::f32;  // of all three: f32 or bf16; sums are in f32
  bool one_row = false;  // sequences as images of one row: so are kernels, and no rows are padded

  Index kernel_rows() const { return one_row ? 1 : kernel; }
  Index padding_rows() const { return one_row ? 0 : padding; }
  bool operator==(const ConvolutionShape&) const = default;
};

/// out is y for (a = x, b = filters), dx for (a = dy, b = filters), or the gradient of the filters
/// for (a = x, b = dy).
struct Convolution {
  enum class Kind : std::uint8_t { forward, input_grads, filter_grads };
  Kind kind;
  ConvolutionShape shape;
  const void *a, *b;
  void* out;
};

/// c [n][m] = Σ_k op(a) op(b), row-major. a is [m][k], or [k][m] with `a_by_k`. b is [n][k], or
/// [k][n] with `b_by_k`. `bias` [m], unless null, is added to each row. With `relu`, then max(c,
/// 0).
struct MatrixProduct {
  Index m, n, k;
  bool a_by_k, b_by_k;
  const void *a, *b;
  void* c;
  const void* bias = nullptr;
  bool relu = false;
  DType factors = DType::f32,
        result = DType::f32;  // f32 or bf16; the bias has the type of the result
};

/// nn's recurrent layers.
enum class Cell : std::uint8_t { lstm, gru };

struct RecurrentShape {
  Index samples, steps, inputs, hidden;
  Cell cell = Cell::lstm;
  DType type = DType::f32;  // of values; weights and gradients are f32

  RecurrentSizes sizes() const {
    return cell == Cell::lstm ? RecurrentSizes{inputs, hidden, 4, 1}
                              : RecurrentSizes{inputs, hidden, 3, 2};
  }
  bool operator==(const RecurrentShape&) const = default;
};

/// A recurrent layer with the outputs of every step. The kinds training and evaluation compute y
/// from x. After training, grads computes dx and the gradients from (x, y, dy). Values are
/// [sample][step][feature]; `weights` and `gradients` are those of the layer in nn's order. `layer`
/// is the number of the recurrent layer in the model: memory is kept for it between training and
/// grads.
struct Recurrence {
  enum class Kind : std::uint8_t { training, evaluation, grads };
  Kind kind;
  RecurrentShape shape;
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
