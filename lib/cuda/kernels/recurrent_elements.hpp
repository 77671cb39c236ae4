// Works before and after recurrent layers of cuDNN: weights in the orders of nn and cuDNN, and the
// last step of sequences [sample][step][feature].
#pragma once

#include "cuda/kernels/layer_elements.hpp"

namespace fast::cuda {

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

}  // namespace fast::cuda
