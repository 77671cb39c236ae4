// A sweep of a rule in kernels: combine::ElementWork for each element. The code names all fused
// multiply-adds, except for the arithmetic of the rules. The kernels of rules are compiled without
// other fusing. Results therefore equal those of the host bit for bit, if the compiler of the host
// does not fuse either.
#pragma once

#include <type_traits>

#include "combine/element_work.hpp"
#include "cuda/averaging/average_elements.hpp"

namespace fast::cuda {

/// The model is stored as Model and computed with as T. `next_weights` and `remainder` are laid out
/// as the model, `state` and `sent` likewise but for `widening`; `own`, `next` and `sources` are
/// where messages begin.
template <class T, class Slot, class Model, class Rule>
struct RuleElements {
  static constexpr int capacity = combine::max_element_sources;
  static constexpr int most_vectors = 2, most_states = 4;  ///< of rules that have kernels
  static constexpr bool halves = !std::is_same_v<T, Model>;

  Rule rule;
  algorithm::RoundInfo info;
  bool starts, pulls, unit, combines;
  int vectors, degree;
  const combine::Looks* restores_after;
  std::uint32_t number;
  std::size_t stride_bytes;
  const Slot* own;
  Slot* next;
  Model* next_weights;
  BFloat16* remainder;
  std::size_t widening;
  T* state[most_states];
  T* sent[most_vectors];
  const Slot* sources[capacity];
  T weights[capacity];

  /// Place `at` of vector k of a message.
  FAST_HOST_DEVICE const Slot* message_at(const Slot* first, int k, std::size_t at) const {
    return reinterpret_cast<const Slot*>(reinterpret_cast<const char*>(first) + k * stride_bytes) +
           at;
  }
  FAST_HOST_DEVICE Slot* message_at(Slot* first, int k, std::size_t at) const {
    return reinterpret_cast<Slot*>(reinterpret_cast<char*>(first) + k * stride_bytes) + at;
  }

  FAST_HOST_DEVICE T pull_towards(int k, std::size_t at, T from, bool counts) const {
    T sum = 0;
    for (int j = 0; j < degree; ++j) {
      T value;
      convert(*message_at(sources[j], k, at), value);
      sum = fused(counts ? T{1} : weights[j], value - from, sum);
    }
    return sum;
  }

  /// As combine::add_remainder() and combine::split().
  FAST_HOST_DEVICE T weight(Model stored, std::size_t place) const {
    T x;
    convert(stored, x);
    if constexpr (halves) {
      T rest;
      convert(remainder[place], rest);
      if (!starts) x += rest;
    }
    return x;
  }
  FAST_HOST_DEVICE void store(T x, Model& stored, std::size_t place) const {
    convert(x, stored);
    if constexpr (halves) {
      T rounded;
      convert(stored, rounded);
      const T rest = x - rounded;
      convert(rest - rest == T{0} ? rest : T{0}, remainder[place]);
    }
  }

  template <int Width>
  FAST_HOST_DEVICE void at(const combine::ElementRun& run, std::size_t e) const {
    static_assert(Width == 1);
    const bool is_buffer = run.is_buffer != 0;
    const std::size_t place = run.slot_bytes / sizeof(Slot) + e;
    const std::size_t kept = widening * run.kept_bytes / sizeof(T) + e;
    const std::size_t in_model = run.kept_bytes / sizeof(Model) + e;
    Model* const current = static_cast<Model*>(run.current) + e;
    Rule its = rule;
    algorithm::Averaging average;
    const bool restores = restores_after != nullptr && restores_after->last == number;
    T x = weight(*current, in_model), message[most_vectors] = {}, pull[most_vectors] = {};
    if (restores) convert(*message_at(own, 0, place), x);
    T own_payload[most_vectors] = {}, payload[most_vectors] = {};
    algorithm::Block<T> one{run.first + e, 1, info, &x};
    for (int s = 0; s < most_states; ++s) {
      if (state[s] != nullptr) one.state[s] = state[s] + kept;
    }
    for (int k = 0; k < most_vectors; ++k) {  // unrolled, as all values are to be in registers
      one.own[k] = &own_payload[k];
      one.message[k] = &message[k];
      one.pull[k] = &pull[k];
      one.payload[k] = &payload[k];
      if (k >= (is_buffer ? 1 : vectors)) continue;
      if (own != nullptr && !is_buffer) convert(*message_at(own, k, place), message[k]);
      if (pulls) pull[k] = pull_towards(k, place, is_buffer ? x : message[k], unit && !is_buffer);
      const bool exact = sent[k] != nullptr && !info.restarts;
      own_payload[k] = exact ? sent[k][kept] : message[k];
    }
    if constexpr (requires { its.start(one); }) {
      if (starts && !is_buffer) its.start(one);
    }
    if (combines) is_buffer ? average.combine(one) : its.combine(one);
    if (combines || restores || (halves && starts)) store(x, *current, in_model);
    if (next != nullptr) {
      is_buffer ? average.publish(one) : its.publish(one);
      for (int k = 0; k < most_vectors; ++k) {
        if (k >= (is_buffer ? 1 : vectors)) continue;
        convert(payload[k], *message_at(next, k, place));
        if (sent[k] != nullptr) sent[k][kept] = payload[k];
      }
    }
    if (next_weights != nullptr) convert(x, next_weights[in_model]);
  }
};

template <class T, class Slot, class Model, class Rule>
RuleElements<T, Slot, Model, Rule> rule_elements(const combine::ElementWork& work,
                                                 const Rule& rule) {
  RuleElements<T, Slot, Model, Rule> elements{rule,
                                              work.info,
                                              work.starts,
                                              work.pulls,
                                              work.unit,
                                              work.combines,
                                              work.vectors,
                                              static_cast<int>(work.sources.size()),
                                              work.restores_after,
                                              work.number,
                                              work.stride_bytes,
                                              reinterpret_cast<const Slot*>(work.own),
                                              reinterpret_cast<Slot*>(work.next),
                                              reinterpret_cast<Model*>(work.next_weights),
                                              reinterpret_cast<BFloat16*>(work.remainder),
                                              static_cast<std::size_t>(work.widening),
                                              {},
                                              {},
                                              {},
                                              {}};
  for (int s = 0; s < elements.most_states; ++s) {
    elements.state[s] = reinterpret_cast<T*>(work.state[s]);
  }
  for (int k = 0; k < elements.most_vectors; ++k) {
    elements.sent[k] = reinterpret_cast<T*>(work.sent[k]);
  }
  for (std::size_t j = 0; j < work.sources.size(); ++j) {
    elements.sources[j] = reinterpret_cast<const Slot*>(work.sources[j]);
    elements.weights[j] = static_cast<T>(work.weights[j]);
  }
  return elements;
}

/// Looks whether the weights, stored as Model, are finite.
template <class T, class Model>
struct FiniteElements {
  static constexpr int width = 16 / sizeof(Model);

  combine::Looks* looks;
  std::uint32_t number;

  template <int Width>
  FAST_HOST_DEVICE bool is_aligned(const combine::ElementRun& run) const {
    return reinterpret_cast<std::uintptr_t>(run.current) % alignof(Pack<Model, Width>) == 0;
  }

  template <int Width>
  FAST_HOST_DEVICE void at(const combine::ElementRun& run, std::size_t e) const {
    T x[Width];
    load(static_cast<const Model*>(run.current) + e, x);
    bool finite = true;
    for (int i = 0; i < Width; ++i) finite = finite && x[i] - x[i] == T{0};
    if (!finite) note();
  }

  /// Of a look's threads, the first one counts.
  FAST_HOST_DEVICE void note() const {
#ifdef __CUDA_ARCH__
    if (atomicExch(&looks->last, number) != number) atomicAdd(&looks->count, 1U);
#else
    looks->count += looks->last != number ? 1 : 0;
    looks->last = number;
#endif
  }
};

/// Elements that a thread takes at once.
template <class Elements>
constexpr int width_of() {
  if constexpr (requires { Elements::width; })
    return Elements::width;
  else
    return 1;
}

/// Calls with(T{}, Slot{}, Model{}) with the element types of the work.
template <class With>
void with_types(const combine::ElementWork& work, const With& with) {
  if (work.type == DType::f64)
    with(double{}, double{}, double{});
  else if (work.type == DType::bf16)
    with(float{}, BFloat16{}, BFloat16{});
  else if (work.type == DType::f16)
    with(float{}, Float16{}, Float16{});
  else if (work.slot == DType::bf16)
    with(float{}, BFloat16{}, float{});
  else if (work.slot == DType::f16)
    with(float{}, Float16{}, float{});
  else
    with(float{}, float{}, float{});
}

/// Calls launch(elements) of a rule's sweep. False if this combination of rule and types is not
/// compiled.
template <class Launch>
bool launch_rule_elements(const combine::ElementWork& work, const Launch& launch) {
  bool known = false;
  with_types(work, [&]<class T, class Slot, class Model>(T, Slot, Model) {
    if (work.looks != nullptr) {
      launch(FiniteElements<T, Model>{work.looks, work.number});
      known = true;
      return;
    }
    std::visit(
        [&]<class Rule>(const Rule& rule) {
          if constexpr (std::is_same_v<Model, Slot> || std::is_same_v<Rule, algorithm::Averaging>) {
            launch(rule_elements<T, Slot, Model>(work, rule));
            known = true;
          }
        },
        work.rule);
  });
  return known;
}

/// Calls launch(elements) of an average, which 16-bit weights have none of.
template <class Launch>
void launch_average_elements(const combine::ElementWork& work, const Launch& launch) {
  with_types(work, [&]<class T, class Slot, class Model>(T, Slot, Model) {
    if constexpr (std::is_same_v<T, Model>) {
      std::vector<const Slot*> values;
      for (const std::byte* source : work.sources) {
        values.push_back(reinterpret_cast<const Slot*>(source));
      }
      const std::vector<T> factors(work.weights.begin(), work.weights.end());
      launch(AverageLaunch<T, Slot>{reinterpret_cast<Slot*>(work.next),
                                    reinterpret_cast<const Slot*>(work.own), values.data(),
                                    factors.data(), static_cast<int>(values.size()), work.table,
                                    work.sums_first, work.restores_after, work.number});
    }
  });
}

}  // namespace fast::cuda
