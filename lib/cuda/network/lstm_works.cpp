#include "cuda/network/builder.hpp"

namespace fast::cuda {

/// The library gives the outputs of every step, and gradients of the inputs whether wanted or not.
template <class V>
auto Builder<V>::layer(const nn::Lstm& lstm, const Shape& in, const Values& x, bool) -> Made {
  const LstmShape shape{samples_, in[0], in[1], lstm.hidden, type};
  const Index steps = in[0], hidden = lstm.hidden, layer = recurrences_++;
  const Index count = samples_ * steps * hidden, in_count = samples_ * steps * in[1];
  const Index w = parameters(LstmSizes{in[1], hidden}.count());
  const Values all = values(count);
  add(Recurrence{training_ ? Recurrence::Kind::training : Recurrence::Kind::evaluation, shape,
                 layer, weights(w), x.get(), all.get()});
  const Values y = lstm.every_step ? all : values(samples_ * hidden);
  if (!lstm.every_step) add(TakeLast<V>{all.get(), y.get(), samples_, steps, hidden});
  const auto backward = [=, this](const Values& dy, bool wanted) -> Values {
    const Values grads = lstm.every_step ? dy : values(count);
    if (!lstm.every_step) add(SpreadLast<V>{dy.get(), grads.get(), samples_, steps, hidden});
    Values dx = values(in_count);
    add(Recurrence{Recurrence::Kind::grads, shape, layer, weights(w), x.get(), all.get(),
                   grads.get(), dx.get(), gradients(w)});
    return wanted ? dx : nullptr;
  };
  return {y, backward, true};
}

#define FAST_INSTANTIATE(V) \
  template auto Builder<V>::layer(const nn::Lstm&, const Shape&, const Values&, bool)->Made;
FAST_INSTANTIATE(float)
FAST_INSTANTIATE(BFloat16)
#undef FAST_INSTANTIATE

}  // namespace fast::cuda
