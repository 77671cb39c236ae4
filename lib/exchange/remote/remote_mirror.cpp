#include "exchange/remote/remote_mirror.hpp"

#include <fmt/format.h>
#include <sys/prctl.h>

#include <algorithm>
#include <exception>
#include <utility>

#include "core/leak_until_exit.hpp"
#include "exchange/remote/pull/remote_reads.hpp"
#include "exchange/remote/pull/snapshot_read.hpp"

namespace fast::exchange {
namespace {

constexpr auto busy_poll_for = std::chrono::microseconds(200);
constexpr auto short_pauses_for = std::chrono::milliseconds(500);
constexpr auto short_pause = std::chrono::microseconds(50);
constexpr auto long_pause = std::chrono::milliseconds(1);
constexpr unsigned long timer_slack_ns = 1000;
constexpr Seconds closing_limit{5}, failed_limit{0.5};

}  // namespace

RemoteMirror::RemoteMirror(RemoteEdges edges, RemoteTransports ways, RemoteLog log)
    : edges_(std::move(edges)),
      ways_(std::move(ways)),
      log_(std::move(log)),
      neighbors_(log_),
      failures_(edges_, ways_),
      watch_(edges_, ways_, neighbors_, failures_),
      tasks_(edges_.board),
      kept_(edges_, [this](int worker) { return is_remote(worker); }),
      thread_([this] { work(); }) {}

RemoteMirror::~RemoteMirror() {
  stop_ = true;
  thread_.join();
  ways_.window.reset();  // waits for the other ranks and serves their last reads meanwhile
}

/// Nothing catches an exception that leaves this function. An error does not end training: workers
/// that cannot be reached any more become suspects.
void RemoteMirror::work() {
  prctl(PR_SET_TIMERSLACK, timer_slack_ns);
  auto last_moved = Clock::now();
  // Before the first look at `stop_`: neighbors wait even for a worker that finishes immediately.
  attempt([&] { watch_.follow_neighbors(); });
  while (!stop_.load(std::memory_order_relaxed)) {
    attempt([&] {
      watch_.follow_neighbors();
      watch_.accept_unsolicited();
    });
    bool moved = failures_.advance();
    moved |= neighbors_.advance();
    report_pace();
    attempt([&] { moved |= kept_.advance(Clock::now()); });
    attempt(
        [&] { moved |= tasks_.advance([&](int worker) { return neighbors_.follows(worker); }); });
    if (moved) last_moved = Clock::now();
    pause(last_moved);
  }
  close();
}

/// Logs an error, but not the same one again and again.
template <class Part>
void RemoteMirror::attempt(const Part& part) {
  try {
    part();
  } catch (const std::exception& error) {
    if (std::exchange(last_error_, error.what()) != error.what()) {
      log_.warn(fmt::format("remote edges: {}", error.what()));
    }
  }
}

/// One number for all that this worker reads from other hosts.
void RemoteMirror::report_pace() const {
  const auto slowest =
      std::chrono::duration_cast<std::chrono::nanoseconds>(neighbors_.slowest_read());
  edges_.board->header(edges_.rank)
      .reading.slow_read_ns.store(static_cast<std::uint64_t>(slowest.count()),
                                  std::memory_order_relaxed);
}

/// True while this worker's own thread sleeps until something arrives from another host.
bool RemoteMirror::is_awaited() const {
  return !tasks_.is_empty() || neighbors_.any_of([&](int neighbor) {
    const auto& signal = edges_.board->header(neighbor).signal;
    return signal.waiters.load(std::memory_order_relaxed) != 0;
  });
}

/// Busy-polls only while the worker's own thread is blocked: otherwise that thread computes and
/// gets nearly all of the core. Sleeps until this worker changes its header or the pause is over.
void RemoteMirror::pause(Clock::time_point last_moved) {
  const auto still = Clock::now() - last_moved;
  const bool awaited = is_awaited();
  if (still < busy_poll_for && awaited) {
    std::this_thread::yield();
    return;
  }
  WorkerHeader& own = edges_.board->header(edges_.rank);
  const std::uint32_t seen = own.signal.count.load(std::memory_order_seq_cst);
  own.wait_for_signal(seen, still > short_pauses_for ? long_pause
                            : awaited                ? short_pause
                                                     : poll_period_beside_step);
}

/// Finishes what is under way or must still be sent. What takes too long is left to MPI. After a
/// failure the others need its news alone.
void RemoteMirror::close() {
  neighbors_.close();
  const bool fails = status_of(edges_.board->header(edges_.rank)) == WorkerStatus::failed;
  const Deadline deadline(fails ? failed_limit : closing_limit);
  bool closed = false;
  while (!closed && !deadline.expired()) {
    attempt([&] { watch_.accept_unsolicited(); });
    neighbors_.advance();
    closed = failures_.closed() && neighbors_.closed();
    attempt([&] { closed &= tasks_.released(); });
    std::this_thread::yield();
  }
  const bool is_clean = closed && !neighbors_.any_failed() && last_error_.empty();
  if (!is_clean) {
    neighbors_.leave_to_mpi();
    tasks_.leave_to_mpi();
  }
  if (!is_clean || !failures_.all_received()) leak_until_exit(*ways_.messages);
}

bool RemoteMirror::look(int worker, const Deadline& deadline) {
  return tasks_.run(std::make_shared<HeaderFetch>(*edges_.board, *ways_.window, worker), deadline);
}

Snapshot RemoteMirror::snapshot(int worker, std::span<std::byte> room, Piece& piece,
                                const Deadline& deadline) {
  const auto task =
      std::make_shared<SnapshotRead>(edges_, *ways_.window, worker, piece, room.size());
  if (!tasks_.run(task, deadline) || task->result() == Snapshot::none) return Snapshot::none;
  std::copy(task->bytes().begin(), task->bytes().end(), room.begin());
  piece.sequence = task->sequence();
  piece.round = task->round();
  return task->result();
}

bool RemoteMirror::read_result(int worker, std::size_t offset, std::span<std::byte> to,
                               const Deadline& deadline) {
  const auto task = std::make_shared<SnapshotRead>(edges_, *ways_.window, worker, Piece{offset, 0},
                                                   to.size(), SnapshotRead::Of::result);
  if (!tasks_.run(task, deadline) || task->bytes().size() != to.size()) return false;
  std::copy(task->bytes().begin(), task->bytes().end(), to.begin());
  return task->result() != Snapshot::none;
}

}  // namespace fast::exchange
