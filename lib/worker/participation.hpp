// Whether a worker takes part in training, and how it ends its part.
#pragma once

#include <memory>
#include <string>

#include "exchange/peers.hpp"
#include "membership/members.hpp"
#include "worker/context.hpp"
#include "worker/publisher.hpp"
#include "worker/round_plan.hpp"
#include "worker/start/startup_config.hpp"

namespace fast::worker {

class Participation {
 public:
  /// `members` may be null: then there are no spares.
  Participation(const Context& context, std::shared_ptr<Peers> peers,
                std::shared_ptr<membership::Members> members)
      : worker_(context), peers_(std::move(peers)), members_(std::move(members)) {}

  /// False in a worker that a spare has replaced, and in one that has left.
  bool is_active() const { return !replaced_ && !departed_; }
  /// True when it has finished, failed or left, or was replaced.
  bool has_ended() const { return ended_; }
  /// As is_active(). Ends the worker's part, with a warning, if a spare has taken its seat.
  bool keeps_seat() { return is_active() && (!members_ || ended_ || looks_at_seat()); }

  // As Worker has them.
  void finish(Publisher& publisher);
  void leave();
  bool abandon() noexcept;

 private:
  bool looks_at_seat();
  bool announce_failure() noexcept;
  void vacate() noexcept;

  Context worker_;
  std::shared_ptr<Peers> peers_;
  std::shared_ptr<membership::Members> members_;
  bool replaced_ = false, departed_ = false, ended_ = false, failed_ = false;
};

// A run that grows: between two rounds, the worker agrees with the others on the round from which
// they are more, and changes its topology there.

/// Of rules that remember neighbors: all begin this epoch when they enter the growth. It is newer
/// than those of departures and of spares that took seats before.
double epoch_of_growth(int growth);
/// The growths before that epoch.
int growths_before(double epoch);

class Growth {
 public:
  /// `members` may be null: then the run does not grow.
  Growth(const Context& context, TopologyConfig wiring, RoundPlan& plan,
         std::shared_ptr<membership::Members> members)
      : worker_(context), wiring_(std::move(wiring)), plan_(plan), members_(std::move(members)) {}

  void allow(const GrowthRounds& rounds);
  /// Of a spare that begins to train after `rounds` rounds, before it publishes for the next one:
  /// its topology is the one that the others have in this round. Returns how often the run has
  /// grown.
  int begin(std::int64_t rounds);
  /// Of a worker that has left out rounds: the same, but for a growth that it has not entered.
  void prepare(std::int64_t rounds);
  /// After each round. Passes on what the launcher asks for, or refuses it by a warning. Blocks
  /// while the others agree, which is rare: they are asked in time. True when the workers are more
  /// from the next round on. Throws Error(deadline).
  bool look() { return members_ && look_around(); }

 private:
  bool look_around();
  void hear_launcher();
  std::string why_not() const;
  void change(int growths, std::int64_t from);
  std::int64_t rounds_ahead();

  Context worker_;
  TopologyConfig wiring_;
  RoundPlan& plan_;
  std::shared_ptr<membership::Members> members_;
  int heard_ = 0;     ///< requests of the launcher
  int prepared_ = 0;  ///< growths that plan_ knows of
  Clock::time_point began_ = Clock::now();
  std::int64_t looks_ = 0;
};

}  // namespace fast::worker
