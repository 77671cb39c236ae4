// How a worker gets weights again: from its neighbors after a stop, from its own last publication
// after a step that left nothing finite.
#pragma once

#include <functional>
#include <vector>

#include "exchange/peers.hpp"
#include "membership/seat_assignment.hpp"
#include "worker/context.hpp"
#include "worker/lag_detector.hpp"
#include "worker/model_reader.hpp"
#include "worker/publisher.hpp"

namespace fast::worker {

class Recovery {
 public:
  Recovery(const Context& context, const Peers& peers, RoundPlan& plan, const ModelReader& reader);

  /// Called when this worker has come to another round, before it publishes for it: the topology
  /// becomes that of the round. Returns how often the run has grown.
  using ComeTo = std::function<int(std::int64_t rounds)>;

  /// This worker was left behind in its round. It adopts the average of its neighbors and goes on
  /// from round `furthest` (see LagDetector). The rounds between count as made. The caller counts
  /// the present round afterwards, so both counters end one below it. Throws Error(deadline) if no
  /// neighbor can be read.
  void rejoin(Publisher& publisher, std::int64_t furthest, const ComeTo& come_to);
  /// This worker was a spare and takes the seat of a worker that is gone. It adopts the average of
  /// the seat's neighbors, or of all workers if none of those lives, and begins in their round.
  /// Throws Error(deadline) if no worker can be read.
  void take_seat(Publisher& publisher, const membership::SeatOffer& offer, const ComeTo& come_to);
  /// This worker was a spare and joins with that growth, which is of round `round`; negative: of an
  /// earlier round that is not known any more. The rest is as in take_seat().
  void join(Publisher& publisher, const membership::SeatOffer& offer, std::int64_t round,
            const ComeTo& come_to);
  /// The step that was just made gave a loss that is not finite.
  void note_bad_loss() { bad_loss_ = true; }
  /// Does nothing if the loss and the weights are finite. Otherwise the worker takes back its last
  /// publication or, if that is not finite either, its neighbors' average. Throws Error(numeric) if
  /// neither is finite. On a device that can, the device itself takes back the publication: the
  /// host learns of it some rounds later.
  void heal();
  /// Counts and reports what devices have healed since. False: nothing.
  bool note_restored();

 private:
  void report_healed();
  bool is_left_to_device();
  bool adopt_neighbors(std::int64_t least_progress);
  bool adopt(const std::vector<int>& sources);
  bool search(const std::function<bool()>& adopts) const;
  std::vector<int> adopt_for(int seat);
  void adopt_round(const membership::SeatOffer& offer);
  void count_from_here();
  void publish_first(Publisher& publisher, double epoch);
  std::vector<int> living_among(const std::vector<int>& workers, int seat) const;
  std::vector<int> neighbors() const;

  Context worker_;
  const Peers& peers_;
  RoundPlan& plan_;
  const ModelReader& reader_;
  bool bad_loss_ = false;
  std::uint32_t restored_ = 0;  ///< of Mixer::bad_looks(), counted
};

}  // namespace fast::worker
