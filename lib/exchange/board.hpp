// What each rank says of itself by one number.
#pragma once

#include <fast/core/deadline.hpp>
#include <fast/exchange/group.hpp>

#include <chrono>
#include <cstdint>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "exchange/group_impl.hpp"
#include "membership/gossip.hpp"
#include "membership/liveness.hpp"
#include "membership/periodic_thread.hpp"
#include "membership/records.hpp"

namespace fast::exchange {

/// A word of each rank that all ranks can read at any time, also while others train.
///
/// Words of other hosts arrive by gossip: after a tenth of a second or so, and sooner within a
/// second after a change.
class Board {
 public:
  /// Collective.
  explicit Board(const Group& group, Seconds deadline = Seconds(300))
      : region_(group.allocate(format.size_bytes(), Deadline(deadline))),
        records_(region_.parts, group.rank(), format),
        liveness_(records_, beats),
        news_(records_, group.hosts(),
              GroupImpl::of(group).open_datagrams(region_.parts.size() * format.size_bytes(),
                                                  Deadline(deadline))) {
    if (news_.has_other_hosts())
      thread_ = std::make_unique<membership::PeriodicThread>(
          [this](Seconds elapsed) { return tick(elapsed); });
  }
  Board(const Board&) = delete;
  Board& operator=(const Board&) = delete;

  /// The word of this rank. It only grows.
  void set(std::uint64_t value) { records_.raise(number, value); }

  /// Says that this rank lives, and looks for the others. One thread calls it again and again, and
  /// gives the time since its last call.
  void beat(Seconds elapsed) {
    records_.count(beats);
    liveness_.look(elapsed.count());
  }
  /// From now on this rank is not silent, though it calls beat() no more. If there are other hosts,
  /// tells them for a fifth of a second, and then ends the exchange of words.
  void end_beats() {
    records_.raise(beats, no_more_beats);
    if (!thread_) return;
    thread_.reset();
    for (int i = 0; i < 20; ++i) {
      news_.note(records_);
      news_.send();
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
  }
  /// Whether that rank has called beat(), and then not for so long. For the thread of beat().
  bool is_silent(int rank, Seconds after) const {
    const std::uint64_t found = records_.read(rank, beats);
    return found > 0 && found < no_more_beats && liveness_.is_silent(rank, after.count());
  }

  /// The newest known words of all ranks; 0 at first.
  std::vector<std::uint64_t> words() const {
    std::vector<std::uint64_t> all;
    for (int rank = 0; rank < records_.size(); ++rank) all.push_back(records_.read(rank, number));
    return all;
  }

 private:
  static constexpr Seconds of_change{1};
  static constexpr std::size_t number = 0, beats = 1;
  static constexpr std::uint64_t no_more_beats = std::uint64_t{1} << 63;
  static constexpr membership::RecordBoard::Format format{.words = 3, .common = 2};

  /// True soon after a change: others may wait for it.
  bool tick(Seconds elapsed) {
    while (news_.receive()) news_.take_over(records_);
    news_.note(records_);
    news_.send();
    std::vector<std::uint64_t> all = words();
    since_change_ = all == known_ ? since_change_ + elapsed : Seconds(0);
    known_ = std::move(all);
    return since_change_ < of_change;
  }

  Region region_;
  membership::RecordBoard records_;
  membership::Liveness liveness_;
  membership::Gossip news_;           ///< this and the next two are the ticker's
  std::vector<std::uint64_t> known_;  ///< words of the last call
  Seconds since_change_{0};
  std::unique_ptr<membership::PeriodicThread> thread_;  ///< declared last; null on one host
};

}  // namespace fast::exchange
