// What keeps a remote worker's mirror up to date, one object a neighbor: by reading over there
// (puller.hpp) or by messages (two_sided.hpp). Used by the one thread of remote edges.
#pragma once

#include <functional>
#include <optional>

#include "exchange/remote/send_buffers.hpp"
#include "exchange/remote/throttle.hpp"

namespace fast::exchange {

/// How often MPI is looked after while the worker computes: waking costs the core it computes on.
inline constexpr auto nap_beside_work = std::chrono::microseconds(500);

/// What all remote edges of a worker share.
struct RemoteEdges {
  std::shared_ptr<const SlotBoard> board;
  int rank = 0;
  EdgePlan plan;
  std::int64_t staleness = 0;
  Throttle throttle;
  SendBuffers send_buffers;

  bool exact() const { return staleness == 0; }
  /// Rounds whose slots this worker has done with: the round it is in.
  std::int64_t consumed() const {
    return board->header(rank).reading.consumed.load(std::memory_order_acquire);
  }
  /// The first round from `from` to `to` in which `worker` is read here; and in which it reads.
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
  /// From now on only what is owed is brought to its end.
  virtual void close() {}
  /// True when nothing is under way or owed.
  virtual bool closed() = 0;

 private:
  int worker_;
};

inline WorkerStatus status_of(const WorkerHeader& header) {
  return static_cast<WorkerStatus>(header.life.status.load(std::memory_order_acquire));
}

/// What a worker tells besides payloads; its counters only rise.
struct PeerCounters {
  std::int64_t consumed = 0, progress = 0;
  std::uint64_t heartbeat = 0;
  std::uint64_t activity = 0;

  static PeerCounters of(const WorkerHeader& header);
  /// Activity is no news by itself: it travels with the next heartbeat.
  bool operator==(const PeerCounters& other) const {
    return consumed == other.consumed && progress == other.progress && heartbeat == other.heartbeat;
  }
};

/// Publishes in a worker's mirror what has come of it, and wakes those that wait for it.
class MirrorWriter {
 public:
  MirrorWriter(const SlotBoard& board, int worker) : board_(board), worker_(worker) {}
  /// The slot to write next; whoever still reads what is in it finds out. Readers may follow what
  /// comes for the rounds given.
  std::byte* begin(std::int64_t first_round = 0, std::int64_t last_round = -1);
  /// So many bytes of the slot are there.
  void arrived(std::size_t bytes);
  /// A part of something else that the worker sends has come.
  void heard() { board_.header(worker_).arriving.parts.fetch_add(1, std::memory_order_relaxed); }
  std::byte* slot() const { return board_.slot(worker_, mirrored_ + 1); }  ///< since begin()
  void publish(std::int64_t first_round, std::int64_t last_round);
  /// The last publication has become further rounds'.
  void extend(std::int64_t last_round);
  void set_status(WorkerStatus status);

 private:
  const SlotBoard& board_;
  int worker_;
  std::uint64_t mirrored_ = 0;  ///< publications made in the mirror
};

/// Takes over what is news and wakes those that wait for it; true when any was but a heartbeat.
bool take_over(WorkerHeader& mirror, const PeerCounters& counters);

}  // namespace fast::exchange
