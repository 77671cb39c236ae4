// One site of a storm (storm.py): paced steps to a goal of its own.
//   storm_site NAME URL PLACE STALENESS PACE_S UNTIL
// Ends at the time UNTIL (seconds since 1970). Prints a line of JSON after each exchange, and one
// at the end.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "running_sites.hpp"
#include "worker/rules/outer_run.hpp"

using namespace fast;
using namespace fast::testing;

namespace {

constexpr std::size_t elements = 20'000;
constexpr std::int64_t every = 10;
constexpr double rate = 0.05;

double seconds_since_1970() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

void print(const nlohmann::json& line) {
  std::puts(line.dump().c_str());
  std::fflush(stdout);
}

/// The sites whose publications the latest exchange has combined.
class Taken {
 public:
  nlohmann::json since(const sites::SiteStats& stats) {
    nlohmann::json names = nlohmann::json::array();
    for (const sites::OtherSite& other : stats.others) {
      std::int64_t& before = reads_[other.name];
      if (other.reads > before) names.push_back(other.name);
      before = other.reads;
    }
    return names;
  }

 private:
  std::map<std::string, std::int64_t> reads_;
};

int run(const std::string& name, const std::string& url, int place, std::int64_t staleness,
        Seconds pace, double until) {
  const auto site = sites::join({.name = name,
                                 .url = url,
                                 .every = every,
                                 .rule = algorithm::gasloc({.period = every}),
                                 .staleness = staleness});
  std::vector<float> x(elements);
  WorkerOptions options;
  options.algorithm = algorithm::none();
  options.site = site;
  options.log = [&](LogLevel, std::string_view text) {
    print({{"time", seconds_since_1970()}, {"log", text}});
  };
  Worker worker(local::make_groups(1)[0], stencil::ring(), {view_of("x", std::span(x))}, options);
  const auto goal = static_cast<float>(goal_of(place));
  Taken taken;
  double slowest_s = 0;
  std::int64_t steps = 0;
  while (seconds_since_1970() < until) {
    const auto began = Clock::now();
    worker.step([&] {
      for (float& value : x) value -= static_cast<float>(rate) * (value - goal);
      std::this_thread::sleep_until(began + std::chrono::duration_cast<Clock::duration>(pace));
    });
    slowest_s = std::max(slowest_s, Seconds(Clock::now() - began).count());
    ++steps;
    if (worker.round() % every != 0) continue;
    const sites::SiteStats stats = sites::stats_of(*site);
    print({{"time", seconds_since_1970()},
           {"round", worker.round()},
           {"steps", steps},
           {"slowest", slowest_s},
           {"taken", taken.since(stats)},
           {"age", stats.median_age},
           {"x", x[0]}});
    slowest_s = 0;
  }
  worker.finish();
  print({{"time", seconds_since_1970()}, {"end", x[0]}, {"goal", goal}, {"steps", steps}});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int arguments = 7;
  if (argc != arguments) return 2;
  try {
    return run(argv[1], argv[2], std::atoi(argv[3]), std::atoi(argv[4]),
               Seconds(std::atof(argv[5])), std::atof(argv[6]));
  } catch (const std::exception& error) {
    print({{"time", seconds_since_1970()}, {"error", error.what()}});
    return 1;
  }
}
