#include <cmath>
#include <fast/core/error.hpp>
#include <fast/core/measure.hpp>
#include <fast/core/random.hpp>

#include "support/catch.hpp"
#include "support/seed.hpp"

using namespace fast;
using Form = Measure::Form;

TEST_CASE("a measure is what its form makes of its sums") {
  CHECK(Measure{"accuracy", Form::share, {3, 4}}.value() == 0.75);
  CHECK(Measure{"mae", Form::mean, {3, 4}}.value() == 0.75);
  CHECK(Measure{"rmse", Form::root_of_mean, {9, 4}}.value() == 1.5);
  CHECK(Measure{"perplexity", Form::exp_of_mean, {4, 2}}.value() == Approx(std::exp(2.0)));
  CHECK(std::isnan(Measure{"mae", Form::mean, {0, 0}}.value()));
}

TEST_CASE("measures of parts add up to that of the whole") {
  std::vector<Measure> all;
  add(all, {{"rmse", Form::root_of_mean, {1, 2}}});
  add(all, {{"rmse", Form::root_of_mean, {7, 2}}});
  REQUIRE(all.size() == 1);
  CHECK(all[0].value() == Approx(std::sqrt(2.0)));
  CHECK_THROWS_WITH(add(all, {{"rmse", Form::mean, {7, 2}}}),
                    ContainsSubstring("two forms of \"rmse\" do not add up"));
  CHECK_THROWS_WITH(all[0].add({"mae", Form::root_of_mean, {7, 2}}), ContainsSubstring("\"mae\""));
}

TEST_CASE("measures add up by name: in another order, and where a part lacks one") {
  std::vector<Measure> all;
  add(all, {{"recall", Form::share, {1, 2}}, {"mae", Form::mean, {3, 4}}});
  add(all, {{"mae", Form::mean, {5, 4}}, {"recall", Form::share, {2, 2}}});
  add(all, {{"mae", Form::mean, {0, 2}}});
  add(all, {{"auc", Form::share, {1, 1}}});
  REQUIRE(all.size() == 3);
  CHECK(all[0].name == "recall");
  CHECK(all[0].sums == std::vector<double>{3, 4});
  CHECK(all[1].sums == std::vector<double>{8, 10});
  CHECK(all[2].name == "auc");
}

TEST_CASE("the area of binned scores is the share of pairs in the right order") {
  const std::uint64_t seed = test_seed(5);
  CAPTURE(seed);
  Rng rng(seed);
  std::vector<double> zeros, ones;
  Measure area = empty_area("auc"), first = area, second = area;
  for (int i = 0; i < 400; ++i) {
    // Multiples of 1/64, so that bins do not join scores that differ.
    const double score = std::round(64 * rng.normal()) / 64 + (i % 3 == 0 ? 0.5 : 0);
    (i % 3 == 0 ? ones : zeros).push_back(score);
    Measure& part = i % 2 == 0 ? first : second;
    part.sums[score_bin(score) + (i % 3 == 0 ? score_bins : 0)] += 1;
  }
  double pairs = 0;
  for (const double one : ones)
    for (const double zero : zeros) pairs += one > zero ? 1 : one == zero ? 0.5 : 0;
  area.add(first);
  area.add(second);
  CHECK(area.value() == Approx(pairs / static_cast<double>(ones.size() * zeros.size())));
}

TEST_CASE("an area needs samples of both classes, and takes any score") {
  Measure area = empty_area("auc");
  area.sums[score_bin(1e30)] += 1;
  CHECK(std::isnan(area.value()));
  area.sums[score_bins + score_bin(-1e30)] += 1;
  CHECK(area.value() == 0);
  CHECK(score_bin(-1e30) == 0);
  CHECK(score_bin(1e30) == score_bins - 1);
}

TEST_CASE("names of measures are words, once each, and their sums are those of their form") {
  const auto measure = [](const char* name, std::size_t sums = 2) {
    return Measure{name, Form::mean, std::vector<double>(sums, 1)};
  };
  CHECK_NOTHROW(require_valid({measure("mae"), measure("p_90"), empty_area("auc")}));
  for (const char* name : {"", "loss", "samples", "f1 score", "a/b"}) {
    CHECK_THROWS_WITH(require_valid({measure(name)}),
                      ContainsSubstring("letters, digits and _ are required"));
  }
  CHECK_THROWS_WITH(require_valid({measure("mae"), measure("mae")}),
                    ContainsSubstring("two of the name \"mae\""));
  CHECK_THROWS_WITH(require_valid({measure("mae", 1)}), ContainsSubstring("has 1 sums"));
}
