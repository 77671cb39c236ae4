#include "sites/fetch.hpp"

#include <algorithm>
#include <cstring>

namespace fast::sites {

void FetchWindow::begin(Clock::time_point now) {
  since_ = now;
  bytes_ = 0;
}

void FetchWindow::arrived(std::size_t bytes, Clock::time_point now) {
  bytes_ += bytes;
  const Seconds took = now - since_;
  if (took < span) return;
  const double rate = static_cast<double>(bytes_) / took.count();
  const double fit = rate * in_flight.count() / static_cast<double>(chunk_bytes);
  chunks_ = static_cast<std::size_t>(std::clamp(fit, 2.0, 128.0));
  begin(now);
}

Fetch::Fetch(std::uint64_t incarnation, const Publication& what, Clock::time_point now)
    : incarnation_(incarnation),
      what_(what),
      bytes_(std::make_shared<AlignedBuffer>(static_cast<std::size_t>(what.bytes))),
      chunks_(what.chunks(), State::missing),
      missing_(what.chunks()),
      last_(now) {}

bool Fetch::is_of(const Chunk& chunk) const {
  return chunk.incarnation == incarnation_ && chunk.content == what_.content &&
         chunk.number == what_.number;
}

void Fetch::give_up_asked(Clock::time_point now) {
  std::ranges::replace(chunks_, State::asked, State::missing);
  asked_ = 0;
  cursor_ = 0;
  last_ = now;
  patience_ = std::min(2 * patience_, most_patience);
}

std::optional<Fetch::Run> Fetch::next(std::size_t most, Clock::time_point now) {
  if (asked_ > 0 && now - last_ > patience_) give_up_asked(now);
  while (cursor_ < chunks_.size() && chunks_[cursor_] != State::missing) ++cursor_;
  if (cursor_ == chunks_.size() || asked_ >= most) return std::nullopt;
  if (asked_ == 0) last_ = now;
  Run run{cursor_, 0};
  while (cursor_ < chunks_.size() && chunks_[cursor_] == State::missing && asked_ < most &&
         run.count < most_asked) {
    chunks_[cursor_++] = State::asked;
    ++asked_;
    ++run.count;
  }
  return run;
}

bool Fetch::take(const Chunk& chunk, Clock::time_point now) {
  if (chunk.index >= chunks_.size() || chunks_[chunk.index] == State::there) return false;
  if (chunk.bytes.size() != what_.chunk_size(chunk.index)) return false;
  if (sha256_of(chunk.bytes) != chunk.sha256) return false;
  std::memcpy(bytes_->data() + chunk.index * chunk_bytes, chunk.bytes.data(), chunk.bytes.size());
  if (chunks_[chunk.index] == State::asked) --asked_;
  chunks_[chunk.index] = State::there;
  --missing_;
  last_ = now;
  patience_ = first_patience;
  return true;
}

bool Fetch::is_as_announced() const {
  return sha256_of({bytes_->data(), static_cast<std::size_t>(what_.bytes)}) == what_.sha256;
}

}  // namespace fast::sites
