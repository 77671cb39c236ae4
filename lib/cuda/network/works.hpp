// All works of programs: those of libraries and those of the parts of layers.
#pragma once

#include <variant>

#include "cuda/kernels/loss_elements.hpp"
#include "cuda/layers/elementwise.hpp"
#include "cuda/network/library_works.hpp"

// The parts of all layers, and the functions of those that are elementwise.
#include "cuda/layers/average_pool.hpp"
#include "cuda/layers/batch_norm.hpp"
#include "cuda/layers/conv1d.hpp"
#include "cuda/layers/conv2d.hpp"
#include "cuda/layers/dense.hpp"
#include "cuda/layers/dropout.hpp"
#include "cuda/layers/embedding.hpp"
#include "cuda/layers/flatten.hpp"
#include "cuda/layers/global_average_pool.hpp"
#include "cuda/layers/group_norm.hpp"
#include "cuda/layers/gru.hpp"
#include "cuda/layers/layer_norm.hpp"
#include "cuda/layers/lstm.hpp"
#include "cuda/layers/max_pool.hpp"
#include "cuda/layers/relu.hpp"
#include "cuda/layers/residual.hpp"
#include "nn/layers/dropout.hpp"
#include "nn/layers/gelu.hpp"
#include "nn/layers/silu.hpp"

namespace fast::cuda {

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
