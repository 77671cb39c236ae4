// How a worker comes to its place: it opens its link to the others, and a spare waits until there
// is a seat for it.
#pragma once

#include <fast/worker/worker.hpp>
#include <memory>
#include <optional>

#include "combine/mixer.hpp"
#include "exchange/seats/seat_keeper.hpp"
#include "worker/round_plan.hpp"
#include "worker/start/seat_plan.hpp"
#include "worker/start/wiring.hpp"

namespace fast::worker {

/// What a worker has before its first round.
struct Place {
  std::unique_ptr<combine::Mixer> mixer;
  PayloadShape shape;
  std::shared_ptr<RoundPlan> plan;  ///< shared with the exchange's edge plan
  Link link;
  std::optional<exchange::SeatOffer> offer;  ///< of a spare that is to take a seat
};

/// `layout`, `schedule`, the same of `wiring`, and `options` have been checked, and outlive this.
class PlaceTaker {
 public:
  PlaceTaker(const Group& group, const Schedule& schedule, const Wiring& wiring,
             const ParameterLayout& layout, const WorkerOptions& options);

  /// Collective over all ranks. A spare returns when it is needed, or without a place when training
  /// has ended. Throws Error(peer_failed) in a spare when a worker fails.
  std::optional<Place> take();
  /// Of a spare whose seat was not vacant any more: waits for another one, as take(). `link` is
  /// that of the place before.
  std::optional<Place> take_another(Link link);
  /// Of a spare that was not needed.
  void leave();

 private:
  int seat(const Place& place) const;
  void prepare(Place& place);
  Wired wired() const;
  Link open(const PayloadShape& shape);
  std::optional<Place> wait(Place place);

  const Group& group_;
  const Schedule& schedule_;
  const Wiring& wiring_;
  const ParameterLayout& layout_;
  const WorkerOptions& options_;
  std::shared_ptr<exchange::SeatKeeper> keeper_;  ///< null without spares
  std::shared_ptr<SeatPlan> edges_;
};

ExchangeOptions exchange_options(const WorkerOptions& options);

/// Throws Error(argument) if such workers cannot be replaced by spares.
void check_for_spares(const Group& group, const WorkerOptions& options);

}  // namespace fast::worker
