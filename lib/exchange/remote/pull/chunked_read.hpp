// A range of the memory of a worker on another host, read in chunks.
#pragma once

#include <deque>

#include "exchange/remote/throttle.hpp"
#include "mpi/remote_window.hpp"

namespace fast::exchange {

/// Keeps a few chunks under way and adapts their length to the speed of the link: other reads wait
/// behind these chunks, headers with signs of life among them.
class ChunkedRead {
 public:
  static constexpr std::size_t shortest_chunk = std::size_t{1} << 16;
  static constexpr std::size_t longest_chunk = std::size_t{1} << 20;

  ChunkedRead(const mpi::RemoteWindow& window, int worker, Throttle& throttle)
      : window_(window), worker_(worker), throttle_(throttle) {}

  /// Reads the worker's bytes [offset, offset + size_bytes) into `to`.
  void begin(std::size_t offset, std::byte* to, std::size_t size_bytes);
  /// Takes the chunks that have arrived and starts the next ones.
  void advance();

  /// Bytes that have arrived, without a gap from the beginning.
  std::size_t arrived_bytes() const { return arrived_; }
  bool done() const { return chunks_.empty() && requested_ == size_bytes_; }
  /// As the latest advance() or abandon() left it.
  bool is_under_way() const { return !chunks_.empty(); }
  /// Starts no further chunk. True when none is under way any more.
  bool abandon();

 private:
  struct Chunk {
    mpi::Request request;
    std::size_t size_bytes;
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
  std::size_t offset_ = 0, size_bytes_ = 0;
  std::byte* to_ = nullptr;
  std::size_t requested_ = 0, arrived_ = 0;  ///< bytes
};

}  // namespace fast::exchange
