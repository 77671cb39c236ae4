#include "exchange/shared/slot_writer.hpp"

#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/mixing/kernels.hpp>
#include <utility>

namespace fast::exchange {

SlotWriter::SlotWriter(std::shared_ptr<const SlotBoard> board, int rank, EdgePlan plan,
                       PeerWaiter& waiter, bool waits_for_readers)
    : board_(std::move(board)),
      rank_(rank),
      plan_(std::move(plan)),
      waiter_(waiter),
      waits_for_readers_(waits_for_readers) {}

void SlotWriter::wait_for_readers(const Rounds& rounds) {
  for (std::int64_t round = std::max<std::int64_t>(rounds.first, 0); round <= rounds.last;
       ++round) {
    for (const int reader : plan_(round).destinations) {
      const auto& consumed = board_->header(reader).reading.consumed;
      waiter_.wait(
          reader, [&] { return has_consumed(consumed, round); }, "waiting for a reader", round);
    }
  }
}

MutablePayload SlotWriter::acquire() {
  const std::uint64_t next = sequence_ + 1;
  if (!acquired_) {
    if (waits_for_readers_) wait_for_readers(rounds_[next % slot_count]);
    begin_writing(board_->round(rank_, next));
    acquired_ = true;
  }
  return board_->payload(rank_, next);
}

void SlotWriter::publish(std::int64_t round, bool with_weights) {
  WorkerHeader& header = board_->header(rank_);
  if (std::exchange(acquired_, false)) {
    publish_acquired(round, with_weights);
  } else {
    require(
        sequence_ > 0, ErrorKind::internal,
        "publish: worker {} has published nothing yet, round {} needs a payload; call acquire() "
        "before",
        rank_, round);
    extend_publication(header.publication, sequence_, round);
  }
  rounds_[sequence_ % slot_count].last = round;
  header.note_progress();
  header.notify();
}

void SlotWriter::publish_acquired(std::int64_t round, bool with_weights) {
  ++sequence_;
  rounds_[sequence_ % slot_count].first = round;
  mixing::stream_fence();
  board_->has_weights(rank_, sequence_).store(with_weights ? 1 : 0, std::memory_order_relaxed);
  store_publication(board_->header(rank_).publication, sequence_, round, round);
}

Payload SlotWriter::published() const { return read_only(board_->payload(rank_, sequence_)); }

}  // namespace fast::exchange
