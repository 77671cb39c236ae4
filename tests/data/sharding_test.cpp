#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/data/loader.hpp>
#include <fast/data/sampler.hpp>
#include <fast/data/synthetic.hpp>
#include <numeric>
#include <set>

#include "support/catch.hpp"
#include "support/seed.hpp"

using namespace fast;
using data::dirichlet_parts;

namespace {

std::vector<std::int32_t> labels_of(std::size_t samples, int classes) {
  std::vector<std::int32_t> labels(samples);
  for (std::size_t i = 0; i < samples; ++i) {
    labels[i] = static_cast<std::int32_t>(i % static_cast<std::size_t>(classes));
  }
  return labels;
}

/// The mean over workers of the largest class's share of a part.
double skew(const std::vector<std::vector<std::size_t>>& parts,
            const std::vector<std::int32_t>& labels, int classes) {
  double sum = 0;
  for (const auto& part : parts) {
    std::vector<int> count(static_cast<std::size_t>(classes));
    for (const std::size_t i : part) ++count[static_cast<std::size_t>(labels[i])];
    sum += *std::max_element(count.begin(), count.end()) / static_cast<double>(part.size());
  }
  return sum / static_cast<double>(parts.size());
}

}  // namespace

TEST_CASE("every sample is in one skewed part, and no part is empty") {
  const std::uint64_t seed = test_seed(31);
  CAPTURE(seed);
  Rng rng(seed);
  for (int trial = 0; trial < 100; ++trial) {
    const int workers = 1 + static_cast<int>(rng.below(12)),
              classes = 1 + static_cast<int>(rng.below(7));
    const auto labels = labels_of(static_cast<std::size_t>(workers) + rng.below(300), classes);
    const double alpha = std::pow(10, rng.uniform(-4, 2));
    CAPTURE(workers, classes, labels.size(), alpha);
    const auto parts = dirichlet_parts(labels, classes, workers, alpha, rng());
    REQUIRE(parts.size() == static_cast<std::size_t>(workers));
    std::set<std::size_t> seen;
    for (const auto& part : parts) {
      const std::size_t least = labels.size() / parts.size();
      CHECK((part.size() == least || part.size() == least + 1));
      for (const std::size_t sample : part) REQUIRE(seen.insert(sample).second);
    }
    CHECK(seen.size() == labels.size());
    CHECK(*seen.rbegin() == labels.size() - 1);
  }
}

TEST_CASE("a smaller alpha skews labels more, a large one hardly") {
  const auto labels = labels_of(20000, 10);
  const double slight = skew(dirichlet_parts(labels, 10, 8, 1000, 1), labels, 10);
  const double some = skew(dirichlet_parts(labels, 10, 8, 1, 1), labels, 10);
  const double strong = skew(dirichlet_parts(labels, 10, 8, 0.1, 1), labels, 10);
  CHECK(slight < 0.13);
  CHECK((some > 0.2 && some < 0.6));
  CHECK(strong > 0.4);
}

TEST_CASE("skewed parts are the same for the same seed and others for another") {
  const auto labels = labels_of(1000, 10);
  CHECK(dirichlet_parts(labels, 10, 4, 0.1, 7) == dirichlet_parts(labels, 10, 4, 0.1, 7));
  CHECK(dirichlet_parts(labels, 10, 4, 0.1, 7) != dirichlet_parts(labels, 10, 4, 0.1, 8));
}

TEST_CASE("a loader of a part hands out only the part's samples, anew every epoch") {
  const data::Dataset all = data::synthetic_classification(103, {1}, 3, 1);
  const auto parts = dirichlet_parts(all.labels(), 3, 4, 0.1, 1);
  for (int rank = 0; rank < 4; ++rank) {
    const auto& part = parts[static_cast<std::size_t>(rank)];
    const data::Sampler sampler({103, 4, rank, 8, 5, part});
    CHECK(sampler.rounds() == 3);
    const auto order = sampler.order(0);
    CHECK(std::set(order.begin(), order.end()).size() == 24);
    for (const std::size_t i : order) CHECK(std::binary_search(part.begin(), part.end(), i));
    CHECK(order != sampler.order(1));
  }
  CHECK_THROWS_WITH(data::Sampler({103, 4, 0, 8, 5, {1, 2, 3}}),
                    ContainsSubstring("3 samples") && ContainsSubstring("25"));
}

TEST_CASE("shards are chosen by a text") {
  CHECK(data::sharding_from("even").text() == "even");
  CHECK(data::sharding_from("dirichlet:0.1").text() == "dirichlet:0.1");
  for (const char* bad : {"", "odd", "dirichlet", "dirichlet:", "dirichlet:0", "dirichlet:-1",
                          "dirichlet:nan", "dirichlet:inf", "dirichlet:1x"}) {
    CHECK_THROWS_WITH(data::sharding_from(bad), ContainsSubstring("even or dirichlet:ALPHA"));
  }
}
