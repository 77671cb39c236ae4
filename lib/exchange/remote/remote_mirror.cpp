#include "exchange/remote/remote_mirror.hpp"

#include <sys/prctl.h>

#include <algorithm>
#include <cstring>
#include <fast/core/error.hpp>

#include "core/keep.hpp"
#include "exchange/remote/two_sided.hpp"
#include "exchange/shared/heart.hpp"

namespace fast::exchange {
namespace {

constexpr auto polls_hard_for = std::chrono::microseconds(200);
constexpr auto naps_for = std::chrono::milliseconds(500);
constexpr auto nap = std::chrono::microseconds(50);
constexpr auto sleep = std::chrono::milliseconds(1);
constexpr unsigned long timer_slack_ns = 1000;
constexpr int task_attempts = 100;
constexpr Seconds patience{5};
constexpr Seconds longest_silence{10};  ///< of one who shall be read: it has gone
constexpr auto look_period = std::chrono::milliseconds(50);  // at deadlines

}  // namespace

/// Something that this worker's own thread waits for. What comes of it shows in the mirror.
struct RemoteMirror::Task {
  Task(RemoteEdges& edges, const mpi::RemoteWindow& window, int worker)
      : puller(edges, window, worker) {}
  Puller puller;
  bool begun = false;
  bool copies = false;
  int attempts = 0;
  bool done = false, failed = false;
  std::vector<std::byte> room;  ///< filled by MPI, so that the caller may leave at its deadline
};

RemoteMirror::RemoteMirror(RemoteEdges edges, Ways ways, LogSink log)
    : edges_(std::move(edges)),
      ways_(std::move(ways)),
      log_(std::move(log)),
      neighbors_(edges_.rank, log_),
      thread_([this] { run(); }) {}

RemoteMirror::~RemoteMirror() {
  stop_ = true;
  thread_.join();
  ways_.window.reset();  // waits for the others and serves their last reads meanwhile
}

/// Nobody catches what leaves this function: what fails ends no training, the workers that it
/// reaches no more become suspects.
void RemoteMirror::run() {
  prctl(PR_SET_TIMERSLACK, timer_slack_ns);
  auto last_moved = Clock::now();
  attempt([&] { watch_neighbors(); });  // who leaves at once, too, is one that others wait for
  while (!stop_.load(std::memory_order_relaxed)) {
    attempt([&] {
      watch_neighbors();
      meet_strangers();
    });
    bool moved = neighbors_.advance();
    attempt([&] { moved |= run_tasks(); });
    if (moved) last_moved = Clock::now();
    rest(last_moved);
  }
  close();
}

/// Says what fails, but not over and over.
template <class Part>
void RemoteMirror::attempt(const Part& part) {
  try {
    part();
  } catch (const std::exception& error) {
    if (std::exchange(trouble_, error.what()) != error.what()) {
      warn(log_, edges_.rank, fmt::format("remote edges: {}", error.what()));
    }
  }
}

/// True while this worker's own thread sleeps until something comes from another host.
bool RemoteMirror::is_awaited() {
  {
    const std::lock_guard lock(mutex_);
    if (!tasks_.empty()) return true;
  }
  return neighbors_.any_of([&](int neighbor) {
    const auto& bell = edges_.board->header(neighbor).bell;
    return bell.waiters.load(std::memory_order_relaxed) != 0;
  });
}

/// Polls hard while the core is this thread's to use up: else the worker computes, and gets nearly
/// all of it. Sleeps until this worker does something or it is time to look whether others did.
void RemoteMirror::rest(Clock::time_point last_moved) {
  const auto still = Clock::now() - last_moved;
  const bool awaited = is_awaited();
  if (still < polls_hard_for && awaited) {
    std::this_thread::yield();
    return;
  }
  WorkerHeader& own = edges_.board->header(edges_.rank);
  const std::uint32_t rung = own.bell.count.load(std::memory_order_seq_cst);
  own.await_ring(rung, still > naps_for ? sleep : awaited ? nap : nap_beside_work);
}

/// Brings to its end what is under way or owed; what takes too long is left to MPI.
void RemoteMirror::close() {
  neighbors_.close();
  for (const auto& task : tasks_) task->puller.close();
  const Deadline deadline(patience);
  bool open = true;
  while (open && !deadline.expired()) {
    attempt([&] { meet_strangers(); });
    neighbors_.advance();
    open = !neighbors_.closed();
    attempt([&] {
      for (const auto& task : tasks_) open |= !task->puller.closed();
    });
    std::this_thread::yield();
  }
  if (!open && !neighbors_.any_lost() && trouble_.empty()) return;
  neighbors_.leave_to_mpi();
  for (auto& task : tasks_) keep_for_good(task);
}

void RemoteMirror::follow(int worker) {
  if (path(worker) == RemotePath::none || neighbors_.follows(worker)) return;
  if (path(worker) == RemotePath::two_sided) {
    neighbors_.add(std::make_unique<TwoSided>(edges_, *ways_.messages, worker));
  } else {
    neighbors_.add(std::make_unique<Puller>(edges_, *ways_.window, worker));
  }
}

/// Begins to follow the remote workers of this round and the next.
void RemoteMirror::watch_neighbors() {
  const std::int64_t now = edges_.consumed();
  if (now == watched_) return;
  watched_ = now;
  for (const std::int64_t round : {now, now + 1}) {
    const RoundEdges edges = edges_.plan(round);
    for (const int worker : edges.sources) follow(worker);
    for (const int worker : edges.destinations) follow(worker);
  }
}

/// Follows those, too, that have begun before this worker saw reason to.
void RemoteMirror::meet_strangers() {
  if (const auto stranger = ways_.messages->unasked()) follow(*stranger);
}

/// Advances what the worker's own thread asked for; true when something has moved. A worker that
/// does not answer holds up nobody else's task.
bool RemoteMirror::run_tasks() {
  std::vector<std::shared_ptr<Task>> under_way;
  {
    const std::lock_guard lock(mutex_);
    under_way.assign(tasks_.begin(), tasks_.end());
  }
  bool moved = false;
  for (const auto& task : under_way) moved |= run(task);
  return moved;
}

bool RemoteMirror::run(const std::shared_ptr<Task>& task) {
  Puller& puller = task->puller;
  const bool begins = !std::exchange(task->begun, true);
  if (begins && neighbors_.follows(puller.worker())) puller.leave_status();
  bool failed = false;
  try {
    const bool moved = puller.advance();
    if (!puller.idle()) return moved || begins;
    if (task->copies && !puller.stood() && ++task->attempts < task_attempts) return true;
  } catch (const std::exception&) {
    failed = true;
  }
  const std::lock_guard lock(mutex_);
  task->done = true;
  task->failed = failed;
  if (failed) keep_for_good(task);  // MPI may still write to it
  std::erase(tasks_, task);
  task_done_.notify_all();
  return true;
}

bool RemoteMirror::await(const std::shared_ptr<Task>& task, const Deadline& deadline) {
  std::unique_lock lock(mutex_);
  tasks_.push_back(task);
  const WorkerHeader& mirror = edges_.board->header(task->puller.worker());
  PeerState shown = state_of(mirror);
  Deadline silence(longest_silence);
  while (!task->done && !deadline.expired() && !silence.expired()) {
    task_done_.wait_for(lock, look_period, [&] { return task->done; });
    const PeerState now = state_of(mirror);
    if (std::exchange(shown, now) != now) silence = Deadline(longest_silence);
  }
  return task->done && !task->failed;
}

bool RemoteMirror::look(int worker, const Deadline& deadline) {
  const auto task = std::make_shared<Task>(edges_, *ways_.window, worker);
  task->puller.only_look();
  return await(task, deadline);
}

Snapshot RemoteMirror::snapshot(int worker, std::span<std::byte> room, const Deadline& deadline) {
  const auto task = std::make_shared<Task>(edges_, *ways_.window, worker);
  const PayloadShape& shape = edges_.board->shape();
  task->room.resize(std::max(shape.vector_bytes, shape.weights_bytes));
  task->copies = true;
  task->puller.copy_to(task->room.data());
  if (!await(task, deadline) || !task->puller.stood()) return Snapshot::none;
  std::memcpy(room.data(), task->room.data(), task->puller.copied_bytes());
  return task->puller.is_weights() ? Snapshot::weights : Snapshot::message;
}

}  // namespace fast::exchange
