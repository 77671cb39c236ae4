// A value that is not finite ends the worker that has it, before any other worker can read it.
#include <fast/core/error.hpp>
#include <fast/exchange/local.hpp>
#include <fast/worker/rotating_arena.hpp>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <limits>
#include <optional>

#include "support/catch.hpp"
#include "support/golden.hpp"
#include "support/rules.hpp"
#include "worker/quick.hpp"

using namespace fast;
using testing::expect;

namespace {

constexpr int workers = 4, rounds = 30, ill_round = 4;

struct Case {
  std::string rule;
  std::int64_t staleness = 0;
  std::string codec = "identity";
  double bad = std::numeric_limits<double>::quiet_NaN();
  std::string text() const { return fmt::format("{}, {}, {}, {}", rule, staleness, codec, bad); }
};

WorkerOptions options_of(const Case& tried) {
  WorkerOptions options = testing::quick();
  options.algorithm = algorithm::by_name(tried.rule, testing::short_of(tried.rule));
  options.staleness = tried.staleness;
  options.codec = codec::by_name(tried.codec);
  options.initial = Initial::broadcast;
  return options;
}

bool all_finite(const std::vector<float>& x) {
  return std::all_of(x.begin(), x.end(), [](float value) { return std::isfinite(value); });
}

/// In one round, worker 1's step leaves a bad value. Its error; empty: it has ended well.
std::optional<ErrorKind> train(const Group& group, const Case& tried, std::vector<float>& x) {
  try {
    Worker worker(group, testing::topology_for(tried.rule), {view_of("x", std::span(x))},
                  options_of(tried));
    for (int t = 0; t < rounds; ++t) {
      worker.step(
          [&] {
            for (float& value : x) value += 0.1F * (1 - value);
            if (group.rank() == 1 && t == ill_round) x[57] = static_cast<float>(tried.bad);
          },
          {.learning_rate = 0.1});
    }
    worker.await_finish();
  } catch (const Error& error) {
    if (group.rank() == 1 && error.kind() == ErrorKind::numeric)
      expect(std::string(error.what()).find("\"x\"") != std::string::npos, error.what());
    return error.kind();
  }
  return std::nullopt;
}

/// False if such options are refused.
bool infects_nobody(const Case& tried) {
  bool was_tried = true;
  local::run(workers, [&](const Group& group) {
    std::vector<float> x(100, 0.0F);
    const auto kind = train(group, tried, x);
    if (kind == ErrorKind::argument || kind == ErrorKind::topology) {
      if (group.rank() == 0) was_tried = false;
      return;
    }
    const ErrorKind expected = group.rank() == 1 ? ErrorKind::numeric : ErrorKind::peer_failed;
    expect(kind == expected, fmt::format("{}: worker {} ends otherwise ({})", tried.text(),
                                         group.rank(), kind ? static_cast<int>(*kind) : -1));
    if (group.rank() != 1) expect(all_finite(x), tried.text() + ": another worker has it, too");
  });
  return was_tried;
}

}  // namespace

TEST_CASE("with every rule and codec, what is not finite ends the worker and infects nobody") {
  int tried = 0;
  for (const std::string_view rule : algorithm::names()) {
    for (const std::int64_t staleness : {0, 2}) {
      for (const std::string_view code : testing::codecs_of_weights())
        tried += infects_nobody({std::string(rule), staleness, std::string(code)}) ? 1 : 0;
      tried += infects_nobody({std::string(rule), staleness, "identity", -HUGE_VAL}) ? 1 : 0;
    }
  }
  CHECK(tried > 60);
}

TEST_CASE("initial weights that are not finite are refused on all workers") {
  for (const Initial initial : {Initial::as_is, Initial::broadcast}) {
    for (const char* rule : {"awc", "atc"}) {
      local::run(3, [&](const Group& group) {
        std::vector<float> x(100, 0.0F);
        if (group.rank() == 0) x[3] = HUGE_VALF;
        WorkerOptions options = testing::quick();
        options.algorithm = algorithm::by_name(rule);
        options.initial = initial;
        std::optional<ErrorKind> kind;
        try {
          const Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, options);
        } catch (const Error& error) {
          kind = error.kind();
          expect(error.everywhere(), fmt::format("{} {} {}: {}", rule, static_cast<int>(initial),
                                                 group.rank(), error.what()));
        }
        expect(kind == ErrorKind::numeric, std::string(rule) + ": not refused");
      });
    }
  }
}

TEST_CASE("buffers are looked at, too, and elements of 16 bits") {
  local::run(2, [&](const Group& group) {
    std::vector<float> x(10);
    std::vector<BFloat16> halves(10), statistics(10);
    std::string said;
    try {
      Worker worker(group, stencil::ring(),
                    {view_of("x", std::span(x)), view_of("halves", std::span(halves)),
                     view_of("statistics", std::span(statistics), Role::buffer)},
                    testing::quick());
      for (int t = 0; t < rounds; ++t) {
        worker.step([&] {
          if (group.rank() == 1 && t == ill_round) statistics[9] = to_bfloat16(HUGE_VALF);
        });
      }
      worker.await_finish();
    } catch (const Error& error) {
      said = error.what();
    }
    const char* expected = group.rank() == 1 ? "\"statistics\"" : "failed";
    expect(said.find(expected) != std::string::npos, said);
    expect(std::isfinite(to_float(statistics[9])) == (group.rank() == 0), "infected");
  });
}

TEST_CASE("steps that are healed and blocks of several publications keep weights in their range") {
  for (const bool heals : {true, false}) {
    std::atomic<std::int64_t> rejected = 0, healed = 0;
    local::run(3, [&](const Group& group) {
      std::vector<float> x(100'000, static_cast<float>(group.rank()));
      WorkerOptions options = testing::quick();
      options.staleness = unbounded_staleness;
      options.not_finite = heals ? NotFinite::heal : NotFinite::abort;
      Worker worker(group, stencil::ring(), {view_of("x", std::span(x))}, options);
      const auto step = [&](int round) {
        if (heals && group.rank() == 1 && round % 5 == 4)
          x[static_cast<std::size_t>(round)] = std::nanf("");
      };
      for (int round = 0; round < 40; ++round) {
        if (heals) {
          worker.step([&] { step(round); });
        } else {
          RotatingArena<float>(worker).step([](const float*) {}, {});
        }
      }
      rejected += worker.stats().rejected;
      healed += worker.stats().healed;
      worker.await_finish();
      const auto [low, high] = std::minmax_element(x.begin(), x.end());
      expect(all_finite(x) && *low >= -1e-5F && *high <= 2 + 1e-5F,
             fmt::format("worker {}: {} to {}", group.rank(), *low, *high));
    });
    INFO(rejected << " reads of blocks were rejected");
    CHECK(healed == (heals ? 8 : 0));
  }
}
