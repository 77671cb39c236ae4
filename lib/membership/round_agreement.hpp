// How the ranks of a group agree on a round while they go on: one protocol for checkpoints, for the
// end of a run, for growths and for shares of batches.
//
// Requests have numbers 1, 2, ... Events of a request:
//   1. propose() on any rank.
//   2. bind() on each rank that the request asks: it begins no round after its bound until the
//      request is settled.
//   3. last_bound() and settle() on the lowest rank that may settle: once all that are awaited have
//      answered, it settles on a round that is no earlier than the largest bound. No rank has
//      passed that round.
//   4. holds() on each rank, between rounds: it waits at its bound until the request is settled.
// When the lowest rank is not awaited any more, as it is silent, the next one settles. Then, or
// when parts of a run cannot see each other, there may be two settled rounds: ranks that have not
// reached the smaller one take the larger one.
#pragma once

#include <functional>
#include <optional>
#include <utility>

#include "membership/records.hpp"

namespace fast::membership {

/// What a worker does before its next round: it makes the round, waits at its bound, saves, stops,
/// or enters a run that has grown.
enum class RoundDecision { go, hold, save, stop, enter };

/// One kind of request, as one rank knows it. Three words of each record from `place` on belong to
/// it: proposed, bound, settled.
class RoundAgreement {
 public:
  RoundAgreement(RecordBoard board, std::size_t place) : board_(std::move(board)), place_(place) {}

  void propose(std::uint64_t number) { board_.raise(place_, number); }
  /// The newest request that any rank has proposed.
  std::uint64_t proposed() const { return board_.newest(place_); }

  void bind(NumberedRound bound) { board_.raise(place_ + 1, word_of(bound)); }
  NumberedRound bound_of(int rank) const {
    return numbered_round_in(board_.read(rank, place_ + 1));
  }
  NumberedRound own_bound() const { return bound_of(board_.rank()); }

  /// What a rank has to say on a request.
  enum class Voice {
    none,     ///< its bound does not count
    counts,   ///< its bound counts if it is there
    awaited,  ///< its bound is waited for
    settles,  ///< the same, and the lowest such rank settles
  };
  /// The largest bound for that request. Empty: some rank has not answered, or another one settles.
  std::optional<std::int64_t> last_bound(std::uint64_t number,
                                         const std::function<Voice(int rank)>& voice_of) const;
  void settle(NumberedRound settled) { board_.raise(place_ + 2, word_of(settled)); }
  /// The newest one.
  NumberedRound settled() const { return numbered_round_in(board_.newest(place_ + 2)); }
  /// As that rank knows it.
  NumberedRound settled_by(int rank) const {
    return numbered_round_in(board_.read(rank, place_ + 2));
  }

  /// Some request is proposed and not settled.
  bool is_open() const { return proposed() > settled().number; }
  /// This rank may not begin that round yet. `known`: the newest request whose round it knows.
  bool holds(std::int64_t round, std::uint64_t known) const {
    return own_bound().number > known && round > own_bound().round;
  }
  bool holds(std::int64_t round) const { return holds(round, settled().number); }

  /// This rank says, too, what others have proposed and settled. So the ranks of its host hear it
  /// from one of them.
  void pass_on();

 private:
  RecordBoard board_;
  std::size_t place_;
};

}  // namespace fast::membership
