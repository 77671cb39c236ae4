// Several threads of a worker average: what comes out is what one thread makes of it.
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <fast/core/random.hpp>
#include <fast/exchange/local.hpp>
#include <fast/worker/rotating_arena.hpp>
#include <mutex>
#include <set>
#include <thread>

#include "support/catch.hpp"
#include "support/lockstep.hpp"
#include "support/rules.hpp"
#include "support/seed.hpp"
#include "worker/quick.hpp"
#include "worker/scenarios/whole_blocks.hpp"

using namespace fast;
using namespace fast::testing;

namespace {

constexpr int lockstep_workers = 4;
constexpr std::size_t lockstep_elements = 70'001;  // two parts of a sweep, the second one short

/// All lockstep_workers' weights after some rounds.
template <class T>
std::vector<std::vector<T>> trained_by(WorkerOptions options, int threads, std::uint64_t seed) {
  options.mixing_threads = threads;
  Rng rng(seed);
  std::vector<T> start(lockstep_elements), moves(lockstep_elements);
  for (T& value : start) value = from_double<T>(rng.normal());
  for (T& value : moves) value = from_double<T>(rng.normal() / 16);
  Lockstep<T> run(topology_for(options.algorithm.traits().name), lockstep_workers, start, options);
  for (int round = 0; round < 3; ++round)
    run.round(
        [&](int worker, std::span<T> x) {
          for (std::size_t e = 0; e < lockstep_elements; ++e)
            x[e] = from_double<T>(as_double(x[e]) + (worker + 1) * as_double(moves[e]));
        },
        0.05);
  std::vector<std::vector<T>> all;
  for (int worker = 0; worker < lockstep_workers; ++worker) all.push_back(run.x(worker));
  return all;
}

template <class T>
void compare_threads(std::string_view rule, std::string_view codec) {
  const std::uint64_t seed = test_seed(5);
  WorkerOptions options;
  options.algorithm = algorithm::by_name(rule, short_of(rule));
  options.codec = codec::by_name(codec);
  try {
    worker::check_options(options, options.algorithm.traits());
  } catch (const Error&) {
    return;  // the rule does not take the codec
  }
  const auto one = trained_by<T>(options, 1, seed), three = trained_by<T>(options, 3, seed);
  for (int w = 0; w < lockstep_workers; ++w) {
    INFO(rule << " with codec " << codec << ", worker " << w << ", FAST_TEST_SEED=" << seed);
    const auto at = static_cast<std::size_t>(w);
    CHECK(std::memcmp(one[at].data(), three[at].data(), lockstep_elements * sizeof(T)) == 0);
  }
}

}  // namespace

TEST_CASE("any number of threads gives the same bits, of all rules and codecs") {
  for (const std::string_view rule : algorithm::names())
    for (const std::string_view codec : {"identity", "bf16", "int8", "int8_stochastic", "int2"})
      compare_threads<float>(rule, codec);
}

TEST_CASE("any number of threads gives the same bits of 64-bit and 16-bit weights") {
  for (const std::string_view rule : {"awc", "atc", "gradient_tracking", "push_sum"}) {
    compare_threads<double>(rule, "identity");
    compare_threads<BFloat16>(rule, "identity");
  }
}

TEST_CASE("the threads of a worker average at the same time") {
  std::set<std::thread::id> threads;
  local::run(1, [&](const Group& group) {
    WorkerOptions options = quick();
    options.mixing_threads = 2;
    std::vector<double> x(2 * lockstep_elements);
    Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, options);
    std::mutex mutex;
    std::condition_variable changed;
    worker.begin_round();
    RotatingArena<double> arena(worker);
    arena.end_round([&](std::size_t, std::span<double>) {
      std::unique_lock lock(mutex);
      threads.insert(std::this_thread::get_id());
      changed.notify_all();
      changed.wait_for(lock, std::chrono::seconds(60), [&] { return threads.size() == 2; });
    });
    worker.await_finish();
  });
  CHECK(threads.size() == 2);
}

TEST_CASE("several threads of workers that never wait combine no torn value") {
  for (const bool rotates : {false, true}) {
    std::array<bool, 3> whole{};
    local::run(3, [&](const Group& group) {
      WorkerOptions options = quick();
      options.staleness = unbounded_staleness;
      options.mixing_threads = 3;
      std::vector<double> x(lockstep_elements, group.rank());
      Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, options);
      const PartUpdate<double> nothing = [](std::size_t, std::span<double>) {};
      bool good = true;
      for (int round = 0; round < 50; ++round) {
        worker.begin_round();
        RotatingArena<double> arena(worker);
        rotates ? arena.end_round(nothing) : worker.end_round();
        good = good && has_whole_blocks(std::span(rotates ? arena.weights() : x.data(), x.size()));
      }
      worker.await_finish();
      whole[static_cast<std::size_t>(group.rank())] = good;
    });
    CHECK(whole == std::array{true, true, true});
  }
}
