#include <algorithm>
#include <cmath>
#include <fast/core/random.hpp>
#include <map>
#include <set>

#include "data/files/split.hpp"
#include "support/catch.hpp"
#include "support/seed.hpp"

using namespace fast;

namespace {

std::map<std::int32_t, double> counts_of(const data::Dataset& samples) {
  std::map<std::int32_t, double> counts;
  for (const std::int32_t label : samples.labels()) ++counts[label];
  return counts;
}

/// Sample i has the value i.
data::Dataset labeled(const std::vector<std::int32_t>& labels, int classes) {
  std::vector<float> values(labels.size());
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(i);
  return {"drawn", {1}, std::move(values), labels, classes};
}

std::vector<float> values_of(const data::Dataset& samples) {
  std::vector<float> values(samples.size());
  for (std::size_t i = 0; i < values.size(); ++i)
    samples.copy(i, std::as_writable_bytes(std::span(&values[i], 1)));
  return values;
}

}  // namespace

TEST_CASE("parts that are held out have their share of each class, whatever the samples' order") {
  const std::uint64_t seed = test_seed(41);
  INFO("seed " << seed);
  Rng random(seed);
  for (int trial = 0; trial < 200; ++trial) {
    const int classes = 1 + static_cast<int>(random.below(12));
    std::vector<std::int32_t> labels;
    for (int label = 0; label < classes; ++label)
      labels.insert(labels.end(), 1 + random.below(40), label);  // in the order of classes
    const data::Dataset all = labeled(labels, classes);
    const double share = random.uniform(0.02, 0.5);
    const data::HeldOut parts = data::hold_out(all, share, random());
    const auto total = static_cast<double>(labels.size());
    CHECK(static_cast<double>(parts.held_out.size()) == std::ceil(share * total));
    CHECK(parts.held_out.size() + parts.rest.size() == labels.size());
    std::vector<float> values = values_of(parts.rest), others = values_of(parts.held_out);
    CHECK(std::ranges::is_sorted(values));
    CHECK(std::ranges::is_sorted(others));
    values.insert(values.end(), others.begin(), others.end());
    CHECK(std::set<float>(values.begin(), values.end()).size() == labels.size());
    auto rest = counts_of(parts.rest), held_out = counts_of(parts.held_out);
    const bool all_can_give = static_cast<double>(parts.rest.size()) >= classes;
    for (const auto& [label, count] : counts_of(all)) {
      if (all_can_give) CHECK(rest[label] >= 1);
      if (count >= 4 / share)
        CHECK(std::abs(held_out[label] - std::ceil(share * total) * count / total) <=
              1 + classes / count);
    }
  }
}

TEST_CASE("the seed alone decides which samples are held out") {
  const data::Dataset all = labeled(std::vector<std::int32_t>(100, 0), 1);
  const auto drawn = [&](std::uint64_t seed) {
    return values_of(data::hold_out(all, 0.2, seed).held_out);
  };
  CHECK(drawn(1) == drawn(1));
  CHECK(drawn(1) != drawn(2));
}

TEST_CASE("samples with numbers to predict are held out at random") {
  std::vector<float> values(50), targets(50, 0.5F);
  const data::Dataset all("numbers", {1}, std::move(values), data::Targets{targets, {}, 0});
  const data::HeldOut parts = data::hold_out(all, 0.1, 3);
  CHECK((parts.held_out.size() == 5 && parts.held_out.targets().size() == 5));
  CHECK((parts.rest.size() == 45 && parts.rest.targets().size() == 45));
}
