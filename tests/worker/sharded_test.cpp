// Workers that exchange shards, on threads: each element against the product of its shard's
// matrices.
#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <fast/exchange/local.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/worker/worker.hpp>

#include <cmath>

#include "support/catch.hpp"
#include "topology/sharded_oracle.hpp"
#include "worker/device_rounds.hpp"
#include "worker/placed.hpp"

using namespace fast;
using namespace fast::testing;
using Catch::Matchers::Contains;

namespace {

double initial(int rank, std::size_t element) {
  return std::sin(1.0 + rank * 7.3 + static_cast<double>(element) * 0.37);
}

/// The model of each worker in tensors of these sizes, apart in memory, all rounds without steps.
struct ShardedRun {
  int hosts, per_host;
  std::vector<std::size_t> tensors;
  std::string rule = "awc";
  Place place = Place::host;
  int workers() const { return hosts * per_host; }
  std::size_t elements() const {
    std::size_t all = 0;
    for (const std::size_t size : tensors) all += size;
    return all;
  }

  /// By worker, after so many rounds.
  std::vector<std::vector<double>> after(int rounds) const {
    std::vector<std::vector<double>> found(static_cast<std::size_t>(workers()));
    local::run(workers(), [&](const Group& group) {
      std::vector<std::vector<double>> memory;
      std::vector<TensorView> views;
      WorkerOptions options = quick();
      options.algorithm = algorithm::by_name(rule);
      std::size_t e = 0;
      for (std::size_t t = 0; t < tensors.size(); ++t) {
        memory.emplace_back(tensors[t]);
        for (double& x : memory.back()) x = initial(group.rank(), e++);
      }
      if (place != Place::host)
        options.accelerator = std::make_shared<HostAccelerator>(
            Sharing{.on_host = place == Place::mapped, .on_all = true});
      for (std::size_t t = 0; t < tensors.size(); ++t) {
        views.push_back(view_of("x" + std::to_string(t), std::span(memory[t])));
        if (options.accelerator) views.back().device = options.accelerator->device();
      }
      Worker worker(group, schedule::sharded_one_peer(per_host), views, options);
      for (int t = 0; t < rounds; ++t) worker.step([] {}, {.learning_rate = 0.1});
      worker.await_finish();
      for (const auto& tensor : memory)
        found[static_cast<std::size_t>(group.rank())].insert(
            found[static_cast<std::size_t>(group.rank())].end(), tensor.begin(), tensor.end());
    });
    return found;
  }

  /// A shard has as many lines of 64 bytes as the others, or one less.
  int shard_of(std::size_t element) const {
    const std::size_t lines = (elements() + 7) / 8, shards = static_cast<std::size_t>(per_host);
    int shard = 0;
    while (element / 8 >= lines * (static_cast<std::size_t>(shard) + 1) / shards) ++shard;
    return shard;
  }

  void check(int rounds) const {
    INFO(hosts << " hosts of " << per_host << ", " << tensors.size() << " tensors, " << elements()
               << " elements, " << rounds << " rounds of " << rule);
    const auto found = after(rounds);
    const auto n = static_cast<std::size_t>(workers());
    std::vector<Matrix> products;
    for (int shard = 0; shard < per_host; ++shard) {
      products.push_back(sharded_matrix(hosts, per_host, 0, shard));
      for (int t = 1; t < rounds; ++t)
        products.back() = times(sharded_matrix(hosts, per_host, t, shard), products.back());
    }
    for (std::size_t e = 0; e < elements(); ++e) {
      const Matrix& w = products[static_cast<std::size_t>(shard_of(e))];
      for (std::size_t i = 0; i < n; ++i) {
        double expected = 0;
        for (std::size_t j = 0; j < n; ++j) expected += w[i][j] * initial(static_cast<int>(j), e);
        REQUIRE(std::abs(found[i][e] - expected) < 1e-12);
      }
    }
  }
};

std::vector<std::size_t> many_tensors() {
  std::vector<std::size_t> sizes;
  for (std::size_t k = 0; k < 40; ++k) sizes.push_back(1 + (k * 37) % 113);
  sizes.push_back(5003);
  return sizes;
}

std::string refusal(const std::function<void(WorkerOptions&)>& with) {
  std::string why = "not refused";
  local::run(4, [&](const Group& group) {
    std::vector<float> x(100);
    WorkerOptions options = quick();
    with(options);
    try {
      const Worker worker(group, schedule::sharded_one_peer(2), {view_of("x", std::span(x))},
                          options);
    } catch (const Error& error) {
      if (group.rank() == 0) why = error.what();
    }
  });
  return why;
}

}  // namespace

TEST_CASE("each shard follows its own matrices, round by round, on the host") {
  for (int rounds = 1; rounds <= 6; ++rounds) {
    ShardedRun{2, 2, {203}}.check(rounds);
    ShardedRun{2, 3, many_tensors()}.check(rounds);
  }
  ShardedRun{2, 2, many_tensors(), "atc"}.check(4);
}

TEST_CASE("after a cycle all elements have the mean, whatever the size of the model") {
  for (const std::size_t size : {1, 7, 8, 9, 63, 64, 1000, 4099}) {
    for (const auto& [hosts, per_host] : {std::pair{2, 2}, {2, 3}, {3, 2}, {4, 2}}) {
      const ShardedRun run{hosts, per_host, {size}};
      INFO(hosts << " hosts of " << per_host << ", " << size << " elements");
      const auto found = run.after(sharded_cycle(hosts, per_host));
      for (std::size_t e = 0; e < size; ++e) {
        double mean = 0;
        for (int j = 0; j < run.workers(); ++j) mean += initial(j, e) / run.workers();
        for (const auto& worker : found) REQUIRE(std::abs(worker[e] - mean) < 1e-12);
      }
    }
  }
}

TEST_CASE("each shard follows its own matrices on devices, whether or not they are mapped") {
  for (const Place place : {Place::staged, Place::mapped}) {
    INFO(name(place));
    for (const int rounds : {1, 2, 3, 5}) {
      ShardedRun{2, 2, {4099}, "awc", place}.check(rounds);
      ShardedRun{2, 3, many_tensors(), "awc", place}.check(rounds);
      ShardedRun{3, 2, {7}, "atc", place}.check(rounds);
    }
  }
}

TEMPLATE_TEST_CASE("workers on devices exchange shards as those on the host do, with buffers", "",
                   float, double, BFloat16, Mixed) {
  const auto rounds = [](const AcceleratorOf& accelerator_of) {
    std::vector<std::vector<double>> found(4);
    local::run(4, [&](const Group& group) {
      const auto accelerator = accelerator_of(group.rank());
      DeviceModel<TestType> model(group.rank(), accelerator);
      WorkerOptions options = quick();
      options.accelerator = accelerator;
      Worker worker(group, schedule::sharded_one_peer(2), model.views(), options);
      for (int round = 0; round < 7; ++round) {
        worker.begin_round();
        model.step(round, group.rank());
        worker.end_round({.learning_rate = 0.1});
      }
      worker.await_finish();
      found[static_cast<std::size_t>(group.rank())] = model.values();
    });
    return found;
  };
  const auto expected = rounds(on_host);
  for (const bool mapped : {false, true}) {
    const auto found = rounds([&](int) {
      return std::make_shared<HostAccelerator>(Sharing{.on_host = mapped, .on_all = true});
    });
    if (host_fuses()) CHECK(found == expected);
    const double near = sizeof(TestType) < sizeof(float) ? 0.05 : 1e-4;
    for (std::size_t w = 0; w < found.size(); ++w)
      for (std::size_t e = 0; e < found[w].size(); ++e)
        REQUIRE(found[w][e] == Approx(expected[w][e]).epsilon(near).margin(near));
  }
}

TEST_CASE("a worker counts a shard as sent between hosts, and all of a message within") {
  std::vector<WorkerStats> stats(4);
  local::run(4, [&](const Group& group) {
    std::vector<double> x(99);  // 13 lines of 64 bytes: 48 and 51 elements
    Worker worker(group, schedule::sharded_one_peer(2), {view_of("x", std::span(x))}, quick());
    for (int t = 0; t < 3; ++t) worker.step([] {}, {.learning_rate = 0.1});
    stats[static_cast<std::size_t>(group.rank())] = worker.stats();
    worker.await_finish();
  });
  for (std::size_t rank = 0; rank < 4; ++rank) {
    const double shard = rank % 2 == 0 ? 48 : 51;
    CHECK(stats[rank].bytes_sent == 8 * (99 + shard + 99));
    CHECK(stats[rank].messages_sent == 3);
  }
}

TEST_CASE("a device uploads the shard alone of what comes from another host") {
  constexpr std::size_t size = 8192;
  const auto host_bytes = [](const TopologyRule& rule) {
    std::vector<std::size_t> found(4);
    local::run(4, [&](const Group& group) {
      std::vector<double> x(size);
      WorkerOptions options = quick();
      const auto accelerator = std::make_shared<HostAccelerator>();
      options.accelerator = accelerator;
      TensorView view = view_of("x", std::span(x));
      view.device = accelerator->device();
      Worker worker(group, rule, {view}, options);
      for (int t = 0; t < 3; ++t) worker.step([] {}, {.learning_rate = 0.1});
      worker.await_finish();
      found[static_cast<std::size_t>(group.rank())] = accelerator->simulated().counts().host_bytes;
    });
    return found;
  };
  // The same messages, but that each worker reads all of one in the round between hosts.
  const auto whole = host_bytes(schedule::hierarchical_one_peer(2, 2));
  const auto shards = host_bytes(schedule::sharded_one_peer(2));
  const std::size_t table = 2 * sizeof(combine::ElementRun);  // of the runs, cut at shards
  for (std::size_t w = 0; w < 4; ++w)
    CHECK(whole[w] + table - shards[w] == size * sizeof(double) / 2);
}

TEST_CASE("on a device, only rounds whose shards differ have a launch for each") {
  constexpr int per_host = 2;
  std::vector<int> launches;
  local::run(4, [&](const Group& group) {
    std::vector<double> x(8192);
    WorkerOptions options = quick();
    const auto accelerator =
        std::make_shared<HostAccelerator>(Sharing{.on_host = true, .on_all = true});
    options.accelerator = accelerator;
    TensorView view = view_of("x", std::span(x));
    view.device = accelerator->device();
    Worker worker(group, schedule::sharded_one_peer(per_host), {view}, options);
    worker.step([] {}, {.learning_rate = 0.1});  // the first round also begins
    for (int t = 1; t <= 6; ++t) {
      const int before = accelerator->simulated().counts().launches;
      worker.step([] {}, {.learning_rate = 0.1});
      if (group.rank() == 0)
        launches.push_back(accelerator->simulated().counts().launches - before);
    }
    worker.await_finish();
  });
  // Rounds B, C, A, B, C, A.
  CHECK(launches[0] == launches[2] + per_host - 1);
  CHECK(launches[1] == launches[2] + per_host - 1);
  CHECK(launches[5] == launches[2]);
}

TEST_CASE("what does not go in shards is refused, with what to do") {
  CHECK_THAT(refusal([](WorkerOptions& options) { options.codec = codec::by_name("bf16"); }),
             Contains("codec bf16 on sharded_one_peer") && Contains("choose the codec identity"));
  CHECK_THAT(refusal([](WorkerOptions& options) { options.staleness = 1; }),
             Contains("a staleness above 0 on sharded_one_peer"));
  CHECK_THAT(refusal([](WorkerOptions& options) { options.robust = Robust::clip; }),
             Contains("robust averaging on sharded_one_peer"));
  for (const char* rule : {"gradient_tracking", "push_sum", "diloco", "sparta"}) {
    INFO(rule);
    CHECK_THAT(
        refusal([&](WorkerOptions& options) { options.algorithm = algorithm::by_name(rule); }),
        Contains(std::string("algorithm ") + rule + " on sharded_one_peer") &&
            Contains("choose hierarchical_one_peer"));
  }
}
