// How a worker gets ready for its first round: it opens its link to the others, and a spare waits
// until there is a seat for it.
#pragma once

#include <fast/worker/worker.hpp>
#include <memory>
#include <optional>

#include "combine/mixer.hpp"
#include "membership/members.hpp"
#include "worker/round_events.hpp"
#include "worker/round_plan.hpp"
#include "worker/start/seat_plan.hpp"
#include "worker/start/startup_config.hpp"

namespace fast::worker {

/// What a worker has before its first round.
struct WorkerParts {
  std::unique_ptr<combine::Mixer> mixer;
  PayloadShape shape;
  std::shared_ptr<RoundPlan> plan;  ///< shared with the exchange's edge plan
  Link link;
  std::shared_ptr<RoundEvents> events;         ///< of `link`; null: nobody observes
  std::optional<membership::SeatOffer> offer;  ///< of a spare that is to take a seat
};

class LinkBuilder {
 public:
  /// Both outlive this.
  LinkBuilder(const Group& group, const StartupConfig& agreed);

  /// Collective over all ranks. A spare returns when it is needed, with an offer that fill() needs,
  /// or with nothing when training has ended. Throws Error(peer_failed) in a spare when a worker
  /// fails.
  std::optional<WorkerParts> make();
  /// Of a spare whose seat was not vacant any more: waits for another one, as make(). `link` is
  /// that of the time before.
  std::optional<WorkerParts> make_again(Link link);
  /// Of a spare with an offer: makes what depends on the seat. Throws what the rule throws.
  void fill(WorkerParts& ready);
  /// Of a spare that was not needed.
  void leave();

 private:
  int seat(const WorkerParts& ready) const;
  ResolvedTopology wired() const;
  Link open(const PayloadShape& shape);
  std::optional<WorkerParts> wait(WorkerParts ready);

  const Group& group_;
  const StartupConfig& agreed_;
  const WorkerOptions& options_;
  std::shared_ptr<membership::Members> members_;  ///< null without spares
  std::shared_ptr<SeatPlan> edges_;
  std::shared_ptr<RoundEvents> events_;
};

ExchangeOptions exchange_options(const WorkerOptions& options);

/// Throws Error(argument) if such workers cannot be replaced by spares.
void check_for_spares(const Group& group, const WorkerOptions& options);

}  // namespace fast::worker
