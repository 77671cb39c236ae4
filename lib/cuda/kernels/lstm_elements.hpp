// Works before and after recurrent layers of cuDNN: weights in the orders of nn and cuDNN, and the
// last step of sequences [sample][step][feature].
#pragma once

#include "cuda/kernels/layer_elements.hpp"

namespace fast::cuda {

/// The offsets of the matrices and biases of the gates i, f, g, o in the weight space of cuDNN, in
/// elements. Matrices are row-major, [hidden][inputs] and [hidden][hidden].
struct LstmOffsets {
  Index inputs[4], hidden[4], bias[4];
};

/// The weights of the layer in nn's flat vector: of the inputs [4 hidden][inputs], of the hidden
/// units [4 hidden][hidden], biases [4 hidden].
struct LstmSizes {
  Index inputs, hidden;

  FAST_HOST_DEVICE Index count() const { return 4 * hidden * (inputs + hidden + 1); }
  /// The offset of element e in the weight space of cuDNN.
  FAST_HOST_DEVICE Index offset(const LstmOffsets& offsets, Index e) const {
    const Index matrix = hidden * inputs, square = hidden * hidden;
    if (e < 4 * matrix) return offsets.inputs[e / matrix] + e % matrix;
    e -= 4 * matrix;
    if (e < 4 * square) return offsets.hidden[e / square] + e % square;
    e -= 4 * square;
    return offsets.bias[e / hidden] + e % hidden;
  }
};

template <class V>
struct PackLstm {
  const float* weights;
  V* space;
  LstmSizes sizes;
  LstmOffsets offsets;

  Index size() const { return sizes.count(); }
  FAST_HOST_DEVICE void at(Index e) const { put(weights[e], space, sizes.offset(offsets, e)); }
};

template <class V>
struct UnpackLstm {
  const V* space;
  float* weights;
  LstmSizes sizes;
  LstmOffsets offsets;

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

}  // namespace fast::cuda
