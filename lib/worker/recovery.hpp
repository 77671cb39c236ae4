// How a worker gets weights again: from its neighbors after a stop, from its own last publication
// after a step that left nothing finite.
#pragma once

#include "worker/context.hpp"
#include "worker/lag.hpp"
#include "worker/model_reader.hpp"
#include "worker/publisher.hpp"

namespace fast::worker {

class Recovery {
 public:
  Recovery(const Context& context, const Peers& peers, RoundPlan& plan, const ModelReader& reader);

  /// This worker was left behind in the round that it is in. It adopts its neighbors' average and
  /// goes on from their round; the rounds between count as made. Error(deadline) when there is no
  /// neighbor to adopt from. `furthest`: Lag's. Both counters are left one short, as the caller is
  /// about to count this round.
  void rejoin(Publisher& publisher, std::int64_t furthest);
  /// The step that was just made gave a loss that is not finite.
  void note_bad_loss() { bad_loss_ = true; }
  /// After a step that left a loss or weights that are not finite: takes back the last publication
  /// or, if that is not finite either, the neighbors' average; Error(numeric) when there is none.
  void heal();

 private:
  bool adopt_neighbors(std::int64_t least_progress);
  bool weights_are_finite();

  Context worker_;
  const Peers& peers_;
  RoundPlan& plan_;
  const ModelReader& reader_;
  bool bad_loss_ = false;
};

}  // namespace fast::worker
