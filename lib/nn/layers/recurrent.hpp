// What recurrent layers have in common.
#pragma once

#include "nn/inventory.hpp"
#include "nn/layers/layer_entry.hpp"
#include "nn/shape.hpp"

namespace fast::nn {

/// The common part of their rows. A layer adds `prefix`, `describe` and `list_tensors`.
template <class Spec, template <class> class OnCpu, std::int64_t gates_of_unit>
struct RecurrentKind : KindOf<Spec, OnCpu> {
  static void keys(Spec& spec, Keys& keys) {
    keys.required("hidden", spec.hidden);
    keys.optional("every_step", spec.every_step);
  }
  static std::string described(const char* name, const Spec& spec) {
    return fmt::format("{} {}{}", name, spec.hidden, spec.every_step ? ", every step" : "");
  }
  static Shape output(const Spec& spec, const Shape& in) {
    demand_sequence(in);
    demand(spec.hidden > 0, "hidden units must be positive");
    if (spec.every_step) return {in[0], spec.hidden};
    return {spec.hidden};
  }
  /// The rows of its weights, and the length of its biases.
  static std::int64_t gates(const Spec& spec) { return gates_of_unit * spec.hidden; }
  static void list_weights(const Spec& spec, const Shape& in, Inventory& to) {
    const std::int64_t sums = in[1] + spec.hidden;
    to.add_weight("weight_ih", {gates(spec), in[1]}, sums);
    to.add_weight("weight_hh", {gates(spec), spec.hidden}, sums);
  }
};

}  // namespace fast::nn
