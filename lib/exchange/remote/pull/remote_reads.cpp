#include "exchange/remote/pull/remote_reads.hpp"

#include <cstring>
#include <fast/core/error.hpp>

namespace fast::exchange {

void HeaderRead::begin() {
  std::memset(bytes_, 0, sizeof bytes_);
  request_ = window_.get(worker_, 0, bytes_, sizeof bytes_);
}

/// MPICH may report a read as complete that a broken connection has not carried out.
bool HeaderRead::test() {
  if (!request_.test()) return false;
  const bool is_whole = header().constant.magic.load(std::memory_order_relaxed) == board_magic;
  require(is_whole, ErrorKind::mpi, "MPI_Rget: the header of worker {} did not arrive", worker_);
  return true;
}

namespace {

constexpr std::size_t chunks_at_once = 4;
constexpr auto quick = std::chrono::milliseconds(10), slow = std::chrono::milliseconds(80);

}  // namespace

void ChunkedRead::begin(std::size_t offset, std::byte* to, const MessagePart& part) {
  offset_ = offset;
  to_ = to;
  part_ = part;
  requested_ = arrived_ = 0;
}

void ChunkedRead::advance() {
  take_arrived();
  start_next();
}

void ChunkedRead::take_arrived() {
  while (!chunks_.empty() && chunks_.front().request.test()) {
    adapt_length(Clock::now() - chunks_.front().started);
    arrived_ = chunks_.front().end;
    chunks_.pop_front();
  }
}

void ChunkedRead::start_next() {
  while (chunks_.size() < chunks_at_once && throttle_.open()) {
    const PayloadPart run = part_.run(requested_, chunk_bytes_);
    if (run.size_bytes() == 0) return;
    auto request = window_.get(worker_, offset_ + run.begin, to_ + run.begin, run.size_bytes());
    chunks_.push_back({std::move(request), run.end, Clock::now()});
    requested_ = run.end;
    throttle_.spend(run.size_bytes());
  }
}

void ChunkedRead::adapt_length(Clock::duration took) {
  if (took > slow) chunk_bytes_ = std::max(chunk_bytes_ / 2, shortest_chunk);
  if (took < quick) chunk_bytes_ = std::min(chunk_bytes_ * 2, longest_chunk);
}

bool ChunkedRead::abandon() {
  part_ = {0, {0, 0}};
  std::erase_if(chunks_, [](Chunk& chunk) { return chunk.request.test(); });
  return chunks_.empty();
}

bool HeaderFetch::advance(bool is_followed) {
  if (state_ == State::idle) {
    header_.begin();
    state_ = State::looking;
    return true;
  }
  if (state_ == State::ended || !header_.test()) return false;
  mirror_.merge(header_.header());
  mirror_.set_reduced(reduced_of(header_.header()));
  mirror_.set_seen_status(status_of(header_.header()));
  if (!is_followed) mirror_.set_status(status_of(header_.header()));
  state_ = State::ended;
  return true;
}

}  // namespace fast::exchange
