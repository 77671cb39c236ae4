// All works of programs: those of libraries and those of the parts of layers.
#pragma once

#include <fast/nn/loss.hpp>

#include <variant>

#include "nn/cuda/library_works.hpp"
#include "nn/cuda/sum_elements.hpp"
#include "nn/layers/activation.hpp"
#include "nn/layers/attention_cuda.hpp"
#include "nn/layers/batch_norm_cuda.hpp"
#include "nn/layers/convolution_cuda.hpp"
#include "nn/layers/dense_cuda.hpp"
#include "nn/layers/dropout_cuda.hpp"
#include "nn/layers/elementwise_cuda.hpp"
#include "nn/layers/embedding_cuda.hpp"
#include "nn/layers/flatten_cuda.hpp"
#include "nn/layers/group_norm_cuda.hpp"
#include "nn/layers/layer_norm_cuda.hpp"
#include "nn/layers/pool_cuda.hpp"
#include "nn/layers/recurrent_cuda.hpp"
#include "nn/layers/residual_cuda.hpp"
#include "nn/layers/silu.hpp"
#include "nn/layers/softmax_cuda.hpp"
#include "nn/noise.hpp"

namespace fast::cuda {

// The loss, as in layer_elements.hpp. A block of threads processes a sample.

/// The target of a row of logits: a smoothed label, or the two labels of a mixed sample.
struct RowTarget {
  Index first, second;
  float of_first, of_second;  // weights of their terms; of_second is 0 where nothing is mixed

  FAST_HOST_DEVICE float of(Index c) const {
    return (c == first ? of_first : 0.0F) + (c == second ? of_second : 0.0F);
  }
};

/// Weights of classes and label smoothing, see nn::LossSpec, and mixed samples, see Batch.
struct ClassShape {
  const float* weights = nullptr;       // null: all 1
  float smoothing = 0, total = 0;       // the sum of the weights
  const std::int32_t* mixed = nullptr;  // the second labels
  const float* share = nullptr;         // of the labels; null or 1: nothing is mixed

  FAST_HOST_DEVICE float of(Index c) const { return weights == nullptr ? 1.0F : weights[c]; }
  FAST_HOST_DEVICE RowTarget target(Index row, Index label) const {
    const float own = share == nullptr ? 1.0F : *share;
    const Index other = own < 1 ? mixed[row] : label;
    return {label, other, (1 - smoothing) * own * of(label),
            (1 - smoothing) * (1 - own) * of(other)};
  }
};

/// With the sum of weight × logit.
struct LossScratch : SoftmaxScratch {
  double weighted[block_size];

  FAST_HOST_DEVICE void join(int thread, int other, int count) {
    if (places[other] >= 0) weighted[thread] += weighted[other];
    SoftmaxScratch::join(thread, other, count);
  }
};

/// Cross-entropy of nn::loss_of for each sample: its loss, whether its class is correct, and the
/// gradient of the mean loss unless `grads` is null.
template <class V>
struct SoftmaxLoss {
  using Scratch = LossScratch;
  const V* logits;  // [samples][classes]
  const std::int32_t* labels;
  V* grads;
  float* losses;
  std::int32_t* hits;
  Index samples, classes;
  ClassShape shape = {};
  Shares shares = Shares::apart(samples);

  FAST_HOST_DEVICE void gather(Index sample, int thread, Scratch& scratch) const {
    const V* row = logits + sample * classes;
    gather_row(row, classes, thread, scratch);
    scratch.weighted[thread] = 0;
    if (shape.smoothing == 0) return;
    for (Index c = thread; c < classes; c += block_size)
      scratch.weighted[thread] +=
          static_cast<double>(shape.of(c)) * static_cast<double>(get(row, c));
  }
  FAST_HOST_DEVICE void finish(Index sample, int thread, const Scratch& scratch) const {
    const V* row = logits + sample * classes;
    const Index label = labels[sample];
    const float most = scratch.largest[0];
    const double total = scratch.totals[0];
    const float each = shape.smoothing / static_cast<float>(classes);
    const RowTarget target = shape.target(sample, label);
    if (thread == 0) {
      const auto term = [&](Index c, float weight) {
        return static_cast<double>(weight) *
               (::log(total) - static_cast<double>(get(row, c) - most));
      };
      double loss = term(label, target.of_first);
      if (target.of_second > 0) loss += term(target.second, target.of_second);
      if (each > 0)
        loss += static_cast<double>(each) *
                ((::log(total) + static_cast<double>(most)) * static_cast<double>(shape.total) -
                 scratch.weighted[0]);
      losses[sample] = static_cast<float>(loss);
      hits[sample] = scratch.places[0] == label ? 1 : 0;
    }
    if (grads == nullptr) return;
    const float scale = 1 / static_cast<float>(samples);
    const float sum = target.of_first + target.of_second + each * shape.total;
    const float share = scale * sum / static_cast<float>(total);
    for (Index c = thread; c < classes; c += block_size) {
      const float wanted = target.of(c) + each * shape.of(c);
      put(fused(::expf(get(row, c) - most), share, -scale * wanted), grads, sample * classes + c);
    }
  }
};

/// nn::loss_of each output with its target, and the gradient of the mean loss unless `grads` is
/// null.
template <class V>
struct TargetLoss {
  const V* outputs;
  const float* targets;
  V* grads;
  float* losses;
  Index count;
  nn::Loss kind;
  float delta;

  Index size() const { return count; }
  FAST_HOST_DEVICE void at(Index e) const {
    const float output = get(outputs, e), target = targets[e], difference = output - target;
    const float apart = ::fabsf(difference);
    float loss = difference * difference, slope = 2 * difference;
    if (kind == nn::Loss::huber) {
      const bool far = apart > delta;
      loss = far ? delta * (apart - delta / 2) : loss / 2;
      slope = far ? ::copysignf(delta, difference) : difference;
    } else if (kind == nn::Loss::binary_cross_entropy) {
      const float small = ::expf(-::fabsf(output));
      loss = ::fmaxf(output, 0) - output * target + ::log1pf(small);
      slope = (output < 0 ? small : 1) / (1 + small) - target;
    }
    losses[e] = loss;
    if (grads != nullptr) put(slope / static_cast<float>(count), grads, e);
  }
};

template <class Done, class... Rest>
struct Distinct;
template <class... Done>
struct Distinct<WorkList<Done...>> {
  using Type = std::variant<Done...>;
};
template <class... Done, class... Listed, class... Rest>
struct Distinct<WorkList<Done...>, WorkList<Listed...>, Rest...>
    : Distinct<WorkList<Done...>, Listed..., Rest...> {};
template <class... Done, class First, class... Rest>
struct Distinct<WorkList<Done...>, First, Rest...>
    : std::conditional_t<(std::is_same_v<First, Done> || ...), Distinct<WorkList<Done...>, Rest...>,
                         Distinct<WorkList<Done..., First>, Rest...>> {};

template <class Spec, class V>
struct WorksOfPart {
  using Type = WorkList<>;
};
template <class Spec, class V>
requires HasGpuPart<Spec>
struct WorksOfPart<Spec, V> {
  using Type = typename GpuPart<Spec>::template Works<V>;
};

/// Works that every model may need.
template <class V>
using CommonWorks = WorkList<Convolution, MatrixProduct, Recurrence, SoftmaxLoss<V>, TargetLoss<V>,
                             SwapLast<V, V>, SwapLast<V, float>, SwapLast<float, V>>;

template <class... Specs>
auto all_works(const std::variant<Specs...>*) ->
    typename Distinct<WorkList<>, CommonWorks<float>, CommonWorks<BFloat16>,
                      typename WorksOfPart<Specs, float>::Type...,
                      typename WorksOfPart<Specs, BFloat16>::Type...>::Type;

using Work = decltype(all_works(static_cast<const nn::LayerSpec*>(nullptr)));

}  // namespace fast::cuda
