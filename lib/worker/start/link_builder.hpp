// How a worker gets ready for its first round: it opens its link to the others, and a spare waits
// until there is a seat for it.
#pragma once

#include <fast/algorithm/algorithm.hpp>
#include <fast/core/observer.hpp>
#include <fast/exchange/exchange.hpp>
#include <fast/worker/worker.hpp>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>

#include "combine/mixer.hpp"
#include "exchange/seats/seated_link.hpp"
#include "membership/members.hpp"
#include "worker/context.hpp"
#include "worker/round_plan.hpp"
#include "worker/start/startup_config.hpp"

namespace fast::worker {

// Events of a worker's links, in the worker's rounds.

/// Tells an observer what an exchange or a reducer tells, as of the round that the worker is in:
/// these two number combinations or calls.
class RoundEvents final : public Observer {
 public:
  explicit RoundEvents(std::shared_ptr<Observer> observer) : observer_(std::move(observer)) {}
  void begin(std::int64_t round) { round_ = round; }

  void on_phase(const PhaseEvent& event) noexcept override { observer_->on_phase(in_round(event)); }
  void on_peer(const PeerEvent& event) noexcept override { observer_->on_peer(in_round(event)); }

 private:
  template <class Event>
  Event in_round(Event event) const {
    event.round = round_;
    return event;
  }

  std::shared_ptr<Observer> observer_;
  std::atomic<std::int64_t> round_{0};
};

// The edges that an exchange asks for, of whoever holds the seats.

/// A spare opens its link before it knows its seat: until then it has no edges. Any thread may ask.
class SeatPlan {
 public:
  SeatPlan(algorithm::RuleTraits traits, std::shared_ptr<membership::Members> members)
      : traits_(std::move(traits)), members_(std::move(members)) {}

  /// The plan of this worker's seat.
  void set(std::shared_ptr<RoundPlan> plan) {
    const std::lock_guard lock(mutex_);
    plan_ = std::move(plan);
  }
  /// In ranks of Group::everyone().
  RoundEdges edges(std::int64_t combination) const {
    const std::shared_ptr<RoundPlan> plan = this->plan();
    if (!plan || !reads_neighbors(traits_, combination)) return {};
    const std::shared_ptr<const RoundPlan::Round> round = plan->at(combination);
    return members_ ? exchange::in_ranks(round->edges, *members_) : round->edges;
  }

 private:
  std::shared_ptr<RoundPlan> plan() const {
    const std::lock_guard lock(mutex_);
    return plan_;
  }

  algorithm::RuleTraits traits_;
  std::shared_ptr<membership::Members> members_;  ///< null: seats are ranks
  mutable std::mutex mutex_;
  std::shared_ptr<RoundPlan> plan_;
};

inline EdgePlan edges_of(std::shared_ptr<const SeatPlan> plan) {
  return [plan = std::move(plan)](std::int64_t combination) { return plan->edges(combination); };
}

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
  void log_memory() const;
  std::optional<WorkerParts> wait(WorkerParts ready);

  const Group& group_;
  const StartupConfig& agreed_;
  const WorkerOptions& options_;
  std::shared_ptr<membership::Members> members_;  ///< null without spares
  std::shared_ptr<SeatPlan> edges_;
  std::shared_ptr<RoundEvents> events_;
  std::shared_ptr<codec::HostMessage> message_;  ///< of mixer and link; null: see host_message()
};

ExchangeOptions exchange_options(const WorkerOptions& options);

/// Throws Error(argument) if such workers cannot be replaced by spares.
void check_for_spares(const Group& group, const WorkerOptions& options);

}  // namespace fast::worker
