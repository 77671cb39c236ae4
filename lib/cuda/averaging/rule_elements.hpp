// A sweep of a rule in kernels: combine::ElementWork for each element. The code names all fused
// multiply-adds, except for the arithmetic of the rules. The kernels of rules are compiled without
// other fusing. Results therefore equal those of the host bit for bit, if the compiler of the host
// does not fuse either.
#pragma once

#include <type_traits>

#include "combine/element_work.hpp"
#include "cuda/device/elements.hpp"

namespace fast::cuda {

template <class T, class Slot, class Rule>
struct RuleElements {
  static constexpr int capacity = combine::max_element_sources;
  static constexpr int most_vectors = algorithm::max_payload_vectors;

  Rule rule;
  algorithm::Block<T> run;  ///< its first element; `current` and `state` alone point anywhere
  bool starts, pulls, buffer, combines;
  int vectors, degree;
  std::size_t stride_bytes;
  const Slot* own;
  Slot* next;
  T* next_weights;
  T* gathered[most_vectors];
  const Slot* sources[capacity];
  T weights[capacity];

  FAST_HOST_DEVICE std::size_t size() const { return run.count; }

  template <class Element>
  FAST_HOST_DEVICE Element* vector(Element* first, int k) const {
    using Byte = std::conditional_t<std::is_const_v<Element>, const char, char>;
    return reinterpret_cast<Element*>(reinterpret_cast<Byte*>(first) + k * stride_bytes);
  }

  FAST_HOST_DEVICE T pull_towards(int k, std::size_t e, T from) const {
    T sum = 0;
    for (int j = 0; j < degree; ++j) {
      T value;
      convert(vector(sources[j], k)[e], value);
      sum = fused(weights[j], value - from, sum);
    }
    return sum;
  }

  FAST_HOST_DEVICE void at(std::size_t e) const {
    Rule its = rule;
    T x = run.current[e], message[most_vectors] = {}, pull[most_vectors] = {};
    T payload[most_vectors] = {};
    algorithm::Block<T> one = run;
    one.first += e;
    one.count = 1;
    one.current = &x;
    for (int s = 0; s < algorithm::max_state_vectors; ++s) {
      if (run.state[s] != nullptr) one.state[s] = run.state[s] + e;
    }
    for (int k = 0; k < most_vectors; ++k) {  // unrolled, as all values are to be in registers
      one.own[k] = one.message[k] = &message[k];
      one.pull[k] = &pull[k];
      one.payload[k] = &payload[k];
      if (k >= vectors) continue;
      if (own != nullptr) convert(vector(own, k)[e], message[k]);
      if (pulls) pull[k] = pull_towards(k, e, buffer ? x : message[k]);
      if (pulls && gathered[k] != nullptr) gathered[k][e] = pull[k];
      if (!pulls && gathered[k] != nullptr) pull[k] = gathered[k][e];
    }
    if constexpr (requires { its.start(one); }) {
      if (starts) its.start(one);
    }
    if (combines) {
      its.combine(one);
      run.current[e] = x;
    }
    if (next != nullptr) {
      its.publish(one);
      for (int k = 0; k < most_vectors; ++k) {
        if (k < vectors) convert(payload[k], vector(next, k)[e]);
      }
    }
    if (next_weights != nullptr) next_weights[e] = x;
  }
};

template <class T, class Slot, class Rule>
RuleElements<T, Slot, Rule> rule_elements(const combine::ElementWork& work, const Rule& rule) {
  RuleElements<T, Slot, Rule> elements{
      rule,
      {work.first, work.count, work.info, static_cast<T*>(work.current)},
      work.starts,
      work.pulls,
      work.buffer,
      work.combines,
      work.vectors,
      static_cast<int>(work.sources.size()),
      work.stride_bytes,
      static_cast<const Slot*>(work.own),
      static_cast<Slot*>(work.next),
      static_cast<T*>(work.next_weights),
      {},
      {},
      {}};
  for (int s = 0; s < algorithm::max_state_vectors; ++s) {
    elements.run.state[s] = static_cast<T*>(work.state[s]);
  }
  for (int k = 0; k < algorithm::max_payload_vectors; ++k) {
    elements.gathered[k] = static_cast<T*>(work.gathered[k]);
  }
  for (std::size_t j = 0; j < work.sources.size(); ++j) {
    elements.sources[j] = static_cast<const Slot*>(work.sources[j]);
    elements.weights[j] = static_cast<T>(work.weights[j]);
  }
  return elements;
}

/// Calls with(T{}, Slot{}) with the element types of the work.
template <class With>
void with_types(const combine::ElementWork& work, const With& with) {
  if (work.type == DType::f64)
    with(double{}, double{});
  else if (work.slot == DType::bf16)
    with(float{}, BFloat16{});
  else
    with(float{}, float{});
}

/// Calls launch(elements). False if this combination of rule and types is not compiled.
template <class Launch>
bool launch_rule_elements(const combine::ElementWork& work, const Launch& launch) {
  bool known = false;
  with_types(work, [&]<class T, class Slot>(T, Slot) {
    std::visit(
        [&]<class Rule>(const Rule& rule) {
          if constexpr (std::is_same_v<T, Slot> || std::is_same_v<Rule, algorithm::Averaging>) {
            launch(rule_elements<T, Slot>(work, rule));
            known = true;
          }
        },
        work.rule);
  });
  return known;
}

}  // namespace fast::cuda
