// The code of kernels for each element, and the distribution of elements over threads. Devices and
// the host compile it, so that tests need no device. The code names all fused multiply-adds, so
// that all compilers give the same bits.
#pragma once

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <fast/core/element.hpp>

#include "core/host_device.hpp"
#include "nn/kernels/rule_values.hpp"

namespace fast::cuda {

FAST_HOST_DEVICE float fused(float a, float b, float c) { return ::fmaf(a, b, c); }
FAST_HOST_DEVICE double fused(double a, double b, double c) { return ::fma(a, b, c); }
FAST_HOST_DEVICE float root(float x) { return ::sqrtf(x); }
FAST_HOST_DEVICE double root(double x) { return ::sqrt(x); }

FAST_HOST_DEVICE void convert(float from, float& to) { to = from; }
FAST_HOST_DEVICE void convert(double from, double& to) { to = from; }
FAST_HOST_DEVICE void convert(BFloat16 from, float& to) {
  const std::uint32_t bits = static_cast<std::uint32_t>(from.bits) << 16;
  memcpy(&to, &bits, sizeof to);
}
/// Rounds to nearest even. NaN stays NaN.
FAST_HOST_DEVICE void convert(float from, BFloat16& to) {
  std::uint32_t bits;
  memcpy(&bits, &from, sizeof bits);
  const std::uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1);
  to.bits = static_cast<std::uint16_t>((from != from ? bits | 0x400000 : rounded) >> 16);
}

/// Elements that a thread loads and stores in accesses of 16 bytes, or in one of fewer.
template <class Stored, int Width>
struct alignas(Width * sizeof(Stored) < 16 ? Width * sizeof(Stored) : 16) Pack {
  Stored values[Width];
};

template <int Width, class Stored, class T>
FAST_HOST_DEVICE void load(const Stored* from, T (&to)[Width]) {
  const auto pack = *reinterpret_cast<const Pack<Stored, Width>*>(from);
  for (int i = 0; i < Width; ++i) convert(pack.values[i], to[i]);
}
template <int Width, class Stored, class T>
FAST_HOST_DEVICE void store(const T (&from)[Width], Stored* to) {
  Pack<Stored, Width> pack;
  for (int i = 0; i < Width; ++i) convert(from[i], pack.values[i]);
  *reinterpret_cast<Pack<Stored, Width>*>(to) = pack;
}

/// The part of thread `thread` of `threads`: wide(e) for whole packs, one(e) for the remaining
/// elements.
template <int Width, class Wide, class One>
FAST_HOST_DEVICE void for_share(std::size_t thread, std::size_t threads, std::size_t count,
                                const Wide& wide, const One& one) {
  const std::size_t packs = count / Width;
  for (std::size_t p = thread; p < packs; p += threads) wide(p * Width);
  for (std::size_t e = packs * Width + thread; e < count; e += threads) one(e);
}

/// No step of an optimizer.
template <class T>
struct NoUpdate {
  template <int Width>
  FAST_HOST_DEVICE void operator()(std::size_t, T (&)[Width]) const {}
};

/// w -= rate · m, the step of nn::SgdOptions. `momentum` may be null.
template <class T>
struct SgdUpdate {
  nn::SgdRule<T> rule;
  const T* gradients;
  T* momentum;

  template <int Width>
  FAST_HOST_DEVICE void operator()(std::size_t e, T (&weights)[Width]) const {
    T grad[Width], m[Width] = {};
    load(gradients + e, grad);
    if (momentum != nullptr) load(momentum + e, m);
    for (int i = 0; i < Width; ++i) {
      grad[i] = fused(rule.weight_decay, weights[i], grad[i]);
      m[i] = momentum == nullptr ? grad[i] : fused(rule.momentum, m[i], grad[i]);
      const T direction = rule.nesterov ? fused(rule.momentum, m[i], grad[i]) : m[i];
      weights[i] = fused(-rule.learning_rate, direction, weights[i]);
    }
    if (momentum != nullptr) store(m, momentum + e);
  }
};

/// The step of nn::AdamOptions: Adam and AdamW.
template <class T>
struct AdamUpdate {
  nn::AdamRule<T> rule;
  const T* gradients;
  T *first, *second;

  template <int Width>
  FAST_HOST_DEVICE void operator()(std::size_t e, T (&weights)[Width]) const {
    T grad[Width], m[Width], v[Width];
    load(gradients + e, grad);
    load(first + e, m);
    load(second + e, v);
    for (int i = 0; i < Width; ++i) {
      grad[i] = fused(rule.added_decay, weights[i], grad[i]);
      m[i] = fused(rule.beta1, m[i], rule.rest1 * grad[i]);
      v[i] = fused(rule.beta2, v[i], rule.rest2 * grad[i] * grad[i]);
      const T step = rule.rate * m[i] / fused(root(v[i]), rule.root_scale, rule.epsilon);
      weights[i] += fused(-rule.decoupled_decay, weights[i], -step);
    }
    store(m, first + e);
    store(v, second + e);
  }
};

/// Stores the rule of an optimizer in memory. Kernels that read it there can be captured once and
/// launched for steps with other learning rates and counts.
template <class Rule>
struct StoreRule {
  Rule rule;
  Rule* to;

  std::int64_t size() const { return 1; }
  FAST_HOST_DEVICE void at(std::int64_t) const { *to = rule; }
};

/// Updates weights[e] in place.
template <class T, class Update>
struct UpdateElements {
  T* weights;
  Update update;

  template <class Rule>
  FAST_HOST_DEVICE UpdateElements with(const Rule& rule) const {
    UpdateElements now = *this;
    now.update.rule = rule;
    return now;
  }

  template <int Width>
  FAST_HOST_DEVICE void at(std::size_t e) const {
    T x[Width];
    load(weights + e, x);
    update(e, x);
    store(x, weights + e);
  }
};

/// The end of a round as in mixing::average(), after `update`. Degree > 0 unrolls the loop over
/// neighbors.
template <class T, class Stored, int Degree, int Capacity, class Update>
struct AverageElements {
  T* current;
  Stored* next;
  const Stored* own;
  const Stored* values[Capacity];
  T factors[Capacity];
  int degree;
  Update update;

  template <int Width>
  FAST_HOST_DEVICE void at(std::size_t e) const {
    T m[Width], x[Width], value[Degree > 0 ? Degree : 1][Width];
    load(own + e, m);
    if (current != nullptr) load(current + e, x);
    // All loads come before the first store of the update: compilers do not move loads across a
    // store.
    for (int j = 0; j < Degree; ++j) load(values[j] + e, value[j]);
    for (int i = 0; i < Width && current == nullptr; ++i) x[i] = m[i];
    update(e, x);
    const int end = Degree > 0 ? Degree : degree;
    for (int j = 0; j < end; ++j) {
      T(&of)[Width] = value[Degree > 0 ? j : 0];
      if (Degree == 0) load(values[j] + e, of);
      for (int i = 0; i < Width; ++i) x[i] = fused(factors[j], of[i] - m[i], x[i]);
    }
    if (current != nullptr) store(x, current + e);
    store(x, next + e);
  }
};

/// The part of thread `thread` of `threads` of all `count` elements.
template <int Width, class Elements>
FAST_HOST_DEVICE void run_share(const Elements& elements, std::size_t thread, std::size_t threads,
                                std::size_t count) {
  for_share<Width>(
      thread, threads, count, [&](std::size_t e) { elements.template at<Width>(e); },
      [&](std::size_t e) { elements.template at<1>(e); });
}

}  // namespace fast::cuda
