#include "exchange/remote_mirror.hpp"

#include <algorithm>
#include <cstring>
#include <fast/core/error.hpp>

namespace fast::exchange {
namespace {

constexpr std::size_t chunk_bytes = std::size_t{1} << 20;
constexpr std::size_t chunks_under_way = 4;
constexpr auto idle_sleep = std::chrono::microseconds(200);
constexpr auto busy_for = std::chrono::milliseconds(2);
constexpr int errand_attempts = 100;
constexpr Seconds patience{5};

}  // namespace

/// The header as plain numbers: what MPI_Rget brings.
struct alignas(WorkerHeader) RemoteMirror::HeaderImage {
  std::byte bytes[sizeof(WorkerHeader)];
  const WorkerHeader& get() const { return *reinterpret_cast<const WorkerHeader*>(bytes); }
};

/// The way of one worker's publications here.
struct RemoteMirror::Pull {
  enum class Stage { idle, looking, copying, checking } stage = Stage::idle;
  int worker = 0;
  std::byte* to = nullptr;  ///< an errand's own memory, or null for the mirror
  bool is_errand = false;
  bool only_look = false;       ///< an errand that wants no payload
  bool weights = false;         ///< an errand: these are copied, not vector 0
  std::byte* target = nullptr;  ///< where the copy goes
  std::size_t copy_offset = 0;  ///< in the remote slot
  std::size_t copy_bytes = 0;
  HeaderImage before, after;
  MPI_Request header_request = MPI_REQUEST_NULL;
  std::vector<MPI_Request> chunks;
  std::size_t requested = 0;   ///< bytes of the copy asked for
  std::uint64_t sequence = 0;  ///< remote publication being copied
  std::int64_t round = 0;      ///< its round
  std::uint64_t newest_copied = 0;
  std::int64_t newest_round = std::numeric_limits<std::int64_t>::min();
  std::uint64_t mirrored = 0;  ///< publications made in the mirror
  std::uint32_t status = 0;    ///< as the look before this one saw it
  bool stood = false;          ///< outcome of the last copy
  bool moved = false;          ///< something happened since last asked
};

/// Something that this worker's own thread waits for.
struct RemoteMirror::Errand {
  Errand() { pull.is_errand = true; }
  Pull pull;
  int attempts = 0;
  bool done = false;
  std::vector<std::byte> room;  ///< filled by MPI, so that the caller may leave at its deadline
};

RemoteMirror::RemoteMirror(std::shared_ptr<const SlotBoard> board,
                           std::unique_ptr<mpi::RemoteWindow> window, int rank,
                           std::vector<bool> is_remote, EdgePlan plan, std::int64_t staleness)
    : board_(std::move(board)),
      window_(std::move(window)),
      rank_(rank),
      is_remote_(std::move(is_remote)),
      plan_(std::move(plan)),
      staleness_(staleness),
      thread_([this] { run(); }) {}

RemoteMirror::~RemoteMirror() {
  stop_ = true;
  thread_.join();
  if (!drain()) {  // MPI may still write to these
    for (auto& pull : pulls_) pull.release();
    for (auto& errand : errands_) new std::shared_ptr<Errand>(errand);
  }
  window_.reset();  // waits for the others and serves their last reads meanwhile
}

/// Completes what is under way; false when it took too long.
bool RemoteMirror::drain() {
  const Deadline deadline(patience);
  const auto busy = [](Pull& pull) {
    if (pull.header_request != MPI_REQUEST_NULL) mpi::RemoteWindow::done(pull.header_request);
    std::erase_if(pull.chunks,
                  [](MPI_Request& request) { return mpi::RemoteWindow::done(request); });
    return pull.header_request != MPI_REQUEST_NULL || !pull.chunks.empty();
  };
  for (;;) {
    bool any = false;
    for (const auto& pull : pulls_) any |= busy(*pull);
    for (const auto& errand : errands_) any |= busy(errand->pull);
    if (!any) return true;
    if (deadline.expired()) return false;
    std::this_thread::yield();
  }
}

void RemoteMirror::run() {
  auto last_moved = Clock::now();
  while (!stop_.load(std::memory_order_relaxed)) {
    watch_neighbors();
    bool moved = false;
    for (const auto& pull : pulls_) {
      advance(*pull);
      moved |= std::exchange(pull->moved, false);
    }
    moved |= run_errands();
    const auto now = Clock::now();
    if (moved) last_moved = now;
    if (now - last_moved < busy_for) {
      std::this_thread::yield();
    } else {
      window_->serve();
      std::this_thread::sleep_for(idle_sleep);
    }
  }
}

std::int64_t RemoteMirror::consumed() const {
  return board_->header(rank_).reading.consumed.load(std::memory_order_acquire);
}

bool RemoteMirror::follows(int worker) const {
  return std::any_of(pulls_.begin(), pulls_.end(),
                     [&](const auto& pull) { return pull->worker == worker; });
}

/// Begins to follow the remote workers of this round and the next.
void RemoteMirror::watch_neighbors() {
  const std::int64_t now = consumed();
  if (now == watched_) return;
  watched_ = now;
  for (const std::int64_t round : {now, now + 1}) {
    const RoundEdges edges = plan_(round);
    for (const auto* side : {&edges.sources, &edges.destinations}) {
      for (const int worker : *side) {
        if (follows(worker) || !is_remote(worker)) continue;
        pulls_.push_back(std::make_unique<Pull>());
        pulls_.back()->worker = worker;
      }
    }
  }
}

void RemoteMirror::advance(Pull& pull) {
  switch (pull.stage) {
    case Pull::Stage::idle:
      pull.header_request = window_->get(pull.worker, 0, pull.before.bytes, sizeof(WorkerHeader));
      pull.stage = Pull::Stage::looking;
      break;
    case Pull::Stage::looking:
      if (!mpi::RemoteWindow::done(pull.header_request)) break;
      take_over(pull, pull.before);
      if (choose(pull)) {
        begin_copy(pull);
      } else {
        take_over_status(pull);
        pull.stage = Pull::Stage::idle;
      }
      break;
    case Pull::Stage::copying:
      if (!copy_some(pull)) break;
      pull.header_request = window_->get(pull.worker, 0, pull.after.bytes, sizeof(WorkerHeader));
      pull.stage = Pull::Stage::checking;
      break;
    case Pull::Stage::checking:
      if (!mpi::RemoteWindow::done(pull.header_request)) break;
      take_over(pull, pull.after);
      finish(pull);
      pull.stage = Pull::Stage::idle;
      break;
  }
}

namespace {

/// True when that changed anything.
template <class T>
bool copy(std::atomic<T>& to, const std::atomic<T>& from) {
  const T value = from.load(std::memory_order_relaxed);
  if (to.load(std::memory_order_relaxed) == value) return false;
  to.store(value, std::memory_order_release);
  return true;
}

}  // namespace

/// What a remote worker tells besides payloads, into its mirrored header.
void RemoteMirror::take_over(Pull& pull, const HeaderImage& image) {
  const WorkerHeader& remote = image.get();
  WorkerHeader& mirror = board_->header(pull.worker);
  copy(mirror.life.heartbeat, remote.life.heartbeat);
  const bool consumed_more = copy(mirror.reading.consumed, remote.reading.consumed);
  const bool progressed = copy(mirror.reading.progress, remote.reading.progress);
  if (!consumed_more && !progressed) return;
  pull.moved = true;
  mirror.ring();
}

/// A worker is not said to have left before its last payload is here. The header's lines need not
/// be of one moment, so this look found nothing to want only of what was so when the last one
/// ended.
void RemoteMirror::take_over_status(Pull& pull) {
  WorkerHeader& mirror = board_->header(pull.worker);
  const std::uint32_t now = pull.before.get().life.status.load(std::memory_order_relaxed);
  if (pull.is_errand && follows(pull.worker)) return;
  const std::uint32_t status = pull.is_errand ? now : std::exchange(pull.status, now);
  const bool failed = status == static_cast<std::uint32_t>(WorkerStatus::failed);
  if ((!failed && owes(pull)) || status == mirror.life.status.load(std::memory_order_relaxed))
    return;
  mirror.life.status.store(status, std::memory_order_release);
  pull.moved = true;
  mirror.ring();
}

/// The first round from `after` on in which `worker` is read, no further ahead than the mirror has
/// room for.
std::optional<std::int64_t> RemoteMirror::next_needed(int worker, std::int64_t after) const {
  const std::int64_t now = consumed();
  return first_read(worker, std::max(now, after), now + 1);
}

/// The first round of those in which `worker` is read here.
std::optional<std::int64_t> RemoteMirror::first_read(int worker, std::int64_t from,
                                                     std::int64_t to) const {
  for (std::int64_t round = from; round <= to; ++round) {
    const auto sources = plan_(round).sources;
    if (std::find(sources.begin(), sources.end(), worker) != sources.end()) return round;
  }
  return std::nullopt;
}

/// True when a slot over there is for a round to come here, though too far ahead to be copied yet.
/// Of rounds that the other has finished and this worker has not, the plan may still change.
bool RemoteMirror::owes(const Pull& pull) const {
  if (pull.is_errand || staleness_ != 0) return false;
  if (consumed() < pull.before.get().reading.progress.load(std::memory_order_relaxed)) return true;
  const auto& publication = pull.before.get().publication;
  for (std::uint64_t slot = 0; slot < slot_count; ++slot) {
    const std::int64_t first = publication.rounds[slot].load(std::memory_order_relaxed);
    const std::int64_t last = publication.until[slot].load(std::memory_order_relaxed);
    if (first == being_written) continue;
    const std::int64_t from = std::max({first, consumed(), pull.newest_round + 1});
    if (first_read(pull.worker, from, last)) return true;
  }
  return false;
}

/// Picks the remote publication to copy; false when there is none to want.
bool RemoteMirror::choose(Pull& pull) const {
  const auto& publication = pull.before.get().publication;
  const std::uint64_t newest = publication.sequence.load(std::memory_order_relaxed);
  if (newest == 0 || pull.only_look) return false;
  const auto round_of = [&](std::uint64_t sequence) {
    return publication.rounds[sequence % slot_count].load(std::memory_order_relaxed);
  };
  const auto last_of = [&](std::uint64_t sequence) {
    return publication.until[sequence % slot_count].load(std::memory_order_relaxed);
  };
  if (pull.to != nullptr || staleness_ != 0) {
    pull.sequence = newest;
    pull.round = last_of(newest);
    if (pull.to == nullptr && newest <= pull.newest_copied && pull.round <= pull.newest_round) {
      return false;
    }
    return round_of(newest) != being_written;
  }
  const auto needed = next_needed(pull.worker, pull.newest_round + 1);
  if (!needed) return false;
  for (std::uint64_t age = 0; age < slot_count && age < newest; ++age) {
    const std::int64_t first = round_of(newest - age);
    if (first == being_written || first > *needed || last_of(newest - age) < *needed) continue;
    pull.sequence = newest - age;
    pull.round = *needed;
    return true;
  }
  return false;
}

void RemoteMirror::begin_copy(Pull& pull) {
  const PayloadShape& shape = board_->shape();
  pull.copy_offset = SlotBoard::slot_offset(shape, pull.sequence);
  pull.copy_bytes = SlotBoard::message_bytes(shape);
  pull.target = pull.to;
  if (pull.to != nullptr) {
    const auto& has_weights = pull.before.get().publication.has_weights;
    pull.weights = has_weights[pull.sequence % slot_count].load(std::memory_order_relaxed) != 0;
    pull.copy_offset +=
        pull.weights ? SlotBoard::weights_offset(shape) : SlotBoard::data_offset(shape);
    pull.copy_bytes = pull.weights ? shape.weights_bytes : shape.vector_bytes;
  } else {
    board_->round(pull.worker, pull.mirrored + 1).exchange(being_written);
    pull.target = board_->slot(pull.worker, pull.mirrored + 1);
  }
  pull.requested = 0;
  pull.stage = Pull::Stage::copying;
  pull.moved = true;
}

/// Keeps some chunks under way; true when all have come.
bool RemoteMirror::copy_some(Pull& pull) {
  const std::size_t before = pull.chunks.size();
  std::erase_if(pull.chunks, [](MPI_Request& request) { return mpi::RemoteWindow::done(request); });
  while (pull.chunks.size() < chunks_under_way && pull.requested < pull.copy_bytes) {
    const std::size_t bytes = std::min(chunk_bytes, pull.copy_bytes - pull.requested);
    pull.chunks.push_back(window_->get(pull.worker, pull.copy_offset + pull.requested,
                                       pull.target + pull.requested, bytes));
    pull.requested += bytes;
  }
  pull.moved |= before > 0;
  return pull.chunks.empty();
}

/// Publishes in the mirror what stands.
void RemoteMirror::finish(Pull& pull) {
  pull.moved = true;
  const auto& publication = pull.after.get().publication;
  const std::uint64_t newest = publication.sequence.load(std::memory_order_relaxed);
  const std::int64_t first =
      publication.rounds[pull.sequence % slot_count].load(std::memory_order_relaxed);
  pull.stood = first != being_written && first <= pull.round &&
               ((staleness_ == 0 && pull.to == nullptr) || newest <= pull.sequence + 1);
  if (!pull.stood || pull.to != nullptr) return;
  pull.newest_copied = pull.sequence;
  pull.newest_round = pull.round;
  WorkerHeader& mirror = board_->header(pull.worker);
  ++pull.mirrored;
  board_->until(pull.worker, pull.mirrored).store(pull.round, std::memory_order_relaxed);
  board_->round(pull.worker, pull.mirrored).store(pull.round, std::memory_order_release);
  mirror.publication.sequence.store(pull.mirrored, std::memory_order_release);
  mirror.ring();
}

/// Advances what the worker's own thread asked for; true when something was under way.
bool RemoteMirror::run_errands() {
  std::shared_ptr<Errand> errand;
  {
    const std::lock_guard lock(mutex_);
    if (errands_.empty()) return false;
    errand = errands_.front();
  }
  Pull& pull = errand->pull;
  const bool was_looking = pull.stage == Pull::Stage::looking;
  const bool was_checking = pull.stage == Pull::Stage::checking;
  advance(pull);
  if (pull.stage != Pull::Stage::idle || (!was_looking && !was_checking)) return true;
  if (pull.to != nullptr && !pull.stood && ++errand->attempts < errand_attempts) return true;
  const std::lock_guard lock(mutex_);
  errand->done = true;
  errands_.pop_front();
  errand_done_.notify_all();
  return true;
}

bool RemoteMirror::await(const std::shared_ptr<Errand>& errand, const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  errands_.push_back(errand);
  const auto limit = std::chrono::duration<double>(std::max(0.0, deadline.remaining_s()));
  return errand_done_.wait_for(lock, limit, [&] { return errand->done; });
}

bool RemoteMirror::look(int worker, const Deadline& deadline) {
  const auto errand = std::make_shared<Errand>();
  errand->pull.worker = worker;
  errand->pull.only_look = true;
  return await(errand, deadline);
}

Snapshot RemoteMirror::snapshot(int worker, std::span<std::byte> room, const Deadline& deadline) {
  const auto errand = std::make_shared<Errand>();
  errand->room.resize(std::max(board_->shape().vector_bytes, board_->shape().weights_bytes));
  errand->pull.worker = worker;
  errand->pull.to = errand->room.data();
  if (!await(errand, deadline) || !errand->pull.stood) return Snapshot::none;
  std::memcpy(room.data(), errand->room.data(), errand->pull.copy_bytes);
  return errand->pull.weights ? Snapshot::weights : Snapshot::message;
}

}  // namespace fast::exchange
