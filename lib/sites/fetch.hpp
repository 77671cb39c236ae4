// Reads one publication of another site in chunks that may be lost and may come in any order.
#pragma once

#include <fast/core/deadline.hpp>
#include <fast/core/memory.hpp>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "sites/wire.hpp"

namespace fast::sites {

/// How many chunks may be under way: as many as arrive in half a second, and two at least. A fast
/// link shows its rate in one window already: that doubles it at most, as chunks that were held up
/// arrive together.
class FetchWindow {
 public:
  /// Chunks are asked for, and none was under way: what comes from now on shows the link's rate.
  void begin(Clock::time_point now) {
    since_ = now;
    bytes_ = 0;
  }

  void arrived(std::size_t bytes, Clock::time_point now) {
    bytes_ += bytes;
    const Seconds took = now - since_;
    if (took < span && bytes_ < chunks_ * chunk_bytes) return;
    const double rate = static_cast<double>(bytes_) / std::max(took, shortest).count();
    const double fit = rate * in_flight.count() / static_cast<double>(chunk_bytes);
    const double most = std::min(128.0, 2 * static_cast<double>(chunks_));
    chunks_ = static_cast<std::size_t>(std::clamp(fit, 2.0, most));
    begin(now);
  }

  std::size_t chunks() const { return chunks_; }

 private:
  static constexpr Seconds in_flight{0.5}, span{0.25}, shortest{1e-6};
  std::size_t chunks_ = 8;
  std::size_t bytes_ = 0;
  Clock::time_point since_{};
};

/// Not thread-safe.
class Fetch {
 public:
  Fetch(std::uint64_t incarnation, const Publication& what, Clock::time_point now)
      : incarnation_(incarnation),
        what_(what),
        bytes_(std::make_shared<AlignedBuffer>(static_cast<std::size_t>(what.bytes))),
        chunks_(what.chunks(), State::missing),
        hashes_(what.chunks()),
        missing_(what.chunks()),
        last_(now) {}

  const Publication& what() const { return what_; }
  std::uint64_t incarnation() const { return incarnation_; }
  /// Chunks are asked for again after equal times.
  void ask_evenly() { most_patience_ = first_patience; }

  bool is_of(const Chunk& chunk) const {
    return chunk.incarnation == incarnation_ && chunk.content == what_.content &&
           chunk.number == what_.number;
  }

  struct Run {
    std::size_t first = 0, count = 0;
  };

  /// The next chunks to ask for, if fewer than `most` are under way. Chunks that have not come for
  /// a while are asked for again, each time after a longer while.
  std::optional<Run> next(std::size_t most, Clock::time_point now) {
    if (asked_ > 0 && now - last_ > patience_) give_up_asked(now);
    while (cursor_ < chunks_.size() && chunks_[cursor_] != State::missing) ++cursor_;
    if (cursor_ == chunks_.size() || asked_ >= most) return std::nullopt;
    if (asked_ == 0) last_ = now;
    if (!began_) began_ = now;
    Run run{cursor_, 0};
    while (cursor_ < chunks_.size() && chunks_[cursor_] == State::missing && asked_ < most &&
           run.count < most_asked) {
      chunks_[cursor_++] = State::asked;
      ++asked_;
      ++run.count;
    }
    return run;
  }

  /// False for a chunk that is there already, was not asked for, or is not what its hash says.
  bool take(const Chunk& chunk, Clock::time_point now) {
    if (chunk.index >= chunks_.size() || chunks_[chunk.index] == State::there) return false;
    if (chunk.bytes.size() != what_.chunk_size(chunk.index)) return false;
    std::string hash = sha256_of(chunk.bytes);
    if (hash != chunk.sha256) return false;
    hashes_[chunk.index] = std::move(hash);
    std::memcpy(bytes_->data() + chunk.index * chunk_bytes, chunk.bytes.data(), chunk.bytes.size());
    if (chunks_[chunk.index] == State::asked) --asked_;
    chunks_[chunk.index] = State::there;
    --missing_;
    last_ = now;
    patience_ = first_patience;
    if (began_ && !delay_) delay_ = now - *began_;
    return true;
  }

  std::size_t under_way() const { return asked_; }
  /// From the first request to the first chunk that came. None: none has come.
  std::optional<Seconds> delay() const { return delay_; }
  bool is_whole() const { return missing_ == 0; }

  /// Of a whole one: the bytes are those that were announced.
  bool is_as_announced() const { return hash_of_chunks(hashes_) == what_.sha256; }

  std::shared_ptr<const AlignedBuffer> bytes() const { return bytes_; }

 private:
  enum class State : std::uint8_t { missing, asked, there };

  void give_up_asked(Clock::time_point now) {
    std::ranges::replace(chunks_, State::asked, State::missing);
    asked_ = 0;
    cursor_ = 0;
    last_ = now;
    patience_ = std::min(2 * patience_, most_patience_);
  }

  static constexpr Seconds first_patience{1};
  std::uint64_t incarnation_;
  Publication what_;
  std::shared_ptr<AlignedBuffer> bytes_;
  std::vector<State> chunks_;
  std::vector<std::string> hashes_;  ///< of those that are there
  std::size_t missing_, asked_ = 0, cursor_ = 0;
  Clock::time_point last_;  ///< a chunk came, or was asked for when none was under way
  Seconds patience_ = first_patience, most_patience_{8};
  std::optional<Clock::time_point> began_;
  std::optional<Seconds> delay_;
};

}  // namespace fast::sites
