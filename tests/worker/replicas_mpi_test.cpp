// Replicas of several ranks beside workers that have the whole model.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <fast/core/error.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/replicas.hpp>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/mpi_main.hpp"
#include "support/rules.hpp"

using namespace fast;

namespace {

constexpr int rounds = 12;
constexpr double rate = 0.05;
constexpr std::size_t elements = 23;  // parts differ in size

/// Replicas of two ranks, and of three where there are so many.
std::vector<int> divisors() {
  std::vector<int> found;
  for (const int shards : {2, 3})
    if (testing::world().size() % shards == 0) found.push_back(shards);
  return found;
}

/// Of a model whose elements do not depend on each other: each in 64 bits and in 32.
struct Slice {
  std::size_t first = 0;
  std::vector<double> doubles;
  std::vector<float> floats;

  Slice(std::size_t begin, std::size_t end) : first(begin) {
    for (std::size_t i = begin; i < end; ++i) doubles.push_back(std::sin(static_cast<double>(i)));
    floats.assign(doubles.begin(), doubles.end());
  }
  static Slice of(const Replicas& replicas) {
    const auto bound_of = [&](int shard) {
      return elements * static_cast<std::size_t>(shard) /
             static_cast<std::size_t>(replicas.shards());
    };
    return {bound_of(replicas.shard()), bound_of(replicas.shard() + 1)};
  }
  std::vector<TensorView> views() {
    return {view_of("doubles", std::span(doubles)), view_of("floats", std::span(floats))};
  }
  /// A step to a target of each replica and element.
  void step(int replica, int round) {
    for (std::size_t i = 0; i < doubles.size(); ++i) {
      const double target = replica + std::cos(static_cast<double>(first + i) + 0.1 * round);
      doubles[i] -= rate * (doubles[i] - target);
      floats[i] -= static_cast<float>(rate * (static_cast<double>(floats[i]) - target));
    }
  }
};

void train(Worker& worker, Slice& slice, int replica) {
  for (int round = 0; round < rounds; ++round)
    worker.step([&] { slice.step(replica, round); }, {.learning_rate = rate});
  worker.await_finish();
}

void check_equal(const Slice& part, const Slice& whole) {
  for (std::size_t i = 0; i < part.doubles.size(); ++i) {
    INFO("element " << part.first + i);
    REQUIRE(std::abs(part.doubles[i] - whole.doubles[part.first + i]) <= 1e-12);
    REQUIRE(std::abs(part.floats[i] - whole.floats[part.first + i]) <= 1e-6F);
  }
}

Slice mean_of(const Worker& worker, const Slice& like) {
  Slice mean = like;
  worker.mean_model(mean.views());
  return mean;
}

WorkerOptions options_for(std::string_view rule) {
  WorkerOptions options;
  options.algorithm = algorithm::by_name(rule, testing::short_of(rule));
  return options;
}

void check_rule(const Replicas& replicas, std::string_view rule, const codec::Options& codec = {}) {
  Slice part = Slice::of(replicas), whole(0, elements);
  WorkerOptions options = options_for(rule);
  options.codec = codec;
  Worker worker = replicas.make_worker(testing::topology_for(rule), part.views(), options);
  REQUIRE(worker.rank() == replicas.index());
  REQUIRE(worker.size() == replicas.count());
  train(worker, part, replicas.index());
  // Each rank computes the whole model, too, with those of its number in other replicas.
  Worker reference(testing::world().split(replicas.shard(), Deadline(Seconds(60))),
                   testing::topology_for(rule), whole.views(), options);
  train(reference, whole, replicas.index());
  INFO(rule << ", " << replicas.count() << " replicas of " << replicas.shards());
  check_equal(part, whole);
  check_equal(mean_of(worker, part), mean_of(reference, whole));
}

/// Rules that choose entries choose others of each part than of the whole model.
const std::set<std::string_view> chooses_entries{"choco", "sparta"};

bool fits(std::string_view rule, int replicas) {
  const bool in_pairs = rule == "pairwise" || rule == "noloco" || rule == "a2cid2";
  return rule != "event_triggered" && !chooses_entries.contains(rule) &&
         (!in_pairs || replicas % 2 == 0) && (rule != "awc_gasloc" || replicas % 2 == 0);
}

/// What all ranks throw, and which of them report it.
std::string common_error(const std::function<void()>& part) {
  std::string own;
  try {
    part();
  } catch (const Error& error) {
    own = fmt::format("{}{}", error.to_be_reported_by(testing::world().rank()) ? "!" : ".",
                      error.what());
  }
  const auto all = testing::world().all_gather(own, Deadline(Seconds(60)), "a test");
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    INFO("rank " << rank << ": " << all[rank]);
    REQUIRE_FALSE(all[rank].empty());
    REQUIRE(all[rank].substr(1) == all[0].substr(1));
    REQUIRE((all[rank][0] == '!') == (rank == 0));
  }
  return all[0].substr(1);
}

}  // namespace

TEST_CASE("parts of models are those of whole models, with all elementwise rules") {
  for (const int shards : divisors()) {
    const Replicas replicas(testing::world(), shards);
    for (const std::string_view rule : algorithm::names()) {
      if (!fits(rule, replicas.count())) continue;
      check_rule(replicas, rule);
    }
  }
}

TEST_CASE("parts of models are those of whole models, with codecs that treat each element") {
  const Replicas replicas(testing::world(), 2);
  for (const std::string_view codec : {"bf16", "fp16"})
    for (const std::string_view rule : {"awc", "atc", "local"})
      check_rule(replicas, rule, codec::by_name(codec));
}

// Without a closed form for a round: weights stay between the least and the greatest of the starts
// and targets, and the mean model is that of the last publications.
TEST_CASE("parts of models, above staleness 0 and with codecs of blocks") {
  const Replicas replicas(testing::world(), 2);
  for (const std::int64_t staleness : {std::int64_t{0}, std::int64_t{2}, unbounded_staleness}) {
    for (const std::string_view codec : {"identity", "bf16", "int8"}) {
      INFO("staleness " << staleness << ", " << codec);
      Slice part = Slice::of(replicas);
      WorkerOptions options;
      options.staleness = staleness;
      options.codec = codec::by_name(codec);
      Worker worker = replicas.make_worker(stencil::ring(), part.views(), options);
      train(worker, part, replicas.index());
      const double rounding = codec == "identity" ? 1e-6 : codec == "bf16" ? 0.02 : 0.05;
      const auto all = replicas.across().all_gather(
          std::string_view(reinterpret_cast<const char*>(part.doubles.data()),
                           part.doubles.size() * sizeof(double)),
          Deadline(Seconds(60)), "a test");
      const Slice mean = mean_of(worker, part);
      for (std::size_t i = 0; i < part.doubles.size(); ++i) {
        double expected = 0;
        for (const std::string& one : all) {
          double value = 0;
          std::memcpy(&value, one.data() + i * sizeof(double), sizeof(double));
          expected += value / static_cast<double>(all.size());
        }
        REQUIRE(std::abs(mean.doubles[i] - expected) <= (codec == "identity" ? 1e-12 : rounding));
        for (const double value : {part.doubles[i], static_cast<double>(part.floats[i])}) {
          REQUIRE(value >= -1 - rounding);
          REQUIRE(value <= replicas.count() + rounding);
        }
      }
    }
  }
}

TEST_CASE("consecutive ranks are a replica") {
  const int rank = testing::world().rank(), size = testing::world().size();
  for (const int shards : divisors()) {
    const Replicas replicas(testing::world(), shards);
    CHECK(replicas.index() == rank / shards);
    CHECK(replicas.count() == size / shards);
    CHECK(replicas.shard() == rank % shards);
    CHECK(replicas.shards() == shards);
    CHECK(replicas.inside().rank() == replicas.shard());
    CHECK(replicas.inside().size() == shards);
    CHECK(replicas.across().rank() == replicas.index());
    CHECK(replicas.across().size() == replicas.count());
  }
}

TEST_CASE("the ranks of a replica agree on what any of them knows") {
  const Replicas replicas(testing::world(), 2);
  const bool is_first = replicas.shard() == 0;
  CHECK(replicas.agree_on(is_first ? std::vector{7, 3} : std::vector{3, -1}) ==
        std::vector{-1, 3, 7});
  CHECK(replicas.agree_on(is_first ? std::vector<int>{} : std::vector{replicas.index()}) ==
        std::vector{replicas.index()});
  CHECK(replicas.agree_on({}).empty());
}

TEST_CASE("numbers of shards that make no replicas are one error on all ranks") {
  const mpi::Communicator& world = testing::world();
  const auto error_with = [&](int shards) {
    return common_error([&] { const Replicas refused(world, shards); });
  };
  CHECK_THAT(error_with(0), ContainsSubstring("shards is 0; a whole number, 1 or more"));
  CHECK_THAT(error_with(-2), ContainsSubstring("shards is -2; a whole number, 1 or more"));
  CHECK(error_with(world.size() - 1) ==
        fmt::format("Replicas: {} ranks are not divisible by {} shards; start a multiple of {}, as "
                    "by  fastrun -n {}",
                    world.size(), world.size() - 1, world.size() - 1, 2 * (world.size() - 1)));
  CHECK(error_with(world.rank() == 1 ? 1 : 2) ==
        "Replicas: rank 0 asks for 2 shards, rank 1 for 1; give the same number");
}

TEST_CASE("what needs the whole model is refused, by one error on all ranks") {
  const Replicas replicas(testing::world(), 2);
  const auto error_with = [&](const std::function<void(WorkerOptions&)>& change) {
    return common_error([&] {
      WorkerOptions options;
      change(options);
      Slice part = Slice::of(replicas);
      replicas.make_worker(testing::topology_for("awc"), part.views(), options);
    });
  };
  CHECK_THAT(error_with([](auto& of) { of.algorithm = algorithm::event_triggered(); }),
             ContainsSubstring("algorithm event_triggered with replicas: it "
                               "compares the distance that the whole model has moved"));
  CHECK_THAT(error_with([](auto& of) { of.not_finite = NotFinite::heal; }),
             ContainsSubstring("on_nonfinite heal with replicas: one rank would"));
  CHECK_THAT(error_with([](auto& of) { of.robust = Robust::clip; }),
             ContainsSubstring("robust clip with replicas"));
  CHECK_THAT(error_with([](auto& of) { of.robust = Robust::trimmed_mean; }),
             ContainsSubstring("robust trimmed_mean with replicas"));
  // A fault of one shard, or of one rank, ends the ranks of other shards, too.
  CHECK_THAT(error_with([&](auto& of) {
               if (replicas.shard() == 1) of.staleness = replicas.index();
             }),
             ContainsSubstring("worker 0 has staleness 0, worker 1 has staleness 1"));
  CHECK_THAT(error_with([&](auto& of) {
               of.participates = [&](const TensorView&) { return testing::world().rank() != 3; };
             }),
             ContainsSubstring("the `participates` option leaves none of 2 tensors"));
  // All ranks go on.
  check_rule(replicas, "awc");
}

// Found when the Workers of a shard have begun, which the other shards do not see.
TEST_CASE("weights of one rank that are not finite are one error on all ranks") {
  const Replicas replicas(testing::world(), 2);
  const auto error_with = [&](int bad) {
    return common_error([&] {
      const float value = testing::world().rank() == bad ? std::nanf("") : 1;
      std::vector<float> part(4, value);
      WorkerOptions options;
      options.initial = Initial::as_is;
      replicas.make_worker(testing::topology_for("awc"), {view_of("weights", std::span(part))},
                           options);
    });
  };
  for (const int bad : {1, testing::world().size() - 2})
    CHECK_THAT(error_with(bad), ContainsSubstring("not finite"));
  check_rule(replicas, "awc");
}

TEST_CASE("the parts of a shard have one layout") {
  const Replicas replicas(testing::world(), 2);
  const std::string found = common_error([&] {
    std::vector<float> part(replicas.shard() == 1 && replicas.index() == 1 ? 3 : 4);
    replicas.make_worker(testing::topology_for("awc"), {view_of("weights", std::span(part))});
  });
  CHECK_THAT(found, ContainsSubstring("worker 0 has") && ContainsSubstring("worker 1 has"));
}
