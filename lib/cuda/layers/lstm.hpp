// LSTMs on GPUs.
#pragma once

#include "cuda/kernels/lstm_elements.hpp"
#include "cuda/layers/shared.hpp"
#include "cuda/network/library_works.hpp"

namespace fast::cuda {

/// cuDNN gives the outputs of every step, and gradients of the inputs whether wanted or not.
template <>
struct GpuPart<nn::Lstm> {
  template <class V>
  using Works = WorkList<Recurrence, TakeLast<V>, SpreadLast<V>>;
  static constexpr bool takes_relu = false;

  template <class V>
  static Made<V> add(Builder<V>& build, const nn::Lstm& lstm, const Ends& ends, const Values<V>& x,
                     bool) {
    const LstmShape shape{build.samples(), ends.in[0], ends.in[1], lstm.hidden, type_of<V>};
    const Index steps = ends.in[0], hidden = lstm.hidden, layer = build.next_recurrence();
    const Index count = build.samples() * steps * hidden,
                in_count = build.samples() * steps * ends.in[1];
    const Index w = build.parameters(LstmSizes{ends.in[1], hidden}.count());
    const Values<V> all = build.values(count);
    build.add(
        Recurrence{build.training() ? Recurrence::Kind::training : Recurrence::Kind::evaluation,
                   shape, layer, build.weights(w), x.get(), all.get()});
    const Values<V> y = lstm.every_step ? all : build.values(build.samples() * hidden);
    if (!lstm.every_step)
      build.add(TakeLast<V>{all.get(), y.get(), build.samples(), steps, hidden});
    const auto backward = [=, &build](const Values<V>& dy, bool wanted) -> Values<V> {
      const Values<V> grads = lstm.every_step ? dy : build.values(count);
      if (!lstm.every_step)
        build.add(SpreadLast<V>{dy.get(), grads.get(), build.samples(), steps, hidden});
      Values<V> dx = build.values(in_count);
      build.add(Recurrence{Recurrence::Kind::grads, shape, layer, build.weights(w), x.get(),
                           all.get(), grads.get(), dx.get(), build.gradients(w)});
      return wanted ? dx : nullptr;
    };
    return {y, backward, true};
  }
};

}  // namespace fast::cuda
