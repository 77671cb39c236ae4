// How the memory of a worker on another host is read by MPI_Rget: its header, and a range in
// chunks.
#pragma once

#include <deque>

#include "exchange/remote/remote_tasks.hpp"
#include "exchange/remote/replicator.hpp"
#include "exchange/remote/throttle.hpp"
#include "exchange/shared/slot_board.hpp"
#include "mpi/remote_window.hpp"

namespace fast::exchange {

/// A copy of the header of a worker on another host.
///
/// One read at a time. MPI writes into this object until test() has returned true.
class HeaderRead {
 public:
  HeaderRead(const mpi::RemoteWindow& window, int worker) : window_(window), worker_(worker) {}
  HeaderRead(const HeaderRead&) = delete;
  HeaderRead& operator=(const HeaderRead&) = delete;

  void begin();
  /// True when the read is done. Throws Error(mpi) if it failed.
  bool test();
  const mpi::Request& request() const { return request_; }

  /// The header as the latest read found it. Its cache lines need not be of one moment.
  const WorkerHeader& header() const { return *reinterpret_cast<const WorkerHeader*>(bytes_); }

 private:
  const mpi::RemoteWindow& window_;
  int worker_;
  alignas(WorkerHeader) std::byte bytes_[sizeof(WorkerHeader)] = {};
  mpi::Request request_;
};

/// A range of the memory of a worker on another host, or a part of it.
///
/// Keeps a few chunks under way and adapts their length to the speed of the link: other reads wait
/// behind these chunks, headers with signs of life among them.
class ChunkedRead {
 public:
  static constexpr std::size_t shortest_chunk = std::size_t{1} << 16;
  static constexpr std::size_t longest_chunk = std::size_t{1} << 20;

  ChunkedRead(const mpi::RemoteWindow& window, int worker, Throttle& throttle)
      : window_(window), worker_(worker), throttle_(throttle) {}

  /// Reads the worker's bytes [offset, offset + size_bytes) into `to`.
  void begin(std::size_t offset, std::byte* to, std::size_t size_bytes) {
    begin(offset, to, MessagePart{0, {0, size_bytes}});
  }
  /// Reads that part of them.
  void begin(std::size_t offset, std::byte* to, const MessagePart& part);
  /// Takes the chunks that have arrived and starts the next ones.
  void advance();

  /// What is read of the range's first bytes, so many, has arrived.
  std::size_t arrived_bytes() const { return arrived_; }
  bool done() const { return chunks_.empty() && part_.run(requested_, 1).size_bytes() == 0; }
  /// As the latest advance() or abandon() left it.
  bool is_under_way() const { return !chunks_.empty(); }
  /// Starts no further chunk. True when none is under way any more.
  bool abandon();

 private:
  struct Chunk {
    mpi::Request request;
    std::size_t end;  ///< in the range
    Clock::time_point started;
  };
  void take_arrived();
  void start_next();
  void adapt_length(Clock::duration took);

  const mpi::RemoteWindow& window_;
  int worker_;
  Throttle& throttle_;
  std::deque<Chunk> chunks_;
  std::size_t chunk_bytes_ = shortest_chunk;
  std::size_t offset_ = 0;
  MessagePart part_{0, {0, 0}};  ///< of the range
  std::byte* to_ = nullptr;
  std::size_t requested_ = 0, arrived_ = 0;  ///< up to these bytes of the range
};

/// Brings the counters and the status of a worker on another host into its mirror, once.
class HeaderFetch final : public RemoteTask {
 public:
  HeaderFetch(const SlotBoard& board, const mpi::RemoteWindow& window, int worker)
      : RemoteTask(worker), mirror_(board, worker), header_(window, worker) {}

  bool advance(bool is_followed) override;
  bool ended() const override { return state_ == State::ended; }
  bool released() override { return !header_.request().is_under_way() || header_.test(); }

 private:
  enum class State { idle, looking, ended };

  MirrorWriter mirror_;
  HeaderRead header_;
  State state_ = State::idle;
};

}  // namespace fast::exchange
