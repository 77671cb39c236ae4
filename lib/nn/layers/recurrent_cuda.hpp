// What recurrent layers on GPUs have in common.
#pragma once

#include "nn/cuda/library_works.hpp"
#include "nn/layers/cuda_part.hpp"

namespace fast::cuda {

template <class V>
using RecurrentWorks = WorkList<Recurrence, TakeLast<V>, SpreadLast<V>>;

/// cuDNN gives the outputs of every step, and gradients of the inputs whether wanted or not.
template <class V>
Made<V> add_recurrence(Builder<V>& build, const RecurrentShape& shape, bool every_step,
                       const Values<V>& x) {
  const Index samples = shape.samples, steps = shape.steps, hidden = shape.hidden;
  const Index count = samples * steps * hidden, in_count = samples * steps * shape.inputs;
  const Index layer = build.next_recurrence(), w = build.parameters(shape.sizes().count());
  const Values<V> all = build.values(count);
  build.add(Recurrence{build.training() ? Recurrence::Kind::training : Recurrence::Kind::evaluation,
                       shape, layer, build.weights(w), x.get(), all.get()});
  const Values<V> y = every_step ? all : build.values(samples * hidden);
  if (!every_step) build.add(TakeLast<V>{all.get(), y.get(), samples, steps, hidden});
  const auto backward = [=, &build](const Values<V>& dy, bool wanted) -> Values<V> {
    const Values<V> grads = every_step ? dy : build.values(count);
    if (!every_step) build.add(SpreadLast<V>{dy.get(), grads.get(), samples, steps, hidden});
    Values<V> dx = build.values(in_count);
    build.add(Recurrence{Recurrence::Kind::grads, shape, layer, build.weights(w), x.get(),
                         all.get(), grads.get(), dx.get(), build.gradients(w)});
    return wanted ? dx : nullptr;
  };
  return {y, backward, true};
}

/// LSTMs on GPUs.
template <>
struct GpuPart<nn::Lstm> {
  template <class V>
  using Works = RecurrentWorks<V>;
  static constexpr bool takes_relu = false;

  template <class V>
  static Made<V> add(Builder<V>& build, const nn::Lstm& lstm, const Ends& ends, const Values<V>& x,
                     bool) {
    const RecurrentShape shape{build.samples(), ends.in[0], ends.in[1],
                               lstm.hidden,     Cell::lstm, type_of<V>};
    return add_recurrence(build, shape, lstm.every_step, x);
  }
};

/// GRUs on GPUs.
template <>
struct GpuPart<nn::Gru> {
  template <class V>
  using Works = RecurrentWorks<V>;
  static constexpr bool takes_relu = false;

  template <class V>
  static Made<V> add(Builder<V>& build, const nn::Gru& gru, const Ends& ends, const Values<V>& x,
                     bool) {
    const RecurrentShape shape{build.samples(), ends.in[0], ends.in[1],
                               gru.hidden,      Cell::gru,  type_of<V>};
    return add_recurrence(build, shape, gru.every_step, x);
  }
};

}  // namespace fast::cuda
