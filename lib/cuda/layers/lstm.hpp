// LSTMs on GPUs.
#pragma once

#include "cuda/layers/recurrent.hpp"

namespace fast::cuda {

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

}  // namespace fast::cuda
