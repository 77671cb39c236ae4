// The inner loops, on plain pointers. Only the sources of this folder are compiled for x86-64-v3.
// They may not share code with functions that run before require_processor(), so they use no std::
// templates.
//
// Vectors are row-major [sample][feature]. Images lie in blocks of `lanes` samples,
// [block][channel][row][column][lane]: every loop runs over whole SIMD vectors. If the last block
// is not full, the other lanes hold zeros in inputs and in gradients of outputs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "nn/kernels/rule_values.hpp"

/// Precedes a loop whose iterations access different elements.
#ifdef __clang__
#define FAST_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define FAST_INDEPENDENT _Pragma("GCC ivdep")
#endif

namespace fast::nn {

using Index = std::int64_t;

inline constexpr int vector_bytes = FAST_NN_VECTOR_BYTES;
template <class T>
inline constexpr int lanes = 2 * vector_bytes / static_cast<int>(sizeof(T));

/// Convert from [sample][element] to blocks, and back.
template <class From, class T>
void to_blocks(const From* samples, T* blocks, Index count, Index elements);
template <class T>
void from_blocks(const T* blocks, T* samples, Index count, Index elements);

struct ConvSize {
  Index channels, height, width;         // of the input
  Index filters, out_height, out_width;  // of the output
  Index kernel, stride, padding;
  Index weights() const { return filters * channels * kernel * kernel; }
};

/// `packed` is workspace of size.weights() elements, `rows` of conv_row_elements(size, lanes<T>).
/// bias and dbias may be null.
template <class T>
void conv_forward(const ConvSize& size, const T* weights, const T* bias, const T* x, T* y,
                  Index blocks, T* packed, T* rows);
template <class T>
void conv_input_gradient(const ConvSize& size, const T* weights, const T* dy, T* dx, Index blocks,
                         T* packed, T* rows);
Index conv_row_elements(const ConvSize& size, Index lane_count);
/// `sums` is workspace of conv_scratch_bytes(size) bytes, aligned to 64 bytes.
template <class T>
void conv_weight_gradient(const ConvSize& size, const T* x, const T* dy, T* dweights, T* dbias,
                          Index blocks, T* sums);
Index conv_scratch_bytes(const ConvSize& size);

struct PoolSize {
  Index height, width, out_height, out_width, size, stride, padding;
};
template <class T>
void max_pool_forward(const PoolSize& size, const T* x, T* y, Index planes);
template <class T>
void max_pool_backward(const PoolSize& size, const T* x, const T* y, const T* dy, T* dx,
                       Index planes);

/// y may be x, dx may be dy.
template <class T>
void relu_forward(const T* x, T* y, Index count);
template <class T>
void relu_backward(const T* y, const T* dy, T* dx, Index count);

/// Images of `samples` samples, whose channels have `area` places.
struct ImageSize {
  Index channels, area, samples;
};

/// Mean and biased variance of each channel over all samples.
template <class T>
void batch_statistics(const ImageSize& size, const T* x, T* mean, T* variance);
/// y = scale·(x - mean) + bias, with one value of each per channel. With `relu`, then max(y, 0).
template <class T>
void batch_norm_forward(const ImageSize& size, const T* mean, const T* scale, const T* bias,
                        const T* x, T* y, bool relu);
/// Gradients, also through the statistics of the batch. reciprocal is 1 / sqrt(variance + epsilon).
/// `relu` is that of batch_norm_forward. dx may be null, here and in group_norm_backward.
template <class T>
void batch_norm_backward(const ImageSize& size, const T* mean, const T* reciprocal,
                         const T* weights, const T* x, const T* y, const T* dy, T* dweights,
                         T* dbias, T* dx, bool relu);

/// `mean` and `reciprocal` are [block][group][lane]. forward writes them, backward reads them.
template <class T>
void group_norm_forward(const ImageSize& size, Index groups, T epsilon, const T* weights,
                        const T* bias, const T* x, T* y, T* mean, T* reciprocal);
template <class T>
void group_norm_backward(const ImageSize& size, Index groups, const T* weights, const T* x,
                         const T* dy, const T* mean, const T* reciprocal, T* dweights, T* dbias,
                         T* dx);

/// From blocks to vectors [sample][channel].
template <class T>
void average_pool_forward(const ImageSize& size, const T* x, T* y);
template <class T>
void average_pool_backward(const ImageSize& size, const T* dy, T* dx);

/// out = a + b. out may be a or b.
template <class T>
void add(const T* a, const T* b, T* out, Index count);

/// sum = factor · x if `first`, else sum += factor · x.
template <class T>
void add_scaled(T* sum, const T* x, T factor, std::size_t count, bool first);
template <class T>
void scale(T* x, T factor, std::size_t count);
template <class T>
double sum_of_squares(const T* x, std::size_t count);

/// Weights are [units x inputs], x [count x inputs], y [count x units].
template <class T>
void dense_forward(const T* weights, const T* bias, const T* x, T* y, Index count, Index inputs,
                   Index units);
template <class T>
void dense_weight_gradient(const T* x, const T* dy, T* dweights, T* dbias, Index count,
                           Index inputs, Index units);
template <class T>
void dense_input_gradient(const T* weights, const T* dy, T* dx, Index count, Index inputs,
                          Index units);

/// y = exp(x) / Σ exp(x) of each row. y may be x.
template <class T>
void softmax_forward(const T* x, T* y, Index rows, Index columns);
template <class T>
void softmax_backward(const T* y, const T* dy, T* dx, Index rows, Index columns);

/// Queries, keys and values of a step lie one after the other: [sample][step][3][head][width].
/// Weights are [sample][head][step][step], sums of the values [sample][step][head][width].
struct AttentionSize {
  Index samples, steps, heads, width;
  bool causal;
  Index features() const { return heads * width; }
};
/// Unless `keep`, `weights` is workspace of steps · steps elements.
template <class T>
void attention_forward(const AttentionSize& size, const T* qkv, T* weights, T* sums, bool keep);
/// `scratch` is workspace of steps · steps elements.
template <class T>
void attention_backward(const AttentionSize& size, const T* qkv, const T* weights, const T* dsums,
                        T* dqkv, T* scratch);

/// Sequences are [sample][step][input]. The gates i, f, g, o of a step lie one after the other.
struct LstmSize {
  Index samples, steps, inputs, hidden;
  Index rows() const { return samples * steps; }
  Index gates() const { return 4 * hidden; }
};
/// Values that a forward pass keeps for backward: gates [sample][step][4 hidden] after their
/// activation functions, cells and outputs [sample][step][hidden].
template <class T>
struct LstmTrace {
  T *gates, *cells, *outputs;
};
template <class T>
struct LstmWeights {
  const T *inputs, *hidden, *bias;
};
template <class T>
struct LstmGradients {
  T *inputs, *hidden, *bias;
};
template <class T>
void lstm_forward(const LstmSize& size, const LstmWeights<T>& weights, const T* x,
                  const LstmTrace<T>& trace);
/// `dy` are gradients of the outputs: of all steps with `every_step`, else of the last one. `grads`
/// is workspace of the size of the gates, `carry` of 2 · samples · hidden elements. dx may be null.
template <class T>
void lstm_backward(const LstmSize& size, const LstmWeights<T>& weights, const T* x,
                   const LstmTrace<T>& trace, const T* dy, bool every_step,
                   const LstmGradients<T>& gradients, T* dx, T* grads, T* carry);

/// With `add`, the delta is added to out, which is `weights`. Otherwise out receives the delta.
/// `momentum` may be null.
template <class T>
void sgd_delta(const SgdRule<T>& rule, const T* weights, const T* gradients, T* momentum, T* out,
               std::size_t count, bool add);
template <class T>
void adam_delta(const AdamRule<T>& rule, const T* weights, const T* gradients, T* first, T* second,
                T* out, std::size_t count, bool add);

}  // namespace fast::nn
