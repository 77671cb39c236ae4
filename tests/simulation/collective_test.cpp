// The messages of all-reduces, as every worker sends and receives them.
#include "simulation/collective.hpp"

#include <algorithm>
#include <vector>

#include "support/catch.hpp"

using namespace fast::simulation;

namespace {

constexpr double payload_bytes = 1 << 20;

// Whose values each worker has, directly or in sums.
using Heard = std::vector<std::vector<bool>>;

Heard only_own(int workers) {
  Heard heard(static_cast<std::size_t>(workers));
  for (std::size_t i = 0; i < heard.size(); ++i) {
    heard[i].assign(heard.size(), false);
    heard[i][i] = true;
  }
  return heard;
}

void receive(std::vector<bool>& mine, const std::vector<bool>& theirs) {
  for (std::size_t k = 0; k < mine.size(); ++k) mine[k] = mine[k] || theirs[k];
}

Heard after_all_steps(const Collective& collective, int workers) {
  Heard heard = only_own(workers);
  for (int k = 0; k < collective.steps(); ++k) {
    const Heard before = heard;
    for (int i = 0; i < workers; ++i) {
      const int from = collective.at(i, k).from;
      if (from == nobody) continue;
      receive(heard[static_cast<std::size_t>(i)], before[static_cast<std::size_t>(from)]);
    }
  }
  return heard;
}

const auto patterns = {Pattern::ring_allreduce, Pattern::doubling_allreduce,
                       Pattern::halving_allreduce};

}  // namespace

TEST_CASE("what a worker sends, its reader receives in the same step") {
  for (const Pattern pattern : patterns) {
    for (int workers = 1; workers <= 17; ++workers) {
      const Collective collective(pattern, workers, payload_bytes);
      for (int k = 0; k < collective.steps(); ++k) {
        for (int i = 0; i < workers; ++i) {
          const CollectiveStep step = collective.at(i, k);
          INFO(name(pattern) << ", " << workers << " workers, step " << k << ", worker " << i);
          if (step.to == nobody) continue;
          const CollectiveStep other = collective.at(step.to, k);
          CHECK(other.from == i);
          CHECK(other.size_bytes == step.size_bytes);
          const CollectiveStep first = collective.at(step.to, collective.step_between(i, step.to));
          CHECK(first.from == i);
        }
      }
    }
  }
}

TEST_CASE("at the end of an all-reduce, each worker has heard of all") {
  for (const Pattern pattern : patterns) {
    for (int workers = 1; workers <= 17; ++workers) {
      INFO(name(pattern) << ", " << workers << " workers");
      for (const std::vector<bool>& heard :
           after_all_steps(Collective(pattern, workers, payload_bytes), workers)) {
        CHECK(std::all_of(heard.begin(), heard.end(), [](bool known) { return known; }));
      }
    }
  }
}

TEST_CASE("halving sends the largest messages to the next workers") {
  const Collective collective(Pattern::halving_allreduce, 8, payload_bytes);
  REQUIRE(collective.steps() == 6);
  const std::vector<int> distances = {1, 2, 4, 4, 2, 1};
  for (int k = 0; k < 6; ++k) {
    const CollectiveStep step = collective.at(0, k);
    const int distance = distances[static_cast<std::size_t>(k)];
    CHECK(step.to == distance);
    CHECK(step.size_bytes == payload_bytes / (2 * distance));
  }
}
