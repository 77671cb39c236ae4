// Several threads of a worker average: what comes out is what one thread makes of it.
#include <pthread.h>

#include <barrier>
#include <chrono>
#include <condition_variable>
#include <cstring>
#include <fast/core/random.hpp>
#include <fast/exchange/local.hpp>
#include <fast/worker/rotating_arena.hpp>
#include <functional>
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

/// All weights after rounds of workers that never wait. They end each round one after another, so
/// that all know what is the newest publication of each.
template <class T>
std::vector<std::vector<T>> trained_in_turn(WorkerOptions options, int threads,
                                            std::uint64_t seed) {
  constexpr int workers = 3;
  options.staleness = unbounded_staleness;
  options.mixing_threads = threads;
  std::vector<std::vector<T>> all(workers, std::vector<T>(lockstep_elements));
  std::barrier turn(workers);
  local::run(workers, [&](const Group& group) {
    Rng rng(mix_seed(seed, static_cast<std::uint64_t>(group.rank())));
    std::vector<T>& x = all[static_cast<std::size_t>(group.rank())];
    for (T& value : x) value = from_double<T>(rng.normal());
    Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, options);
    for (int round = 0; round < 4; ++round) {
      worker.begin_round();
      for (T& value : x) value = from_double<T>(as_double(value) + rng.normal() / 16);
      for (int rank = 0; rank < workers; ++rank) {
        turn.arrive_and_wait();
        if (rank == group.rank()) worker.end_round({.learning_rate = 0.05});
      }
    }
    turn.arrive_and_wait();
    worker.await_finish();
  });
  return all;
}

template <class T>
void compare_in_turn(std::string_view rule, std::string_view codec) {
  const std::uint64_t seed = test_seed(6);
  WorkerOptions options = quick();
  options.algorithm = algorithm::by_name(rule);
  options.codec = codec::by_name(codec);
  const auto one = trained_in_turn<T>(options, 1, seed),
             three = trained_in_turn<T>(options, 3, seed);
  for (std::size_t w = 0; w < one.size(); ++w) {
    INFO(rule << " with codec " << codec << ", worker " << w << ", FAST_TEST_SEED=" << seed);
    CHECK(std::memcmp(one[w].data(), three[w].data(), lockstep_elements * sizeof(T)) == 0);
  }
  CHECK(std::memcmp(one[0].data(), one[1].data(), lockstep_elements * sizeof(T)) != 0);
}

/// Runs `work` on a thread that has a stack of so many bytes.
void on_stack_of(std::size_t bytes, std::function<void()> work) {
  pthread_attr_t attributes;
  REQUIRE(pthread_attr_init(&attributes) == 0);
  REQUIRE(pthread_attr_setstacksize(&attributes, bytes) == 0);
  const auto call = [](void* what) -> void* {
    (*static_cast<std::function<void()>*>(what))();
    return nullptr;
  };
  pthread_t thread{};
  REQUIRE(pthread_create(&thread, &attributes, call, &work) == 0);
  REQUIRE(pthread_join(thread, nullptr) == 0);
  pthread_attr_destroy(&attributes);
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

TEST_CASE("any number of threads gives the same bits of workers that never wait") {
  for (const std::string_view rule : {"awc", "averaged_momentum"}) {
    compare_in_turn<double>(rule, "identity");
    compare_in_turn<float>(rule, "identity");
    compare_in_turn<float>(rule, "bf16");
    compare_in_turn<BFloat16>(rule, "identity");
  }
}

TEST_CASE("a thread with a stack of 256 kB averages what another thread does") {
  WorkerOptions options;
  options.algorithm = algorithm::by_name("gradient_tracking");
  const std::uint64_t seed = test_seed(7);
  std::vector<std::vector<double>> small;
  on_stack_of(std::size_t{256} << 10, [&] { small = trained_by<double>(options, 1, seed); });
  CHECK(small == trained_by<double>(options, 1, seed));
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
