// `out` is either the parameters (δ is added) or other memory (δ is written).
#include "nn/kernels/kernels.hpp"

namespace fast::nn {
namespace {

float root(float x) { return __builtin_sqrtf(x); }
double root(double x) { return __builtin_sqrt(x); }

template <class T, class Delta>
void for_all(const T* weights, T* out, std::size_t count, bool add, Delta delta) {
  if (add) {
    FAST_INDEPENDENT
    for (std::size_t i = 0; i < count; ++i) out[i] += delta(i, out[i]);
  } else {
    FAST_INDEPENDENT
    for (std::size_t i = 0; i < count; ++i) out[i] = delta(i, weights[i]);
  }
}

}  // namespace

template <class T>
void sgd_delta(const SgdRule<T>& rule, const T* weights, const T* gradients, T* momentum, T* out,
               std::size_t count, bool add) {
  const T rate = -rule.learning_rate, beta = rule.momentum, decay = rule.weight_decay;
  if (momentum == nullptr)
    return for_all(weights, out, count, add,
                   [=](std::size_t i, T w) { return rate * (gradients[i] + decay * w); });
  if (rule.nesterov)
    return for_all(weights, out, count, add, [=](std::size_t i, T w) {
      const T grad = gradients[i] + decay * w;
      momentum[i] = beta * momentum[i] + grad;
      return rate * (grad + beta * momentum[i]);
    });
  for_all(weights, out, count, add, [=](std::size_t i, T w) {
    momentum[i] = beta * momentum[i] + (gradients[i] + decay * w);
    return rate * momentum[i];
  });
}

template <class T>
void adam_delta(const AdamRule<T>& rule, const T* weights, const T* gradients, T* first, T* second,
                T* out, std::size_t count, bool add) {
  const AdamRule<T> r = rule;
  for_all(weights, out, count, add, [=](std::size_t i, T w) {
    const T grad = gradients[i] + r.added_decay * w;
    const T m = r.beta1 * first[i] + r.rest1 * grad;
    const T v = r.beta2 * second[i] + r.rest2 * grad * grad;
    first[i] = m;
    second[i] = v;
    return -r.decoupled_decay * w - r.rate * m / (root(v) * r.root_scale + r.epsilon);
  });
}

#define FAST_INSTANTIATE(T)                                                                  \
  template void sgd_delta(const SgdRule<T>&, const T*, const T*, T*, T*, std::size_t, bool); \
  template void adam_delta(const AdamRule<T>&, const T*, const T*, T*, T*, T*, std::size_t, bool);
FAST_INSTANTIATE(float)
FAST_INSTANTIATE(double)
#undef FAST_INSTANTIATE

}  // namespace fast::nn
