// Keeps the mirror of a worker on another host up to date, one object a neighbor: by reading that
// worker's memory (puller.hpp) or by messages (two_sided.hpp). Used by the background thread of
// remote edges.
#pragma once

#include <optional>

#include "exchange/remote/messages/send_buffers.hpp"
#include "exchange/remote/throttle.hpp"

namespace fast::exchange {

/// How often MPI is polled while the worker computes: each poll takes time of the core it uses.
inline constexpr auto poll_period_beside_step = std::chrono::microseconds(500);

/// What all remote edges of a worker share.
struct RemoteEdges {
  std::shared_ptr<const SlotBoard> board;
  int rank = 0;
  EdgePlan plan;
  std::int64_t staleness = 0;
  Throttle throttle;
  SendBuffers send_buffers;

  bool exact() const { return staleness == 0; }
  /// Rounds of which this worker has read all slots: the number of its current round.
  std::int64_t consumed() const {
    return board->header(rank).reading.consumed.load(std::memory_order_acquire);
  }
  /// What the edge from a source, or to a reader, carries of a message for these rounds.
  MessagePart part_from(int source, std::int64_t first_round, std::int64_t last_round) const;
  MessagePart part_to(int reader, std::int64_t first_round, std::int64_t last_round) const;
  /// The first round from `from` to `to` in which this worker reads `worker`; in which `worker`
  /// reads this one.
  std::optional<std::int64_t> first_read(int worker, std::int64_t from, std::int64_t to) const;
  std::optional<std::int64_t> first_read_by(int worker, std::int64_t from, std::int64_t to) const;
};

class Replicator {
 public:
  explicit Replicator(int worker) : worker_(worker) {}
  virtual ~Replicator() = default;
  int worker() const { return worker_; }

  /// Takes the next step without blocking; true when something has moved.
  virtual bool advance() = 0;
  /// Starts nothing new but what the other end still needs.
  virtual void close() {}
  /// True when nothing is under way and the other end has all it needs.
  virtual bool closed() = 0;
  /// How long its reads take if the other end's slots do not last so long; else 0.
  virtual Seconds slow_read() const { return Seconds(0); }

 private:
  int worker_;
};

/// The counters of a worker's header. They only rise.
struct PeerCounters {
  std::int64_t consumed = 0, progress = 0;
  std::uint64_t heartbeat = 0;
  std::uint64_t activity = 0;

  static PeerCounters of(const WorkerHeader& header);
  /// A change of activity alone does not count: it is sent with the next heartbeat.
  bool operator==(const PeerCounters& other) const {
    return consumed == other.consumed && progress == other.progress && heartbeat == other.heartbeat;
  }
};

/// Raises the mirror's counters to `counters` and wakes its waiters. True when a counter other than
/// heartbeat and activity has risen.
bool merge_counters(WorkerHeader& mirror, const PeerCounters& counters);

/// Writes a worker's mirror and wakes those that wait for that worker.
class MirrorWriter {
 public:
  MirrorWriter(const SlotBoard& board, int worker) : board_(board), worker_(worker) {}
  /// The slot to write next. Readers of its old content find out. Readers may follow the arrival of
  /// a payload for the rounds given. The first call provides the mirror's memory, and throws
  /// Error(resource) if there is none.
  std::byte* begin(std::int64_t first_round = 0, std::int64_t last_round = -1);
  /// The first `bytes` of the slot are there, or are not among what arrives.
  void arrived(std::size_t bytes);
  /// A part of something else from this worker has arrived: a sign of life.
  void note_part() {
    board_.header(worker_).arriving.parts.fetch_add(1, std::memory_order_relaxed);
  }
  void publish(std::int64_t first_round, std::int64_t last_round);
  /// The latest publication is also for the rounds up to `last_round`.
  void extend(std::int64_t last_round);
  /// True when the status is new.
  bool set_status(WorkerStatus status);
  /// Only looks bring it.
  void set_seen_status(WorkerStatus status) {
    board_.header(worker_).arriving.seen_status.store(static_cast<std::uint32_t>(status));
  }
  /// Only looks bring it. One look follows the other, so that no older words replace newer ones.
  void set_reduced(const Reduced& reduced) { store_reduced(board_.header(worker_), reduced); }
  bool merge(const WorkerHeader& seen);

 private:
  const SlotBoard& board_;
  int worker_;
  bool is_provided_ = false;    ///< the mirror's memory
  std::uint64_t mirrored_ = 0;  ///< publications made in the mirror
};

}  // namespace fast::exchange
