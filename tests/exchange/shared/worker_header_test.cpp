// Threads that sleep until another worker's header changes: none misses what it waits for.
#include <fast/core/deadline.hpp>

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include "exchange/shared/worker_header.hpp"
#include "support/catch.hpp"

using namespace fast;
using exchange::Change;
using exchange::WorkerHeader;

namespace {

constexpr auto longest_sleep = std::chrono::milliseconds(900);  // what a lost wake-up costs

/// A ring of workers. Each publishes a round, waits for both neighbors' publications, and says that
/// it has read them. Every third round it also waits until both have read its own.
class Ring {
 public:
  explicit Ring(std::size_t workers) : headers_(workers) {
    for (auto& header : headers_) header = std::make_unique<WorkerHeader>();
  }

  /// Whether all make the rounds before the deadline.
  bool run(std::int64_t rounds) {
    std::vector<std::jthread> threads;
    for (std::size_t w = 0; w < headers_.size(); ++w)
      threads.emplace_back([this, w, rounds] { work(w, rounds); });
    threads.clear();
    return !late_;
  }
  const WorkerHeader& header(std::size_t worker) const { return *headers_[worker]; }
  /// Sleeps that nobody ended.
  int slept_through() const { return slept_through_; }

 private:
  void work(std::size_t own, std::int64_t rounds) {
    const std::size_t all = headers_.size();
    WorkerHeader& header = *headers_[own];
    for (std::int64_t t = 1; t <= rounds; ++t) {
      header.publication.until[0].store(t, std::memory_order_release);
      header.notify(Change::other);
      for (const std::size_t step : {std::size_t{1}, all - 1}) {
        WorkerHeader& other = *headers_[(own + step) % all];
        await(other, other.publication.until[0], t, Change::other);
      }
      header.reading.consumed.store(t, std::memory_order_release);
      header.notify(Change::reading);
      for (const std::size_t step : {std::size_t{1}, all - 1}) {
        WorkerHeader& other = *headers_[(own + step) % all];
        if (t % 3 == 0) await(other, other.reading.consumed, t, Change::reading);
      }
    }
  }

  void await(WorkerHeader& other, const std::atomic<std::int64_t>& word, std::int64_t wanted,
             Change change) {
    for (;;) {
      const std::uint32_t seen = other.signal.count.load(std::memory_order_seq_cst);
      if (word.load(std::memory_order_acquire) >= wanted || late_) return;
      const auto began = Clock::now();
      if (began > end_) late_ = true;
      other.wait_for_signal(seen, longest_sleep, change);
      if (Clock::now() - began >= longest_sleep) ++slept_through_;
    }
  }

  std::vector<std::unique_ptr<WorkerHeader>> headers_;
  Clock::time_point end_ = Clock::now() + std::chrono::seconds(60);
  std::atomic<bool> late_ = false;
  std::atomic<int> slept_through_ = 0;
};

}  // namespace

TEST_CASE("workers that sleep until a neighbor publishes or reads miss no change") {
  for (const std::size_t workers : {2, 3, 5, 7}) {
    CAPTURE(workers);
    Ring ring(workers);
    CHECK(ring.run(3000));
    CHECK(ring.slept_through() <= 2);  // a busy machine may hold a worker for as long
    for (std::size_t w = 0; w < workers; ++w) CHECK(ring.header(w).signal.waiters == 0);
  }
}

TEST_CASE("a change wakes only those that wait for such a change") {
  WorkerHeader header{};
  std::atomic<bool> returned = false;
  const auto seen = header.signal.count.load();
  std::jthread reader([&] {
    header.wait_for_signal(seen, longest_sleep, Change::other);
    returned = true;
  });
  const Deadline deadline(Seconds(20));
  while (header.signal.awaited == 0 && !deadline.expired()) std::this_thread::yield();
  header.notify(Change::reading);
  CHECK(header.signal.awaited == static_cast<std::uint32_t>(Change::other));
  header.notify(Change::other);
  CHECK(header.signal.awaited == 0);
  reader.join();
  CHECK(returned);
}
