#include "scaling/parameter_server.hpp"

#include <array>

#include "support/catch.hpp"
#include "support/mpi_main.hpp"

using namespace fast;
using bench::ServedWorker;

namespace {

constexpr Seconds long_patience{20};

/// Workers add 1 to the first weight in each round, so that it counts the rounds: exact in float.
/// Rank 0 adds to the second weight when `over` has expired, by which all ranks stop.
double rounds_until(const Deadline& over, ServedWorker& worker, std::array<float, 2>& weights) {
  double rounds = 0;
  for (; weights[1] == 0; ++rounds) {
    worker.round([&] {
      weights[0] += 1;
      if (testing::world().rank() == 0 && over.expired()) weights[1] += 1;
    });
  }
  return rounds;
}

}  // namespace

TEST_CASE("a server works for longer than its patience while steps come") {
  constexpr Seconds patience{2};
  std::array<float, 2> weights{};
  ServedWorker worker(testing::world(), weights, /*waits_for_all*/ true, patience);
  const double rounds = rounds_until(Deadline(1.5 * patience), worker, weights);
  worker.finish();
  CHECK(rounds > 1);
  CHECK(static_cast<double>(weights[0]) == rounds);
}

TEST_CASE("a server to which no step comes gives up") {
  std::array<float, 2> weights{};
  { const ServedWorker worker(testing::world(), weights, true, Seconds(0.2)); }  // without finish()
  testing::world().barrier(Deadline(long_patience), "a server that gave up");
  CHECK(weights[0] == 0);
}
