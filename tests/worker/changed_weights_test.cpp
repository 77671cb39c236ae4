// Rules whose state refers to the mixing weights, when these change: by set_schedule(), or because
// a saved state goes on in another topology or on other places in it. Nobody makes steps, so all
// come to the mean of the first weights.
#include <fast/core/random.hpp>
#include <fast/exchange/local.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/worker.hpp>

#include <cmath>
#include <cstring>
#include <mutex>

#include "support/catch.hpp"
#include "support/seed.hpp"
#include "topology/placement.hpp"
#include "worker/quick.hpp"

using namespace fast;

namespace {

constexpr std::size_t changed_elements = 5;
constexpr int rounds_after_change = 240;

/// Worker r of a ring is another one than rank r.
TopologyRule shuffled_ring() {
  return {"ring", [](int workers) {
            std::vector<int> worker_of_rank(static_cast<std::size_t>(workers));
            for (int rank = 0; rank < workers; ++rank)
              worker_of_rank[static_cast<std::size_t>(rank)] =
                  rank % 2 == 0 ? rank / 2 : workers - 1 - rank / 2;
            return placed(stencil::ring().make(workers), worker_of_rank);
          }};
}

struct ChangedCase {
  std::string rule, codec = "identity";
  algorithm::Parameters parameters{};
  int workers = 5, changes_at = 7;
  TopologyRule before = stencil::ring(), after = stencil::ring();

  std::string text() const {
    std::string text = fmt::format("{} {} workers={} {} -> {} in round {}", rule, codec, workers,
                                   before.name(), after.name(), changes_at);
    for (const auto& [key, value] : parameters) text += fmt::format(" {}={}", key, value);
    return text;
  }
};

ChangedCase drawn_change(Rng& rng) {
  const auto below = [&](int count) {
    return static_cast<int>(rng.below(static_cast<std::uint64_t>(count)));
  };
  ChangedCase c;
  const int rule = below(3);
  c.rule = rule == 0 ? "choco" : rule == 1 ? "gasloc" : "d2";
  if (c.rule == "choco") c.parameters = {{"fraction", "1"}, {"consensus_step", "0.5"}};
  if (c.rule == "gasloc") {
    const int period = 1 + below(3);
    c.parameters = {{"changes", "true"},
                    {"consensus_step", "0.6"},
                    {"period", std::to_string(period)},
                    {"delay", std::to_string(below(period))}};
    c.codec = below(2) == 0 ? "identity" : "int8";
  }
  c.workers = 5 + below(3);
  c.changes_at = 3 + below(12);
  const TopologyRule topologies[] = {stencil::ring(), stencil::complete(), shuffled_ring()};
  const int before = below(3);
  c.before = topologies[before];
  c.after = topologies[(before + 1 + below(2)) % 3];
  return c;
}

/// Of one worker, as a checkpoint holds it.
struct ChangedState {
  std::vector<double> x;
  std::vector<std::vector<std::byte>> memory;
  std::vector<TensorView> views;
};

WorkerOptions changed_options(const ChangedCase& c) {
  WorkerOptions options = testing::quick();
  options.algorithm = algorithm::by_name(c.rule, c.parameters);
  options.codec = codec::by_name(c.codec);
  return options;
}

void idle_rounds(Worker& worker, int rounds) {
  for (int t = 0; t < rounds; ++t) worker.step([] {});
}

std::vector<ChangedState> start_and_save(const ChangedCase& c) {
  std::vector<ChangedState> all(static_cast<std::size_t>(c.workers));
  local::run(c.workers, [&](const Group& group) {
    ChangedState& mine = all[static_cast<std::size_t>(group.rank())];
    mine.x.assign(changed_elements, group.rank());
    Worker worker(group, c.before, {view_of("x", std::span(mine.x))}, changed_options(c));
    idle_rounds(worker, c.changes_at);
    mine.views = worker.state();
    for (TensorView& view : mine.views) {
      const auto* bytes = static_cast<const std::byte*>(view.data);
      view.data = mine.memory.emplace_back(bytes, bytes + view.size_bytes()).data();
    }
    worker.await_finish();
  });
  return all;
}

void check_changed_mean(const std::vector<std::vector<double>>& ends) {
  const double mean = (static_cast<double>(ends.size()) - 1) / 2;
  for (std::size_t worker = 0; worker < ends.size(); ++worker) {
    INFO("worker " << worker);
    for (const double value : ends[worker]) REQUIRE(std::abs(value - mean) < 1e-3);
  }
}

}  // namespace

TEST_CASE("with other mixing weights, rules that refer to them go on to the mean") {
  const std::uint64_t seed = test_seed(31);
  Rng rng(seed);
  for (int k = 0; k < 5; ++k) {
    const ChangedCase c = drawn_change(rng);
    INFO("seed " << seed << ", case " << k << ": " << c.text());
    std::vector<std::vector<double>> ends(static_cast<std::size_t>(c.workers));
    local::run(c.workers, [&](const Group& group) {
      std::vector<double>& x = ends[static_cast<std::size_t>(group.rank())];
      x.assign(changed_elements, group.rank());
      Worker worker(group, c.before, {view_of("x", std::span(x))}, changed_options(c));
      idle_rounds(worker, c.changes_at);
      worker.set_schedule(c.after);
      idle_rounds(worker, rounds_after_change);
      worker.await_finish();
    });
    check_changed_mean(ends);
  }
}

TEST_CASE("a saved state goes on to the mean with other mixing weights, and says so once") {
  const std::uint64_t seed = test_seed(32);
  Rng rng(seed);
  for (int k = 0; k < 5; ++k) {
    const ChangedCase c = drawn_change(rng);
    INFO("seed " << seed << ", case " << k << ": " << c.text());
    std::vector<ChangedState> all = start_and_save(c);
    std::vector<std::vector<double>> ends(static_cast<std::size_t>(c.workers));
    std::vector<std::string> said;
    std::mutex mutex;
    local::run(c.workers, [&](const Group& group) {
      ChangedState& mine = all[static_cast<std::size_t>(group.rank())];
      WorkerOptions options = changed_options(c);
      options.log = [&](LogLevel, std::string_view text) {
        const std::lock_guard lock(mutex);
        if (text.find("restarts without its saved state") != std::string_view::npos)
          said.emplace_back(text);
      };
      Worker worker(group, c.after, {view_of("x", std::span(mine.x))}, options);
      worker.restore(mine.views);
      idle_rounds(worker, rounds_after_change);
      worker.await_finish();
      ends[static_cast<std::size_t>(group.rank())] = mine.x;
    });
    check_changed_mean(ends);
    CHECK(said.size() == 1);
  }
}
