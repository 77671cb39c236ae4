#include "exchange/remote/puller.hpp"

#include <cstring>
#include <fast/core/error.hpp>
#include <utility>

#include "mpi/impl.hpp"

namespace fast::exchange {
namespace {
constexpr std::size_t shortest_chunk = std::size_t{1} << 16, longest_chunk = std::size_t{1} << 20;
constexpr std::size_t chunks_under_way = 4;
constexpr auto quick = std::chrono::milliseconds(10), slow = std::chrono::milliseconds(80);
constexpr std::int64_t no_round = -1;
}  // namespace

Puller::Puller(RemoteEdges& edges, const mpi::RemoteWindow& window, int worker)
    : Replicator(worker),
      edges_(edges),
      window_(window),
      mirror_(*edges.board, worker),
      chunk_bytes_(shortest_chunk) {}

bool Puller::advance() {
  moved_ = false;
  if (closing_) return false;
  switch (stage_) {
    case Stage::idle:
      look_at(before_, Stage::looking);
      break;
    case Stage::looking:
      if (!has_come(before_)) break;
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
      if (!has_come(after_)) break;
      moved_ |= take_over(edges_.board->header(worker()), PeerCounters::of(after_.get()));
      finish();
      stage_ = Stage::idle;
      break;
  }
  return moved_;
}

bool Puller::closed() {
  if (header_request_ != MPI_REQUEST_NULL) mpi::done(header_request_);
  std::erase_if(chunks_, [](Chunk& chunk) { return mpi::done(chunk.request); });
  return header_request_ == MPI_REQUEST_NULL && chunks_.empty();
}

void Puller::look_at(HeaderImage& image, Stage next) {
  std::memset(image.bytes, 0, sizeof image.bytes);
  header_request_ = window_.get(worker(), 0, image.bytes, sizeof(WorkerHeader));
  stage_ = next;
}

/// MPICH may call a read complete that a broken connection has brought nothing of.
bool Puller::has_come(const HeaderImage& image) {
  if (!mpi::done(header_request_)) return false;
  const bool whole = image.get().constant.magic.load(std::memory_order_relaxed) == board_magic;
  require(whole, ErrorKind::mpi, "a read of worker {}'s header brought nothing", worker());
  return true;
}

/// A worker is not said to have left before its last payload is here. The header's lines need not
/// be of one moment, so this look found nothing to want only of what was so when the last one
/// ended.
void Puller::take_over_status() {
  if (leaves_status_) return;
  const WorkerHeader& mirror = edges_.board->header(worker());
  const std::uint32_t now = before_.get().life.status.load(std::memory_order_relaxed);
  const bool once = only_look_ || to_ != nullptr;
  const std::uint32_t status = once ? now : std::exchange(status_, now);
  const bool failed = status == static_cast<std::uint32_t>(WorkerStatus::failed);
  if ((!failed && owes()) || status == mirror.life.status.load(std::memory_order_relaxed)) return;
  moved_ = true;
  mirror_.set_status(static_cast<WorkerStatus>(status));
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

/// The publication for `round`, or else the newest for a later one: then the other has gone on
/// without this worker, as it overwrites nothing that a living reader needs. Sequence 0: neither.
Puller::Found Puller::look_for(const WorkerHeader::Publication& publication, std::int64_t round) {
  const std::uint64_t newest = publication.sequence.load(std::memory_order_relaxed);
  Found found;
  for (std::uint64_t age = 0; age < slot_count && age < newest; ++age) {
    const std::uint64_t slot = (newest - age) % slot_count;
    const std::int64_t first = publication.rounds[slot].load(std::memory_order_relaxed);
    const std::int64_t last = publication.until[slot].load(std::memory_order_relaxed);
    if (first == being_written) continue;
    if (first <= round && round <= last) return {newest - age, round, false};
    if (first > round && found.sequence == 0) found = {newest - age, last, true};
  }
  return found;
}

/// Picks the remote publication to copy, no further ahead than the mirror has room for or than the
/// other left this worker behind; false when there is none to want.
bool Puller::choose() {
  const auto& publication = before_.get().publication;
  if (publication.sequence.load(std::memory_order_relaxed) == 0 || only_look_) return false;
  if (to_ != nullptr || !edges_.exact()) return choose_newest();
  const std::int64_t now = edges_.consumed();
  const auto needed = edges_.first_read(worker(), std::max(now, newest_round_ + 1), now + 1);
  if (!needed) return false;
  const Found found = look_for(publication, *needed);
  sequence_ = found.sequence;
  round_ = found.round;
  passed_ = found.later ? *needed : no_round;
  return found.sequence > 0;
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
    const bool follows = edges_.exact() && passed_ == no_round;
    target_ = follows ? mirror_.begin(round_, round_) : mirror_.begin();
  }
  first_ = before_.get().publication.rounds[sequence_ % slot_count].load(std::memory_order_relaxed);
  requested_ = come_ = 0;
  stage_ = Stage::copying;
  moved_ = true;
}

/// Keeps some chunks under way; true when all have come.
bool Puller::copy_some() {
  moved_ |= !chunks_.empty();
  const std::size_t before = come_;
  while (!chunks_.empty() && mpi::done(chunks_.front().request)) {
    fit_chunks(Clock::now() - chunks_.front().asked);
    come_ += chunks_.front().bytes;
    chunks_.pop_front();
  }
  if (come_ > before) to_ == nullptr ? mirror_.arrived(come_) : mirror_.heard();
  while (chunks_.size() < chunks_under_way && requested_ < copy_bytes_ && edges_.throttle.open()) {
    const std::size_t bytes = std::min(chunk_bytes_, copy_bytes_ - requested_);
    std::byte* to = target_ + requested_;
    chunks_.push_back(
        {window_.get(worker(), copy_offset_ + requested_, to, bytes), bytes, Clock::now()});
    requested_ += bytes;
    edges_.throttle.spend(bytes);
  }
  return chunks_.empty() && requested_ == copy_bytes_;
}

/// Looks at headers wait behind the chunks that are under way the other way: on a slow link these
/// must be short, or the signs of life come late.
void Puller::fit_chunks(Clock::duration took) {
  if (took > slow) chunk_bytes_ = std::max(chunk_bytes_ / 2, shortest_chunk);
  if (took < quick) chunk_bytes_ = std::min(chunk_bytes_ * 2, longest_chunk);
}

/// Publishes in the mirror what stands.
void Puller::finish() {
  moved_ = true;
  const auto& publication = after_.get().publication;
  const std::uint64_t newest = publication.sequence.load(std::memory_order_relaxed);
  const std::int64_t first =
      publication.rounds[sequence_ % slot_count].load(std::memory_order_relaxed);
  const bool exact = edges_.exact() && to_ == nullptr;
  stood_ = first == first_ && newest < sequence_ + (exact ? slot_count : 2);
  if (!stood_ || to_ != nullptr) return;
  // The header's lines need not be of one moment: a round that one look has missed, the next shows.
  const bool passed = exact && passed_ != no_round;
  if (passed && !look_for(publication, passed_).later) return;
  newest_copied_ = sequence_;
  newest_round_ = round_;
  mirror_.publish(passed ? first : round_, round_);
}

}  // namespace fast::exchange
