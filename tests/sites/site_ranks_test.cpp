// The ranks of a site on one host: closed forms, and ranks that are lost in each state of a
// meeting.
#include <fast/core/error.hpp>

#include <atomic>
#include <latch>
#include <mutex>
#include <numeric>
#include <span>

#include "running_sites.hpp"
#include "sites/shared_ranks.hpp"
#include "support/catch.hpp"
#include "support/golden.hpp"

using namespace fast;
using namespace fast::sites;
using namespace fast::testing;

namespace {

/// A model of a rank: floats, doubles and a buffer.
struct RankModel {
  std::vector<float> a;
  std::vector<double> b;
  std::vector<float> buffer;
  explicit RankModel(double value) : a(1000, static_cast<float>(value)), b(70, value), buffer(3) {
    for (float& each : buffer) each = static_cast<float>(10 * value);
  }
  ParameterLayout layout() {
    TensorView statistics = view_of("c", std::span(buffer));
    statistics.role = Role::buffer;
    return ParameterLayout({view_of("a", std::span(a)), view_of("b", std::span(b)), statistics});
  }
  bool is(double weights, double statistics) const {
    const auto near = [](double x, double y) { return std::abs(x - y) < 1e-5; };
    for (const float each : a)
      if (!near(each, weights)) return false;
    for (const double each : b)
      if (!near(each, weights)) return false;
    for (const float each : buffer)
      if (!near(each, statistics)) return false;
    return true;
  }
};

/// Threads that meet. Those in `lost` have ended, as a launcher would report it.
class Host {
 public:
  explicit Host(int ranks) : ranks_(ranks) { memory_ = region(SharedRanks::part_bytes(model())); }

  SharedRanks of(int rank) {
    const auto ended = [this] {
      const std::lock_guard lock(mutex_);
      return lost_;
    };
    const auto failed = [this] {
      const std::lock_guard lock(mutex_);
      return failed_;
    };
    SharedRanks ranks({rank,
                       memory_,
                       {ended, failed},
                       [this](std::size_t bytes) {
                         const std::lock_guard lock(mutex_);
                         if (handovers_.parts.empty()) handovers_ = region(bytes);
                         return handovers_;
                       }},
                      model(), Seconds(20));
    return ranks;
  }
  void lose(int rank) {
    const std::lock_guard lock(mutex_);
    lost_.push_back(rank);
  }
  void fail(int rank) {
    const std::lock_guard lock(mutex_);
    failed_.push_back(rank);
  }
  /// Calls run(rank) on a thread for each. Throws the first error.
  void run(const std::function<void(int)>& run) const { run_sites(ranks_, run); }

 private:
  static ParameterLayout model() {
    static RankModel any(0);
    return any.layout();
  }
  Region region(std::size_t bytes) {
    Region made;
    made.part_bytes = bytes;
    for (int rank = 0; rank < ranks_; ++rank) {
      kept_.push_back(std::make_unique<AlignedBuffer>(bytes));
      made.parts.push_back(kept_.back()->data());
    }
    return made;
  }

  int ranks_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<AlignedBuffer>> kept_;
  Region memory_, handovers_;
  std::vector<int> lost_, failed_;
};

void add(const ParameterLayout& weights, double what) {
  for (const TensorView& view : weights.views()) {
    for (std::size_t e = 0; e < view.element_count(); ++e) {
      if (view.dtype == DType::f64)
        static_cast<double*>(view.data)[e] += what;
      else
        static_cast<float*>(view.data)[e] += static_cast<float>(what);
    }
  }
}

std::span<const std::byte> bytes_of(const int& value) {
  return std::as_bytes(std::span(&value, 1));
}

int left_in(std::span<const std::byte> handover) {
  int value = 0;
  std::memcpy(&value, handover.data(), sizeof value);
  return value;
}

}  // namespace

TEST_CASE("all ranks add the change of the mean, and take the buffers") {
  const int count = GENERATE(1, 2, 3, 5);
  Host host(count);
  const double mean = (count - 1) / 2.0;
  host.run([&](int rank) {
    RankModel model(rank);
    SharedRanks ranks = host.of(rank);
    ranks.rebind(model.layout());
    double buffer = 10 * mean;
    for (int meeting = 1; meeting <= 4; ++meeting) {
      const auto number =
          ranks.meet(Given::mean, Take::change, [&](const ParameterLayout& weights) {
            expect(rank == 0, "rank 0 leads");
            add(weights, 0.5);
            return 100 + meeting;
          });
      buffer += 0.5;
      expect(number == 100 + meeting, "all have the number");
      expect(model.is(rank + 0.5 * meeting, buffer), "each adds the change to its own");
    }
    ranks.meet(Given::own, Take::nothing, [](const ParameterLayout&) { return 0; });
    expect(model.is(rank + 2, buffer), "nothing is taken");
    ranks.meet(Given::own, Take::weights, [](const ParameterLayout&) { return 0; });
    expect(model.is(2, buffer), "the weights of rank 0 are taken");
  });
}

TEST_CASE("an error of the leading rank is that of all") {
  Host host(3);
  std::atomic<int> ended = 0;
  host.run([&](int rank) {
    RankModel model(rank);
    SharedRanks ranks = host.of(rank);
    ranks.rebind(model.layout());
    try {
      ranks.meet(Given::mean, Take::change, [](const ParameterLayout&) -> std::int64_t {
        throw Error(ErrorKind::numeric, "not finite");
      });
    } catch (const Error& error) {
      expect(error.kind() == ErrorKind::numeric && error.everywhere(), "of its kind, everywhere");
      expect(std::string(error.what()) == "not finite", "with its text");
      ++ended;
    }
    expect(model.is(rank, 10 * rank), "the model is as it was");
  });
  CHECK(ended == 3);
}

TEST_CASE("a rank that has failed ends the meeting of the others") {
  Host host(3);
  std::atomic<int> ended = 0;
  host.run([&](int rank) {
    if (rank == 1) return host.fail(1);
    RankModel model(rank);
    SharedRanks ranks = host.of(rank);
    ranks.rebind(model.layout());
    try {
      ranks.meet(Given::mean, Take::change, [](const ParameterLayout&) { return 0; });
    } catch (const Error& error) {
      ended += error.kind() == ErrorKind::peer_failed ? 1 : 0;
    }
  });
  CHECK(ended == 2);
}

TEST_CASE("ranks that are lost before a meeting, in it or after it leave it to the next") {
  enum class When { absent, come, acting, closed };
  const When when = GENERATE(When::absent, When::come, When::acting, When::closed);
  INFO("when " << static_cast<int>(when));
  const int count = 4;
  Host host(count);
  std::latch released(1), ended(when == When::come ? 1 : 0);
  std::vector<int> led(count, -1);
  host.run([&](int rank) {
    RankModel model(rank);
    SharedRanks ranks = host.of(rank);
    ranks.rebind(model.layout());
    ranks.open_handover(sizeof(int));
    ranks.meet(Given::own, Take::nothing, [&](const ParameterLayout&) {
      ranks.leave_handover(bytes_of(41));
      return 0;
    });
    expect(left_in(ranks.handover()) == 41, "the first handover");
    const auto second = [&] {
      return ranks.meet(Given::mean, Take::change, [&](const ParameterLayout& weights) {
        add(weights, 1);
        const int before = left_in(ranks.handover());
        expect(before == 41, "what has not ended leaves nothing");
        ranks.leave_handover(bytes_of(42 + rank));
        if (rank == 0 && when == When::acting) {
          host.lose(0);
          released.wait();
        }
        return rank;
      });
    };
    if (rank == 0 && when == When::absent) return host.lose(0);
    if (rank == 3 && when == When::come) host.lose(3);  // it has come, as far as others know
    try {
      led[static_cast<std::size_t>(rank)] = static_cast<int>(second());
    } catch (const Error& error) {
      expect(rank == 0 && when == When::acting, error.what());
      expect(std::string(error.what()).find("taken for lost") != std::string::npos, error.what());
      return;
    }
    const int leader = when == When::absent || when == When::acting ? 1 : 0;
    expect(led[static_cast<std::size_t>(rank)] == leader, "the lowest that lives leads");
    expect(left_in(ranks.handover()) == 42 + leader, "its handover counts");
    // Rank 0 has brought its weights before it was lost in its act.
    const double mean = when == When::absent ? 2 : 1.5;
    if (when != When::come) expect(model.is(rank + 1, 10 * mean + 1), "the change");
    if (rank == 0 && when == When::closed) return host.lose(0);
    if (rank == 3 && when == When::come) return ended.count_down();
    ended.wait();  // a lost rank reads nothing any more
    const auto third = ranks.meet(Given::mean, Take::change, [&](const ParameterLayout& weights) {
      add(weights, 1);
      return 10 + rank;
    });
    expect(third == (when == When::come ? 10 : 11), "the next meeting");
    expect(model.a[0] == static_cast<float>(rank + 2), "the next change");
    if (rank == 1) released.count_down();
  });
}
