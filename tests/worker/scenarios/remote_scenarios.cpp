#include "worker/scenarios/remote_scenarios.hpp"

#include <algorithm>
#include <fast/core/random.hpp>
#include <fast/exchange/local.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/worker.hpp>

#include "support/golden.hpp"
#include "worker/quick.hpp"
#include "worker/scenarios/whole_blocks.hpp"

namespace fast::testing {
namespace {

constexpr RemotePathChoice every_path[] = {RemotePathChoice::measured, RemotePathChoice::pull,
                                           RemotePathChoice::two_sided};

/// On one host all paths are the same: one is enough there.
std::span<const RemotePathChoice> paths_that_differ(const Group& group) {
  return std::span(every_path).first(several_hosts(group) ? std::size(every_path) : 1);
}

WorkerOptions by(RemotePathChoice path) {
  WorkerOptions options = quick();
  options.remote_path = path;
  return options;
}

std::vector<double> random_start(const Group& group, std::size_t count) {
  Rng rng(11 + static_cast<std::uint64_t>(group.rank()));
  std::vector<double> x(count);
  for (double& value : x) value = rng.uniform(-1, 1);
  return x;
}

/// In a frame's message, and in two and three parts.
constexpr std::size_t counts[] = {1, 5000, 200'003, 300'001};

}  // namespace

namespace {

std::vector<double> after_some_rounds(const Group& group, const TopologyRule& rule,
                                      std::size_t count, RemotePathChoice path) {
  auto x = random_start(group, count);
  Worker worker(group, rule, {view_of("x", std::span(x))}, by(path));
  for (int t = 0; t < 12; ++t) {
    worker.step([&] {
      for (double& value : x) value -= 0.1 * (value - group.rank());
    });
  }
  return x;
}

}  // namespace

void every_remote_path_gives_the_same_bits(const Group& group) {
  const std::size_t some = several_hosts(group) ? std::size(counts) : 2;  // else nothing is cut up
  for (const std::size_t count : std::span(counts).first(some)) {
    for (const TopologyRule& rule : {stencil::ring(), schedule::one_peer_exponential()}) {
      std::vector<double> among_threads;
      local::run(group.size(), [&](const Group& threads) {
        const auto x = after_some_rounds(threads, rule, count, RemotePathChoice::measured);
        if (threads.rank() == group.rank()) among_threads = x;
      });
      for (const RemotePathChoice path : every_path) {
        expect(after_some_rounds(group, rule, count, path) == among_threads,
               fmt::format("{} elements, {}: the same bits", count, rule.name()));
      }
    }
  }
}

void no_remote_path_tears(const Group& group) {
  for (const RemotePathChoice path : paths_that_differ(group)) {
    WorkerOptions options = by(path);
    options.staleness = unbounded_staleness;
    std::vector<double> x(100'003, group.rank());
    Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, options);
    for (int t = 0; t < 150; ++t) {
      worker.step([&] {
        for (double& value : x) value += 1;
      });
      expect(has_whole_blocks(std::span<const double>(x)), "no torn value is combined");
    }
    worker.await_finish();
  }
}

/// Old and new are published for the same round, one right after the other.
void republished_weights_replace_those_under_way(const Group& group) {
  for (const RemotePathChoice path : every_path) {
    for (int attempt = 0; attempt < 10; ++attempt) {
      std::vector<double> x(20'000, 1000);
      Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, by(path));
      worker.step([] {});
      x.assign(x.size(), group.rank());
      worker.republish();
      worker.step([] {});
      const double last = group.size() - 1;
      expect(x[7] <= last && x.back() <= last, "what was replaced is not combined");
    }
  }
}

void a_capped_worker_sends_no_faster(const Group& group) {
  const bool remote = several_hosts(group);
  for (const RemotePathChoice path : {RemotePathChoice::pull, RemotePathChoice::two_sided}) {
    WorkerOptions options = by(path);
    options.remote_bytes_per_s = 20e6;
    std::vector<double> x(125'000, group.rank());  // 1 MB
    Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, options);
    const auto began = Clock::now();
    constexpr int rounds = 6;
    for (int t = 0; t < rounds; ++t) worker.step([] {});
    // The last round's message need not have been sent, and a part of it passes at once.
    const double least_s = (rounds - 2) * 1e6 / 20e6;
    expect(!remote || Seconds(Clock::now() - began).count() > least_s, "the cap holds");
  }
}

}  // namespace fast::testing
