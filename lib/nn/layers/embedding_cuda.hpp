// Embeddings on GPUs.
#pragma once

#include "nn/layers/cuda_part.hpp"

namespace fast::cuda {

/// Tokens [rows] as numbers. What is no token gives -1, as nn refuses it.
template <class V>
struct Tokens {
  const V* x;
  Index rows, tokens, width;

  FAST_HOST_DEVICE Index at(Index row) const {
    const float value = get(x, row), nearest = ::roundf(value);
    const bool is_whole = ::fabsf(value - nearest) < 1e-3F;
    if (!(is_whole && nearest >= 0 && nearest < static_cast<float>(tokens))) return -1;
    return static_cast<Index>(nearest);
  }
};

/// Rows of the weights. What is no token gives NaN, so that the loss shows it.
template <class V>
struct Lookup {
  Tokens<V> tokens;
  const float* weights;  // [tokens][width]
  V* y;

  Index size() const { return tokens.rows * tokens.width; }
  FAST_HOST_DEVICE void at(Index e) const {
    const Index token = tokens.at(e / tokens.width);
    put(token < 0 ? nanf("") : weights[token * tokens.width + e % tokens.width], y, e);
  }
};

/// A thread sums the gradients of one weight over all rows: always in the same order.
template <class V>
struct LookupTotals {
  Tokens<V> tokens;
  const V* dy;
  float* dweights;

  Index size() const { return tokens.tokens * tokens.width; }
  FAST_HOST_DEVICE void at(Index e) const {
    const Index token = e / tokens.width, i = e % tokens.width;
    float sum = 0;
    for (Index row = 0; row < tokens.rows; ++row)
      if (tokens.at(row) == token) sum += get(dy, row * tokens.width + i);
    dweights[e] = sum;
  }
};

/// In program.cpp. bf16 holds whole numbers to 256.
void require_exact_tokens(bool exact, Index tokens);
[[noreturn]] void refuse_gradient_of_tokens();

template <>
struct GpuPart<nn::Embedding> {
  template <class V>
  using Works = WorkList<Lookup<V>, LookupTotals<V>>;
  static constexpr bool takes_relu = false;

  template <class V>
  static Made<V> add(Builder<V>& build, const nn::Embedding& embedding, const Ends& ends,
                     const Values<V>& x, bool) {
    require_exact_tokens(is_exact<V>, embedding.tokens);
    const Tokens<V> tokens{x.get(), build.samples() * ends.in[0], embedding.tokens,
                           embedding.width};
    const Index w = build.parameters(embedding.tokens * embedding.width);
    const Values<V> y = build.values(tokens.rows * tokens.width);
    build.add(Lookup<V>{tokens, build.weights(w), y.get()});
    const auto backward = [=, keep = x, &build](const Values<V>& dy, bool wanted) -> Values<V> {
      build.add(LookupTotals<V>{tokens, dy.get(), build.gradients(w)});
      if (!wanted) return nullptr;
      refuse_gradient_of_tokens();
    };
    return {y, backward, true};
  }
};

/// y = x + the weights, which are the same for all samples.
template <class V>
struct AddPosition {
  const V* x;
  const float* weights;  // [size of a sample]
  V* y;
  Index count, sample_size;

  Index size() const { return count; }
  FAST_HOST_DEVICE void at(Index e) const { put(get(x, e) + weights[e % sample_size], y, e); }
};

template <>
struct GpuPart<nn::Position> {
  template <class V>
  using Works = WorkList<AddPosition<V>, ColumnShares<V>, ColumnTotals>;
  static constexpr bool takes_relu = false;

  template <class V>
  static Made<V> add(Builder<V>& build, const nn::Position&, const Ends& ends, const Values<V>& x,
                     bool) {
    const Index size = elements_of(ends.in), count = build.samples() * size;
    const Index w = build.parameters(size);
    const Values<V> y = build.values(count);
    build.add(AddPosition<V>{x.get(), build.weights(w), y.get(), count, size});
    const auto backward = [=, &build](const Values<V>& dy, bool wanted) -> Values<V> {
      add_column_sums(build, dy.get(), build.samples(), size, build.gradients(w));
      return wanted ? dy : nullptr;
    };
    return {y, backward, true};
  }
};

}  // namespace fast::cuda
