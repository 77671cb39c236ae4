// Copies the newest weights of a worker on another host, or its result, or a part of either, once.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "exchange/remote/pull/pull_plan.hpp"
#include "exchange/remote/pull/remote_reads.hpp"
#include "exchange/remote/remote_tasks.hpp"

namespace fast::exchange {

/// The states and their transitions:
///
///     idle ── begin_look ──► looking ── end_look ──► copying ── continue_copy ──► checking
///      ▲                        │ nothing published                                  │ end_check
///      └──────── retry ◄────────┴──────────────────────── the slot was overwritten ◄─┤
///                  │ after `most_attempts`                                           ▼
///                  └────────────────────────────────────────────────────────────► ended
class SnapshotRead final : public RemoteTask {
 public:
  static constexpr int most_attempts = 100;

  /// See Results.
  enum class Of { weights, result };

  /// At most `most_bytes` from the piece's offset on.
  SnapshotRead(RemoteEdges& edges, const mpi::RemoteWindow& window, int worker, const Piece& piece,
               std::size_t most_bytes, Of what = Of::weights);

  bool advance(bool is_followed) override;
  bool ended() const override { return state_ == State::ended; }
  bool released() override;

  /// What bytes() are: the weights beside the message, vector 0 of the message, or none.
  Snapshot result() const { return result_; }
  std::span<const std::byte> bytes() const { return {room_.data(), size_bytes_}; }
  std::uint64_t sequence() const { return target_.sequence; }
  std::int64_t round() const { return target_.first; }

 private:
  enum class State { idle, looking, copying, checking, ended };

  // The transitions; true when something has moved.
  bool begin_look();
  bool end_look(bool is_followed);
  bool continue_copy();
  bool end_check();
  bool retry();

  std::optional<PullTarget> target_in(const WorkerHeader& seen) const;
  void begin_copy(const PullTarget& target);

  Piece piece_;
  Of what_;
  const SlotLayout& layout_;
  MirrorWriter mirror_;
  HeaderRead header_;
  ChunkedRead copy_;
  std::vector<std::byte> room_;  ///< its own, so that the caller may leave at a deadline
  State state_ = State::idle;
  PullTarget target_;
  Snapshot found_ = Snapshot::none, result_ = Snapshot::none;
  std::size_t size_bytes_ = 0;
  int attempts_ = 0;
};

}  // namespace fast::exchange
