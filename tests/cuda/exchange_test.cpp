// Exchanges of device payloads on the host: on a device that does its work only when it is waited
// for.
#include <algorithm>
#include <atomic>
#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <fast/cuda/device.hpp>
#include <fast/exchange/local.hpp>
#include <fast/mixing/kernels.hpp>
#include <mutex>

#include "cuda/device/region.hpp"
#include "cuda/rounds.hpp"
#include "exchange/peers.hpp"
#include "support/catch.hpp"
#include "support/host_accelerator.hpp"
#include "worker/reported.hpp"

using namespace fast;
using namespace fast::testing;

namespace {

/// Mapped ones have their messages on the host, too, or nothing but weights, or nothing.
enum class Way { host, staged, mapped, mapped_everywhere, mapped_alone };

/// A worker's end of an exchange, with what is done at it.
class Side {
 public:
  Side(const Group& group, Way way)
      : way_(way),
        work_(std::make_shared<HostDeviceWork>(std::make_shared<HostDevice>(1 << 20, true))) {
    const EdgePlan plan = ring_plan(group.rank(), group.size());
    Staging staging{.shape = rounds_shape, .work = work_};
    if (way != Way::host && way != Way::staged) staging.region = region(group, way != Way::mapped);
    staging.exact = staging.region.mapped = way == Way::mapped_alone;
    Link link = group.open(host_shape(rounds_shape, staging.region), plan, rounds_options());
    peers_ = staging.region.mapped ? mapped_peers(link.peers, staging) : link.peers;
    peers_->announce(WorkerStatus::running);
    exchange_ = way == Way::host ? std::move(link.exchange)
                                 : staged_exchange(std::move(link.exchange), std::move(staging));
  }
  Exchange& exchange() { return *exchange_; }
  HostDeviceWork& work() { return *work_; }
  Peers& peers() { return *peers_; }

  void fill(float* to, const std::vector<float>& values) {
    perform([=] { std::copy(values.begin(), values.end(), to); });
  }
  void average(float* next, const float* own, const std::vector<const float*>& values,
               const std::vector<float>& weights) {
    perform([=] {
      float* const none = nullptr;
      mixing::average(none, next, own, values, weights, rounds_count);
    });
  }
  std::vector<float> read(const float* from) {
    work_->settle();
    return {from, from + rounds_count};
  }

 private:
  static DeviceRegion region(const Group& group, bool everywhere) {
    auto shared = std::make_shared<Region>(
        group.allocate(staged_bytes({.shape = rounds_shape}), Deadline(Seconds(30))));
    std::vector<std::string> why_not(shared->parts.size());
    std::vector<std::shared_ptr<std::byte>> parts;
    for (std::byte* part : shared->parts) parts.emplace_back(shared, part);
    return {group.rank(), std::move(parts), std::move(why_not), shared->part_bytes,
            shared,       nullptr,          everywhere};
  }
  void perform(std::function<void()> job) {
    if (way_ == Way::host)
      job();
    else
      work_->enqueue(std::move(job));
  }

  Way way_;
  std::shared_ptr<HostDeviceWork> work_;
  std::shared_ptr<Peers> peers_;
  std::unique_ptr<Exchange> exchange_;
};

std::vector<std::vector<float>> run(int workers, Way way) {
  std::vector<std::vector<float>> found(static_cast<std::size_t>(workers));
  local::run(workers, [&](const Group& group) {
    Side side(group, way);
    found[static_cast<std::size_t>(group.rank())] = run_rounds(side, group.rank());
    side.peers().announce(WorkerStatus::finished);
  });
  return found;
}

}  // namespace

TEST_CASE("rounds over mapped and staged slots equal those of the host, bit for bit") {
  for (const int workers : {2, 3, 4}) {
    const auto expected = expected_rounds(workers);
    CHECK(expected[0] != starting_values(0));
    CHECK(run(workers, Way::host) == expected);
    CHECK(run(workers, Way::staged) == expected);
    CHECK(run(workers, Way::mapped) == expected);
    CHECK(run(workers, Way::mapped_everywhere) == expected);
    CHECK(run(workers, Way::mapped_alone) == expected);
  }
}

TEST_CASE("a slot is announced after the device has written it, read slots after it has read") {
  struct Seen {
    std::uint64_t announced = 1, then = 0;
    std::int64_t progress = 7, progress_then = 0;
    float read = 0;
  };
  for (const Way way : {Way::staged, Way::mapped, Way::mapped_everywhere}) {
    Seen seen[2];
    local::run(2, [&](const Group& group) {
      Side side(group, way);
      const int rank = group.rank();
      Seen& mine = seen[rank];
      float* slot = reinterpret_cast<float*>(side.exchange().acquire().data);
      side.work().enqueue([&] {
        mine.announced = side.peers().peer(rank).sequence;
        slot[0] = 5;
      });
      side.exchange().publish(0);
      side.exchange().flush();
      mine.then = side.peers().peer(rank).sequence;

      const Arrival arrival = side.exchange().fetch(0).front();
      side.work().enqueue([&] {
        mine.progress = side.peers().peer(rank).progress;
        mine.read = reinterpret_cast<const float*>(arrival.payload.data)[0];
      });
      side.exchange().complete(1);
      side.exchange().flush();
      mine.progress_then = side.peers().peer(rank).progress;
      side.peers().announce(WorkerStatus::finished);
    });
    for (const Seen& one : seen) {
      CHECK(one.announced == 0);
      CHECK(one.then == 1);
      CHECK(one.read == 5);
      CHECK(one.progress == 0);
      CHECK(one.progress_then == 1);
    }
  }
}

TEST_CASE("staging pins each slot once") {
  std::vector<const std::byte*> pinned[2];
  local::run(2, [&](const Group& group) {
    Side side(group, Way::staged);
    run_rounds(side, group.rank());
    side.exchange().flush();
    pinned[group.rank()] = side.work().pinned;
    side.peers().announce(WorkerStatus::finished);
  });
  for (auto& slots : pinned) {
    std::sort(slots.begin(), slots.end());
    CHECK(slots.size() == 6);  // three of its own and three of its neighbor
    CHECK(std::unique(slots.begin(), slots.end()) == slots.end());
  }
}

TEST_CASE("where messages stay on devices, mean models find the weights") {
  for (const Way way : {Way::mapped_everywhere, Way::mapped_alone}) {
    local::run(2, [&](const Group& group) {
      Side side(group, way);
      const auto last = run_rounds(side, group.rank());
      side.exchange().flush();
      std::vector<float> weights(rounds_count), part(100);
      const auto room = std::as_writable_bytes(std::span(weights));
      CHECK(side.peers().snapshot(group.rank(), room) == Snapshot::weights);
      CHECK(weights == last);
      fast::Piece piece{.offset = 400};
      const auto short_room = std::as_writable_bytes(std::span(part));
      CHECK(side.peers().snapshot(group.rank(), short_room, piece) == Snapshot::weights);
      CHECK(part == std::vector<float>(last.begin() + 100, last.begin() + 200));
      CHECK(piece.sequence == side.exchange().sequence());
      piece.sequence -= 4;  // has been written over
      CHECK(side.peers().snapshot(group.rank(), short_room, piece) == Snapshot::none);
      side.peers().announce(WorkerStatus::finished);
    });
  }
}

TEST_CASE("memory that others read is given up when all have left, else never") {
  std::atomic<int> freed = 0, kept = 0;
  local::run(3, [&](const Group& group) {
    const Deadline deadline(Seconds(30));
    const cuda::Departures all(group, deadline), some(group, deadline);
    if (all.leave(Seconds(30))) ++freed;
    if (group.rank() != 0 && !some.leave(Seconds(0.01))) ++kept;
    group.barrier(deadline, "a test's end");
  });
  CHECK(freed == 3);
  CHECK(kept == 2);
}

TEST_CASE("a worker that has died keeps nobody's memory") {
  std::atomic<bool> reports = false;
  std::atomic<int> freed = 0;
  local::run(3, [&](const Group& threads) {
    const Group group = reported(threads, 1, reports);
    const Deadline deadline(Seconds(30));
    const cuda::Departures departures(group, deadline);
    if (group.rank() == 1) {
      reports = true;
    } else if (departures.leave(Seconds(30))) {
      ++freed;
    }
    group.barrier(deadline, "a test's end");
  });
  CHECK(freed == 2);
}

TEST_CASE("without a GPU device memory is shared by nobody, and all workers say why") {
  const std::string why = cuda::inventory().why_none;
  if (why.empty()) {
    WARN("not checked: there is a GPU here");
    return;
  }
  std::mutex mutex;
  int refused = 0;
  local::run(3, [&](const Group& group) {
    const Deadline deadline(Seconds(30));
    try {
      cuda::share_memory(group, 4096, 0, deadline);
    } catch (const Error& error) {
      const std::scoped_lock lock(mutex);
      refused += error.what() == why && error.everywhere() ? 1 : 0;
    }
  });
  CHECK(refused == 3);
}
