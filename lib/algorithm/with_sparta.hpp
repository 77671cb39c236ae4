// A rule with an outer step, together with sparta in the rounds between two outer steps.
#pragma once

#include <fast/core/error.hpp>

#include "algorithm/rules/sparta.hpp"

namespace fast::algorithm {

/// The outer step does not see what sparta does: it takes the weights as they are. Memory: that of
/// the rule, and P in a slot for the mean model. Bytes: those of the rule in the round of an outer
/// step, pP a neighbor in the others.
template <class Outer>
struct WithSparta {
  Outer outer;
  Sparta between;

  Declaration declare() const {
    Declaration declared = outer.declare();
    declared.publishes_weights_apart = true;
    declared.selection = selection();
    declared.combine_every = 1;
    declared.why_synchronous =
        "workers of different rounds would read messages of sparta for those of an outer step";
    declared.parameters +=
        fmt::format(" sparta={} sparta_seed={}", between.options.fraction, between.options.seed);
    return declared;
  }
  template <class T>
  void start(const Block<T>& block) {
    outer.start(block);
  }
  template <class T>
  void publish(const Block<T>& block) {
    is_outer(block.info) ? outer.publish(block) : between.publish(block);
  }
  void begin_combine(const RoundInfo& info, std::span<const double> own,
                     std::span<const double> pull) {
    if constexpr (requires { outer.begin_combine(info, own, pull); }) {
      if (is_outer(info)) outer.begin_combine(info, own, pull);
    }
  }
  template <class T>
  void combine(const Block<T>& block) {
    is_outer(block.info) ? outer.combine(block) : between.combine(block);
  }
  std::vector<TensorView> numbers() {
    if constexpr (requires { outer.numbers(); }) return outer.numbers();
    return {};
  }

 private:
  Selection selection() const {
    Selection selection = between.selection();
    selection.whole_every = outer.options.period;
    return selection;
  }
  bool is_outer(const RoundInfo& info) const { return selection().is_whole(info.round); }
};

/// Of all rules with this option.
template <class Options>
void require_sparta(std::string_view rule, const Options& options) {
  const double share = options.sparta;
  require(share >= 0 && share <= 1, ErrorKind::argument,
          "{}: sparta {}; it must be at least 0 and at most 1", rule, share);
  require(share == 0 || options.period > 1, ErrorKind::argument,
          "{}: sparta {} with period 1; there are no rounds between two outer steps", rule, share);
  require(share == 0 || options.delay == 0, ErrorKind::argument,
          "{}: sparta {} with delay {}; a message of sparta would replace the one that is under "
          "way; choose one of both",
          rule, share, options.delay);
}

/// `outer`, with sparta where its options say so.
template <class Outer>
Rule with_sparta(const Outer& outer) {
  const auto& options = outer.options;
  if (options.sparta == 0) return elementwise(outer);
  return elementwise(WithSparta<Outer>{outer, {{options.sparta, options.sparta_seed}}});
}

}  // namespace fast::algorithm
