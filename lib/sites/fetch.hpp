// Reads one publication of another site in chunks that may be lost and may come in any order.
#pragma once

#include <fast/core/deadline.hpp>
#include <fast/core/memory.hpp>

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "sites/wire.hpp"

namespace fast::sites {

/// How many chunks may be under way: as many as arrive in half a second, and two at least.
class FetchWindow {
 public:
  /// Chunks are asked for, and none was under way: what comes from now on shows the link's rate.
  void begin(Clock::time_point now);
  void arrived(std::size_t bytes, Clock::time_point now);
  std::size_t chunks() const { return chunks_; }

 private:
  static constexpr Seconds in_flight{0.5}, span{0.25};
  std::size_t chunks_ = 8;
  std::size_t bytes_ = 0;
  Clock::time_point since_{};
};

/// Not thread-safe.
class Fetch {
 public:
  Fetch(std::uint64_t incarnation, const Publication& what, Clock::time_point now);

  const Publication& what() const { return what_; }
  std::uint64_t incarnation() const { return incarnation_; }
  bool is_of(const Chunk& chunk) const;

  struct Run {
    std::size_t first = 0, count = 0;
  };
  /// The next chunks to ask for, if fewer than `most` are under way. Chunks that have not come for
  /// a while are asked for again, each time after a longer while.
  std::optional<Run> next(std::size_t most, Clock::time_point now);
  /// False for a chunk that is there already, was not asked for, or is not what its hash says.
  bool take(const Chunk& chunk, Clock::time_point now);

  std::size_t under_way() const { return asked_; }
  bool is_whole() const { return missing_ == 0; }
  /// Of a whole one: the bytes are those that were announced.
  bool is_as_announced() const;
  std::shared_ptr<const AlignedBuffer> bytes() const { return bytes_; }

 private:
  enum class State : std::uint8_t { missing, asked, there };
  void give_up_asked(Clock::time_point now);

  static constexpr Seconds first_patience{1}, most_patience{8};
  std::uint64_t incarnation_;
  Publication what_;
  std::shared_ptr<AlignedBuffer> bytes_;
  std::vector<State> chunks_;
  std::size_t missing_, asked_ = 0, cursor_ = 0;
  Clock::time_point last_;  ///< a chunk came, or was asked for when none was under way
  Seconds patience_ = first_patience;
};

}  // namespace fast::sites
