// What a worker carries from round to round, out to a checkpoint and back.
#pragma once

#include <fast/core/memory.hpp>

#include <array>
#include <vector>

#include "worker/context.hpp"
#include "worker/publisher.hpp"

namespace fast::worker {

class WorkerState {
 public:
  explicit WorkerState(const Context& context) : worker_(context) {}

  /// As Worker::state(). Valid until the next round.
  std::vector<TensorView> views();
  /// Before the first round, when nobody reads what has been published so far. Not collective: the
  /// caller waits for the others.
  void restore(const std::vector<TensorView>& saved, Publisher& publisher);

 private:
  const std::byte* message();
  bool fits(const std::vector<TensorView>& saved);
  void take_rule_state(const std::vector<TensorView>& saved);
  void restore_message(const std::vector<TensorView>& saved);
  void restore_exactly(const std::vector<TensorView>& saved, Publisher& publisher);

  Context worker_;
  std::array<std::int64_t, 3> counters_{};  ///< rounds, combinations, whether the message was sent
  AlignedBuffer image_;                     ///< of a message on a device
};

}  // namespace fast::worker
