// A model's pass over a batch as a list of works: built on the host from what nn's layers say of
// themselves, carried out by whatever can (CUDA's libraries and kernels, or a test's plain loops).
#pragma once

#include <fast/core/element.hpp>
#include <fast/cuda/network.hpp>
#include <fast/nn/model_spec.hpp>
#include <functional>
#include <variant>
#include <vector>

#include "cuda/kernels/batch_norm_elements.hpp"
#include "cuda/kernels/group_norm_elements.hpp"
#include "cuda/kernels/loss_elements.hpp"
#include "cuda/kernels/lstm_elements.hpp"

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

/// Works that come in f32 and bf16; and all. But for the first three each is one kernel.
#define FAST_CUDA_WORKS(V)                                                                         \
  AddBias<V>, Rectify<V>, RectifyGradients<V>, Add<V>, ColumnShares<V>, MomentShares<V>,           \
      Normalize<V>, NormalizeShares<V>, NormalizeGradients<V>, PlaneMoments<V>, GroupNormalize<V>, \
      GroupNormalizeShares<V>, GroupNormalizeGradients<V>, PoolMax<V>, PoolMaxGradients<V>,        \
      PoolMean<V>, PoolMeanGradients<V>, TakeLast<V>, SpreadLast<V>, SoftmaxLoss<V>,               \
      SwapLast<V, V>
using Work = std::variant<Convolution, MatrixProduct, Recurrence, AddScaled, ColumnTotals,
                          MomentTotals, FixedMoments, NormalizeTotals, GroupMoments, GroupGradients,
                          SwapLast<float, BFloat16>, SwapLast<BFloat16, float>,
                          FAST_CUDA_WORKS(float), FAST_CUDA_WORKS(BFloat16)>;
#undef FAST_CUDA_WORKS

/// Where a model's flat vectors lie, in nn's order and layout.
struct ModelMemory {
  const float* parameters;
  float *gradients, *buffers;
};

/// To be given a batch at `inputs`, as it is in a Batch, and `labels`; leaves losses and hits. In
/// training also the gradients, and the buffers moved.
struct Program {
  Index samples;
  float* inputs;
  std::int32_t* labels;
  const float* losses;
  const std::int32_t* hits;
  std::vector<Work> works;
};

/// Memory that stays as long as the program is used.
using Allocate = std::function<std::byte*(std::size_t size_bytes)>;

/// Values between layers are bf16 with Precision::bf16, else f32. Throws Error(argument) as
/// nn::shapes() does.
Program build_program(const nn::ModelSpec& spec, Index samples, bool training, Precision precision,
                      const ModelMemory& model, const Allocate& allocate);

}  // namespace fast::cuda
