// A model's pass over a batch as a list of works: built on the host from what nn's layers say of
// themselves, carried out by whatever can (CUDA's libraries and kernels, or a test's plain loops).
#pragma once

#include <fast/nn/model_spec.hpp>
#include <functional>
#include <variant>
#include <vector>

#include "cuda/layer_elements.hpp"

namespace fast::cuda {

/// Zeros around images. Filters are [filters][kernel][kernel][channels]. All three lie at multiples
/// of 16 bytes when the model's memory does.
struct ConvolutionShape {
  Index samples, channels, height, width, filters, out_height, out_width, kernel, stride, padding;
  bool operator==(const ConvolutionShape&) const = default;
};

/// out = y of (a = x, b = filters), dx of (a = dy, b = filters) or filters' gradient of (a = x,
/// b = dy).
struct Convolution {
  enum class Kind : std::uint8_t { forward, input_slopes, filter_slopes };
  Kind kind;
  ConvolutionShape shape;
  const float *a, *b;
  float* out;
};

/// c [n][m] = Σ_k op(a) op(b) of row-major a, [m][k] (or [k][m] with `a_by_k`), and b, [n][k] (or
/// [k][n] with `b_by_k`); with `bias` [m] that is added to each row, then, with `relu`, at least 0.
struct MatrixProduct {
  Index m, n, k;
  bool a_by_k, b_by_k;
  const float *a, *b;
  float* c;
  const float* bias = nullptr;
  bool relu = false;
};

using Work = std::variant<Convolution, MatrixProduct, SwapLast, AddBias, Rectify, RectifySlopes,
                          Add, AddScaled, ColumnShares, ColumnTotals, MomentShares, MomentTotals,
                          Reciprocals, Normalize, NormalizeShares, NormalizeSlopes, PoolMax,
                          PoolMaxSlopes, PoolMean, PoolMeanSlopes, SoftmaxLoss>;

/// Where a model's flat vectors lie, in nn's order and layout.
struct ModelMemory {
  const float* parameters;
  float *gradients, *buffers;
};

/// To be given a batch at `inputs`, as it is in a Batch, and `labels`; leaves losses, hits and
/// logits. In training also the gradients, and the buffers moved.
struct Program {
  Index samples;
  float* inputs;
  std::int32_t* labels;
  const float *losses, *logits;
  const std::int32_t* hits;
  std::vector<Work> works;
};

/// Memory that stays as long as the program is used.
using Allocate = std::function<std::byte*(std::size_t size_bytes)>;

/// Throws Error(argument) as nn::shapes() does, and on group normalization, which has no device
/// form.
Program build_program(const nn::ModelSpec& spec, Index samples, bool training,
                      const ModelMemory& model, const Allocate& allocate);

/// Throws as build_program() does on layers without a device form.
void require_device_form(const std::vector<nn::LayerSpec>& layers);

}  // namespace fast::cuda
