// What a worker carries from round to round, out to a checkpoint and back.
#pragma once

#include <fast/core/memory.hpp>

#include <array>
#include <span>
#include <vector>

#include "worker/context.hpp"
#include "worker/publisher.hpp"
#include "worker/round_plan.hpp"

namespace fast::worker {

class WorkerState {
 public:
  WorkerState(const Context& context, RoundPlan& plan) : worker_(context), plan_(plan) {}

  /// As Worker::state(). Valid until the next round.
  std::vector<TensorView> views();
  /// Before the first round, when nobody reads what has been published so far. Not collective: the
  /// caller waits for the others.
  void restore(const std::vector<TensorView>& saved, Publisher& publisher);
  /// False if the rule's state refers to the mixing weights, and those were others.
  bool is_of_these_weights(const std::vector<TensorView>& saved);

 private:
  std::span<double> mixing_row();
  const std::byte* message();
  bool is_of_this_rule(const std::vector<TensorView>& saved) const;
  bool fits(const std::vector<TensorView>& saved);
  void take_rule_state(const std::vector<TensorView>& saved);
  void restore_message(const std::vector<TensorView>& saved);
  std::int64_t saved_combinations() const;
  void restore_exactly(const std::vector<TensorView>& saved, Publisher& publisher);

  Context worker_;
  RoundPlan& plan_;
  std::vector<double> row_;                 ///< W_ii, then of each neighbor its number and W_ij
  std::array<std::int64_t, 3> counters_{};  ///< rounds, combinations, whether the message was sent
  AlignedBuffer image_;                     ///< of a message on a device
};

}  // namespace fast::worker
