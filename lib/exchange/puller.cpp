#include "exchange/puller.hpp"

#include <utility>

#include "mpi/impl.hpp"

namespace fast::exchange {
namespace {
constexpr std::size_t chunk_bytes = std::size_t{1} << 20;
constexpr std::size_t chunks_under_way = 4;
}  // namespace

bool Puller::advance() {
  moved_ = false;
  if (closing_) return false;
  switch (stage_) {
    case Stage::idle:
      look_at(before_, Stage::looking);
      break;
    case Stage::looking:
      if (!mpi::done(header_request_)) break;
      moved_ |= take_over(edges_.board->header(worker()), PeerCounters::of(before_.get()));
      if (choose()) {
        begin_copy();
      } else {
        take_over_status();
        stage_ = Stage::idle;
      }
      break;
    case Stage::copying:
      if (copy_some()) look_at(after_, Stage::checking);
      break;
    case Stage::checking:
      if (!mpi::done(header_request_)) break;
      moved_ |= take_over(edges_.board->header(worker()), PeerCounters::of(after_.get()));
      finish();
      stage_ = Stage::idle;
      break;
  }
  return moved_;
}

bool Puller::closed() {
  if (header_request_ != MPI_REQUEST_NULL) mpi::done(header_request_);
  std::erase_if(chunks_, [](MPI_Request& request) { return mpi::done(request); });
  return header_request_ == MPI_REQUEST_NULL && chunks_.empty();
}

void Puller::look_at(HeaderImage& image, Stage next) {
  header_request_ = window_.get(worker(), 0, image.bytes, sizeof(WorkerHeader));
  stage_ = next;
}

/// A worker is not said to have left before its last payload is here. The header's lines need not
/// be of one moment, so this look found nothing to want only of what was so when the last one
/// ended.
void Puller::take_over_status() {
  if (leaves_status_) return;
  WorkerHeader& mirror = edges_.board->header(worker());
  const std::uint32_t now = before_.get().life.status.load(std::memory_order_relaxed);
  const bool once = only_look_ || to_ != nullptr;
  const std::uint32_t status = once ? now : std::exchange(status_, now);
  const bool failed = status == static_cast<std::uint32_t>(WorkerStatus::failed);
  if ((!failed && owes()) || status == mirror.life.status.load(std::memory_order_relaxed)) return;
  mirror.life.status.store(status, std::memory_order_release);
  moved_ = true;
  mirror.ring();
}

/// True when a slot over there is for a round to come here, though too far ahead to be copied yet.
/// Of rounds that the other has finished and this worker has not, the plan may still change.
bool Puller::owes() const {
  if (only_look_ || to_ != nullptr || !edges_.exact()) return false;
  const std::int64_t consumed = edges_.consumed();
  if (consumed < before_.get().reading.progress.load(std::memory_order_relaxed)) return true;
  const auto& publication = before_.get().publication;
  for (std::uint64_t slot = 0; slot < slot_count; ++slot) {
    const std::int64_t first = publication.rounds[slot].load(std::memory_order_relaxed);
    const std::int64_t last = publication.until[slot].load(std::memory_order_relaxed);
    if (first == being_written) continue;
    const std::int64_t from = std::max({first, consumed, newest_round_ + 1});
    if (edges_.first_read(worker(), from, last)) return true;
  }
  return false;
}

bool Puller::choose_newest() {
  const auto& publication = before_.get().publication;
  sequence_ = publication.sequence.load(std::memory_order_relaxed);
  round_ = publication.until[sequence_ % slot_count].load(std::memory_order_relaxed);
  if (to_ == nullptr && sequence_ <= newest_copied_ && round_ <= newest_round_) return false;
  return publication.rounds[sequence_ % slot_count].load(std::memory_order_relaxed) !=
         being_written;
}

/// Picks the remote publication to copy, no further ahead than the mirror has room for; false when
/// there is none to want.
bool Puller::choose() {
  const auto& publication = before_.get().publication;
  const std::uint64_t newest = publication.sequence.load(std::memory_order_relaxed);
  if (newest == 0 || only_look_) return false;
  if (to_ != nullptr || !edges_.exact()) return choose_newest();
  const std::int64_t now = edges_.consumed();
  const auto needed = edges_.first_read(worker(), std::max(now, newest_round_ + 1), now + 1);
  if (!needed) return false;
  for (std::uint64_t age = 0; age < slot_count && age < newest; ++age) {
    const std::uint64_t slot = (newest - age) % slot_count;
    const std::int64_t first = publication.rounds[slot].load(std::memory_order_relaxed);
    const std::int64_t last = publication.until[slot].load(std::memory_order_relaxed);
    if (first == being_written || first > *needed || last < *needed) continue;
    sequence_ = newest - age;
    round_ = *needed;
    return true;
  }
  return false;
}

void Puller::begin_copy() {
  const PayloadShape& shape = edges_.board->shape();
  copy_offset_ = SlotBoard::slot_offset(shape, sequence_);
  copy_bytes_ = SlotBoard::message_bytes(shape);
  target_ = to_;
  if (to_ != nullptr) {
    const auto& has_weights = before_.get().publication.has_weights;
    weights_ = has_weights[sequence_ % slot_count].load(std::memory_order_relaxed) != 0;
    copy_offset_ += weights_ ? SlotBoard::weights_offset(shape) : SlotBoard::data_offset(shape);
    copy_bytes_ = weights_ ? shape.weights_bytes : shape.vector_bytes;
  } else {
    edges_.board->round(worker(), mirrored_ + 1).exchange(being_written);
    target_ = edges_.board->slot(worker(), mirrored_ + 1);
  }
  requested_ = 0;
  stage_ = Stage::copying;
  moved_ = true;
}

/// Keeps some chunks under way; true when all have come.
bool Puller::copy_some() {
  moved_ |= !chunks_.empty();
  std::erase_if(chunks_, [](MPI_Request& request) { return mpi::done(request); });
  while (chunks_.size() < chunks_under_way && requested_ < copy_bytes_ && edges_.throttle.open()) {
    const std::size_t bytes = std::min(chunk_bytes, copy_bytes_ - requested_);
    chunks_.push_back(
        window_.get(worker(), copy_offset_ + requested_, target_ + requested_, bytes));
    requested_ += bytes;
    edges_.throttle.spend(bytes);
  }
  return chunks_.empty() && requested_ == copy_bytes_;
}

/// Publishes in the mirror what stands.
void Puller::finish() {
  moved_ = true;
  const auto& publication = after_.get().publication;
  const std::uint64_t newest = publication.sequence.load(std::memory_order_relaxed);
  const std::int64_t first =
      publication.rounds[sequence_ % slot_count].load(std::memory_order_relaxed);
  stood_ = first != being_written && first <= round_ &&
           ((edges_.exact() && to_ == nullptr) || newest <= sequence_ + 1);
  if (!stood_ || to_ != nullptr) return;
  newest_copied_ = sequence_;
  newest_round_ = round_;
  WorkerHeader& mirror = edges_.board->header(worker());
  ++mirrored_;
  edges_.board->until(worker(), mirrored_).store(round_, std::memory_order_relaxed);
  edges_.board->round(worker(), mirrored_).store(round_, std::memory_order_release);
  mirror.publication.sequence.store(mirrored_, std::memory_order_release);
  mirror.ring();
}

}  // namespace fast::exchange
