// Keeps the seats of a run: a Seating in memory that the ranks of a host share, messages to ranks
// of other hosts, and a thread that advances it beside training.
#pragma once

#include <condition_variable>
#include <fast/exchange/group.hpp>
#include <functional>
#include <mutex>
#include <optional>

#include "exchange/gossip.hpp"
#include "exchange/seats/growth_keeper.hpp"
#include "exchange/seats/seating.hpp"
#include "exchange/ticker.hpp"

namespace fast::exchange {

class SeatKeeper {
 public:
  /// Collective over `everyone`: the ranks of the seats, then the spares.
  SeatKeeper(Group everyone, int seats, const Deadline& deadline);
  SeatKeeper(const SeatKeeper&) = delete;
  SeatKeeper& operator=(const SeatKeeper&) = delete;

  // Any thread. These do not block.
  /// Who sits where.
  const SeatTable& table() const { return table_; }
  /// The number by which a rank is known: its seat, or its rank if it has none.
  int number_of(int rank) const;
  /// Whether that rank takes part, and is no spare that prepares to join.
  bool has_begun(int rank) const;
  /// The seats that growths have opened and that are used.
  std::vector<int> joined() const;

  /// A rank without a sign of life for that long is gone; before the call, none is silent. Workers
  /// combine in every `steps`-th round.
  void watch(Seconds silent_after, std::int64_t steps);
  void note_status(WorkerStatus status);
  void note_progress(std::int64_t combinations);
  /// Of this worker's combinations: see SeatRecord.
  void note_republished(std::int64_t combinations) {
    table_.records().set_republished(combinations);
  }
  /// Of this spare: see SeatRecords::set_work().
  void note_work(const SpareWork& work) { table_.records().set_work(work); }
  /// Of all spares: see SpareWork.
  std::uint64_t repeated() const;
  /// A spare will probably take the seat of that lost worker soon.
  bool is_awaited(int seat) const;
  /// Ranks are missing, so that calls that are collective over all ranks would not end: some rank
  /// was lost, or a spare has a seat or has joined.
  bool some_are_missing() const;

  /// Of a spare: blocks until there is a seat for it. Empty when training has ended without it, or
  /// when the launcher has asked this rank to leave.
  /// Calls `began` when all workers have met. Throws Error(peer_failed) if a worker has failed, or
  /// Error(deadline) if all workers are gone.
  std::optional<SeatOffer> wait_for_seat(const std::function<void()>& began);
  /// The spare's worker is ready: from now on the others read it. False if the seat is not vacant
  /// any more; the spare may wait for another one.
  bool take();
  /// Takes no seat, or no other one, any more. A seat that it has falls vacant.
  void release();
  /// Of a worker that has left: waits until ranks of other hosts must have heard that, a second. A
  /// spare of theirs would take the seat of a worker that is gone.
  void spread_news() const;
  /// Of a worker that knows from elsewhere that all have ended: waits until they say so here, too,
  /// a few seconds at most. From then on joined() is the same on all.
  void await_end();

  GrowthKeeper& growth() { return growth_; }
  const GrowthKeeper& growth() const { return growth_; }

 private:
  bool tick(Seconds elapsed);
  void receive_news();
  std::vector<SeatRecord*> records() const;

  Group everyone_;
  Region region_;
  Gossip news_;               ///< the ticker's
  mutable std::mutex mutex_;  ///< guards awaits_end_ and seating_
  std::condition_variable changed_;
  bool awaits_end_ = false;
  SeatTable table_;
  Seating seating_;
  GrowthKeeper growth_{seating_, mutex_, changed_};
  Ticker ticker_;  ///< declared last: it uses all others
};

}  // namespace fast::exchange
