#include "train/run/training_batches.hpp"

#include <fast/data/synthetic.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/stencil.hpp>

#include <algorithm>
#include <numeric>

#include "support/catch.hpp"

using namespace fast;
using train::samples_with_those_of;

namespace {

using Parts = std::vector<std::vector<std::size_t>>;

/// Worker w has samples w, w + workers, ...
Parts dealt(std::size_t workers, std::size_t samples) {
  Parts parts(workers);
  for (std::size_t s = 0; s < samples; ++s) parts[s % workers].push_back(s);
  return parts;
}

/// What all that live train on, sorted: a sample twice when two do.
std::vector<std::size_t> trained_on(const Parts& parts, const Schedule& schedule,
                                    const std::set<int>& gone) {
  std::vector<std::size_t> all;
  for (int worker = 0; worker < schedule.workers(); ++worker) {
    if (gone.contains(worker)) continue;
    const auto samples = samples_with_those_of(gone, parts, schedule, worker);
    CHECK(std::is_sorted(samples.begin(), samples.end()));
    all.insert(all.end(), samples.begin(), samples.end());
  }
  std::sort(all.begin(), all.end());
  return all;
}

std::vector<std::size_t> first_samples(std::size_t samples) {
  std::vector<std::size_t> all(samples);
  std::iota(all.begin(), all.end(), std::size_t{0});
  return all;
}

}  // namespace

TEST_CASE("the living train on every sample once, whoever is gone") {
  const Parts parts = dealt(6, 61);
  const Schedule ring = stencil::ring().make(6);
  const Schedule one_peer = schedule::one_peer_exponential().make(6);
  for (const std::set<int>& gone :
       {std::set<int>{}, std::set<int>{0}, std::set<int>{2, 3}, std::set<int>{1, 4}}) {
    CHECK(trained_on(parts, ring, gone) == first_samples(61));
    CHECK(trained_on(parts, one_peer, gone) == first_samples(61));
  }
  // Its edges between sites are those of rounds 99, 199, ...
  const Schedule rare = schedule::sites(100, {0, 1, 2}).make(3);
  CHECK(trained_on(dealt(3, 61), rare, {1}) == first_samples(61));
}

TEST_CASE("neighbors share the samples of a worker that is gone, the others keep to their own") {
  const Parts parts = dealt(6, 60);
  const Schedule ring = stencil::ring().make(6);
  CHECK(samples_with_those_of({2}, parts, ring, 1).size() == 15);
  CHECK(samples_with_those_of({2}, parts, ring, 3).size() == 15);
  for (const int other : {0, 4, 5})
    CHECK(samples_with_those_of({2}, parts, ring, other) == parts[static_cast<std::size_t>(other)]);
  CHECK(samples_with_those_of({2, 3}, parts, ring, 1).size() == 20);
}

TEST_CASE("the samples of a worker whose neighbors are gone, too, are nobody's") {
  const Parts parts = dealt(6, 60);
  CHECK(trained_on(parts, stencil::ring().make(6), {1, 2, 3}).size() == 50);
}

namespace {

train::PartPlan plan_of(int rank, const char* sharding, bool take_over = true,
                        std::int64_t steps = 1) {
  const data::Dataset samples = data::synthetic_classification(240, {4}, 3, 1);
  return {samples,
          stencil::ring().make(4),
          rank,
          {data::sharding_from(sharding), 1, steps, take_over, {}}};
}

}  // namespace

TEST_CASE("a worker takes over from a neighbor that missed its last turn, until that returns") {
  train::PartPlan plan = plan_of(1, "dirichlet:0.5");
  const auto own = plan.own();
  CHECK(own.size() == 60);
  CHECK_FALSE(plan.take_over({}, 10, 20));
  plan.note_missed(2, 10);
  const auto more = plan.take_over({}, 10, 20);
  REQUIRE(more);
  CHECK(more->size() == 90);
  CHECK(std::includes(more->begin(), more->end(), own.begin(), own.end()));
  CHECK_FALSE(plan.take_over({}, 11, 20));
  CHECK(plan.take_over({}, 30, 20) == own);    // no longer missed
  CHECK(plan.take_over({2}, 31, 20) == more);  // silent on this host
}

TEST_CASE("without owners, or where that is not wanted, nobody takes over samples") {
  for (train::PartPlan plan : {plan_of(1, "even"), plan_of(1, "dirichlet:0.5", false)}) {
    plan.note_missed(2, 10);
    CHECK_FALSE(plan.take_over({0}, 10, 20));
  }
  CHECK(plan_of(1, "even").own().empty());
}

TEST_CASE("a neighbor that is read every few steps counts as gone until it is due again") {
  train::PartPlan plan = plan_of(1, "dirichlet:0.5", true, 4);
  plan.note_missed(0, 8);
  CHECK(plan.take_over({}, 11, 20));  // not due in rounds 9 to 11
  CHECK(plan.take_over({}, 13, 20) == plan.own());
}
