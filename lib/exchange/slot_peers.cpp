#include "exchange/slot_peers.hpp"

#include <fast/mixing/kernels.hpp>

#include "exchange/optimistic.hpp"

namespace fast::exchange {
namespace {
constexpr auto heartbeat_period = std::chrono::milliseconds(100);
constexpr auto recheck = std::chrono::milliseconds(10);
constexpr double slow_notice_s = 30;
constexpr int snapshot_attempts = 100;
constexpr Seconds remote_look{1};
constexpr Seconds remote_snapshot{600};  // while something comes
}  // namespace

SlotPeers::SlotPeers(std::shared_ptr<const SlotBoard> board, int rank,
                     std::shared_ptr<RemoteAccess> remote)
    : board_(std::move(board)),
      rank_(rank),
      remote_(std::move(remote)),
      heartbeat_([this] { beat(); }) {}

SlotPeers::~SlotPeers() {
  {
    const std::lock_guard lock(mutex_);
    stopped_ = true;
  }
  stopped_changed_.notify_all();
  heartbeat_.join();
}

void SlotPeers::beat() {
  auto& heartbeat = board_->header(rank_).life.heartbeat;
  std::unique_lock lock(mutex_);
  while (!stopped_) {
    heartbeat.fetch_add(1, std::memory_order_relaxed);
    stopped_changed_.wait_for(lock, heartbeat_period);
  }
}

PeerState SlotPeers::peer(int worker) const {
  if (is_remote(worker)) remote_->look(worker, Deadline(remote_look));
  const WorkerHeader& header = board_->header(worker);
  return {static_cast<WorkerStatus>(header.life.status.load(std::memory_order_acquire)),
          header.reading.progress.load(std::memory_order_acquire),
          header.publication.sequence.load(std::memory_order_acquire),
          header.life.heartbeat.load(std::memory_order_relaxed)};
}

bool SlotPeers::announce(WorkerStatus status) {
  bool first = false;
  if (status == WorkerStatus::failed) {
    std::uint32_t unclaimed = 0;
    first = board_->header(0).claim.failure_claimed.compare_exchange_strong(unclaimed, 1);
  }
  WorkerHeader& header = board_->header(rank_);
  header.life.status.store(static_cast<std::uint32_t>(status), std::memory_order_release);
  header.ring();
  return first;
}

Snapshot SlotPeers::snapshot(int worker, std::span<std::byte> room) const {
  if (is_remote(worker)) return remote_->snapshot(worker, room, Deadline(remote_snapshot));
  const auto& sequence = board_->header(worker).publication.sequence;
  for (int attempt = 0; attempt < snapshot_attempts; ++attempt) {
    const std::uint64_t newest = sequence.load(std::memory_order_acquire);
    if (newest == 0) return Snapshot::none;
    const auto& round = board_->round(worker, newest);
    const std::int64_t of_round = round.load(std::memory_order_acquire);
    const bool weights = board_->has_weights(worker, newest).load(std::memory_order_relaxed) != 0;
    const auto slot = board_->payload(worker, newest);
    const std::size_t bytes =
        weights ? board_->shape().weights_bytes : board_->shape().vector_bytes;
    const std::byte* from =
        read_optimistically(weights ? slot.weights : slot.vector(0), room.data(), bytes);
    if (from != room.data()) std::memcpy(room.data(), from, bytes);
    order_loads();
    if (of_round != being_written && round.load(std::memory_order_acquire) == of_round &&
        sequence.load(std::memory_order_acquire) <= newest + 1) {
      return weights ? Snapshot::weights : Snapshot::message;
    }
    std::this_thread::yield();
  }
  return Snapshot::none;
}

PeerWaiter::PeerWaiter(std::shared_ptr<const SlotBoard> board, int rank,
                       const ExchangeOptions& options)
    : board_(std::move(board)),
      rank_(rank),
      options_(options),
      watches_(static_cast<std::size_t>(board_->workers())) {}

void PeerWaiter::log(LogLevel level, const std::string& text) const {
  if (options_.log) options_.log(level, text);
}

bool PeerWaiter::is_suspect(int worker) {
  Watch& watch = watches_[static_cast<std::size_t>(worker)];
  const std::uint64_t heartbeat =
      board_->header(worker).life.heartbeat.load(std::memory_order_relaxed);
  if (heartbeat != watch.heartbeat) {
    watch.heartbeat = heartbeat;
    watch.moved = Clock::now();
    if (watch.suspect) {
      watch.suspect = false;
      log(LogLevel::info, fmt::format("worker {}: worker {} is back", rank_, worker));
    }
    return false;
  }
  if (watch.suspect) return true;
  const Seconds still = Clock::now() - watch.moved;
  if (still < options_.suspect_after) return false;
  watch.suspect = true;
  log(LogLevel::warning,
      fmt::format(
          "worker {}: worker {} has shown no sign of life for {:.1f} s; going on without it", rank_,
          worker, still.count()));
  return true;
}

PeerWaiter::Outcome PeerWaiter::glance(int worker, std::string_view operation, std::int64_t round) {
  const auto status =
      static_cast<WorkerStatus>(board_->header(worker).life.status.load(std::memory_order_acquire));
  if (status == WorkerStatus::finished) return Outcome::finished;
  if (status == WorkerStatus::failed) {
    fail(ErrorKind::peer_failed, "{}: worker {} stops in round {} because worker {} failed",
         operation, rank_, round, worker);
  }
  return is_suspect(worker) ? Outcome::suspect : Outcome::ready;
}

PeerWaiter::Outcome PeerWaiter::wait(int worker, const std::function<bool()>& ready,
                                     std::string_view operation, std::int64_t round) {
  if (ready()) return Outcome::ready;
  WorkerHeader& header = board_->header(worker);
  const Deadline waiting(options_.deadline);
  double notice_s = slow_notice_s;
  for (int round_trips = 0;; ++round_trips) {
    const std::uint32_t bell = header.bell.count.load(std::memory_order_seq_cst);
    const Outcome outcome = glance(worker, operation, round);
    if (ready()) return Outcome::ready;
    if (outcome != Outcome::ready) return outcome;
    require(!options_.stop.stop_requested(), ErrorKind::peer_failed, "{}: worker {} has stopped",
            operation, rank_);
    if (waiting.expired()) {
      fail(ErrorKind::deadline,
           "{}: worker {} waited {:.1f} s for worker {} in round {} (it has finished {}); look for "
           "what holds "
           "it, or allow more with a longer deadline",
           operation, rank_, waiting.elapsed_s(), worker, round,
           header.reading.progress.load(std::memory_order_relaxed));
    }
    if (waiting.elapsed_s() > notice_s) {
      notice_s += slow_notice_s;
      log(LogLevel::info,
          fmt::format("worker {}: {} waits for slow worker {} in round {}, {:.0f} s so far", rank_,
                      operation, worker, round, waiting.elapsed_s()));
    }
    if (round_trips < 2) {
      std::this_thread::yield();
      continue;
    }
    header.await_ring(bell, recheck);
  }
}

}  // namespace fast::exchange
