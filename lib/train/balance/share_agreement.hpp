// How workers agree on shares while training continues, and any worker may be slow, suspended or
// dead.
//
// Divisions have numbers 1, 2, ... They are the requests of a RoundAgreement whose rounds are
// epochs, and that needs no proposal. Events of division k:
//   1. measured() on each worker, in an epoch e in which division k - 1 is in force there: it says
//      how fast it is, and that it begins no epoch after e before division k is settled.
//   2. advance() on the lowest worker that is running and not silent: once all such workers have
//      said so, it settles the division. Division k is in force from the epoch after the largest e
//      on. Silent workers, those that have left, and those that are more than one division behind
//      are away in it.
//   3. begin_epoch() on each worker: it waits if it is the epoch after e and division k is not
//      settled. Then it takes the division that comes into force there.
// All workers thus have the same shares in the same epoch of their own, whatever the staleness.
// Nobody settles once some worker has made its last epoch. When the lowest worker is silent, the
// next one settles. There may then be two divisions of one number, if both settle at once: some
// samples of an epoch are then used twice or not at all.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "membership/coordinator.hpp"
#include "membership/round_agreement.hpp"
#include "train/balance/shares.hpp"

namespace fast::train {

/// One worker's part, which the coordinator advances. Ranks are workers: there are no spares. Who
/// has made its last epoch or has left, the workers say by their stage (RunAgreement::end()).
class ShareAgreement final : private membership::Protocol {
 public:
  struct Options {
    std::size_t batch_size = 1;
    Seconds silent_after{5};
    Seconds deadline{300};
  };
  /// `first`: the shares before the first division, the same on all workers. `coordinator`: its
  /// records have a word for each worker's share.
  ShareAgreement(std::shared_ptr<membership::Coordinator> coordinator, Shares first,
                 const Options& options);
  ~ShareAgreement();

  /// This worker has measured for the next division, and waits for it.
  bool has_measured() const;
  /// Once for each division. 0 seconds: this worker does not know its speed.
  void measured(int epoch, double seconds_per_sample);
  /// This worker has made a round.
  void count_round();
  bool may_begin(int epoch) const;
  /// Empty: nothing new comes into force.
  std::optional<Shares> take(int epoch);
  /// Waits until this worker may begin the epoch, then as take(). Throws Error(deadline) when no
  /// worker makes a round for so long.
  std::optional<Shares> begin_epoch(int epoch);

 private:
  void advance() override { settle(); }
  bool is_busy() const override {
    return divisions_.own_bound().number > divisions_.settled().number;
  }

  bool can_begin(int epoch) const;
  std::optional<Shares> come_into_force(int epoch);
  std::uint64_t rounds() const;  ///< of all workers: grows while any of them trains
  bool any_is_done() const;
  std::optional<Shares> newest() const;
  bool is_away(int worker, std::uint64_t number) const;
  void settle();
  void settle_on(membership::NumberedRound settled, const Shares& shares);

  std::shared_ptr<membership::Coordinator> coordinator_;  ///< its lock guards all below
  membership::RecordBoard board_;
  membership::RunRecords records_;
  membership::RoundAgreement divisions_;
  Shares first_;
  Options options_;
  std::uint64_t taken_ = 0;  ///< number of the division in force
};

}  // namespace fast::train
