// One site of a storm (storm.py, bench/sites.sh): paced steps to a goal of its own.
//   storm_site NAME URL PLACE STALENESS PACE_S UNTIL [ELEMENTS EVERY DELAY CODEC EXPECT RULE]
// Ends at the time UNTIL (seconds since 1970), or leaves at SIGTERM. At SIGUSR1, its weights are no
// numbers any more. Prints a line of JSON after each exchange, and one at the end.
#include <fast/topology/graphs.hpp>
#include <fast/topology/load.hpp>

#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "running_sites.hpp"
#include "worker/rules/outer_run.hpp"
#include "worker/site_codec.hpp"

using namespace fast;
using namespace fast::testing;

namespace {

constexpr double rate = 0.05;

struct Options {
  std::string name, url;
  int place = 0;
  std::int64_t staleness = 0;
  Seconds pace{0.04};
  double until = 0;
  std::size_t elements = 20'000;
  std::int64_t every = 10, delay = 0;
  std::string codec = "identity";
  int expect = 1;
  std::string rule = "gasloc";
};

volatile std::sig_atomic_t leaves = 0, breaks = 0;

Options options_in(int count, char** words) {
  Options options{words[1], words[2]};
  options.place = std::atoi(words[3]);
  options.staleness = std::atoi(words[4]);
  options.pace = Seconds(std::atof(words[5]));
  options.until = std::atof(words[6]);
  if (count > 7) options.elements = std::strtoull(words[7], nullptr, 10);
  if (count > 8) options.every = std::atoi(words[8]);
  if (count > 9) options.delay = std::atoi(words[9]);
  if (count > 10) options.codec = words[10];
  if (count > 11) options.expect = std::atoi(words[11]);
  if (count > 12) options.rule = words[12];
  return options;
}

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

algorithm::Rule rule_of(const Options& given) {
  const std::int64_t every = given.every, delay = given.delay;
  if (given.rule == "noloco") return algorithm::noloco({.period = every, .delay = delay});
  if (given.rule == "diloco")
    return algorithm::diloco({.period = every, .momentum = 0.5, .delay = delay});
  const double step = given.codec.starts_with("sparse=") ? 0.1 : given.codec == "int2" ? 0.3 : 0.7;
  return algorithm::gasloc({.period = every, .consensus_step = step, .delay = delay});
}

TopologyRule topology_of(const Options& given) {
  if (given.rule == "noloco") return schedule::random_matchings(7);
  return given.rule == "diloco" ? TopologyRule(stencil::complete()) : stencil::ring();
}

int run(const Options& given) {
  const std::int64_t every = given.every;
  const SiteCodec codec = site_codec(given.codec).value();
  const auto site = sites::join({.name = given.name,
                                 .url = given.url,
                                 .every = every,
                                 .rule = rule_of(given),
                                 .codec = {.kind = codec.kind},
                                 .fraction = codec.fraction,
                                 .topology = topology_of(given),
                                 .staleness = given.staleness,
                                 .expect = given.expect});
  std::vector<float> x(given.elements);
  WorkerOptions options;
  options.algorithm = algorithm::none();
  options.site = site;
  options.log = [&](LogLevel, std::string_view text) {
    print({{"time", seconds_since_1970()}, {"log", text}});
  };
  Worker worker(local::make_groups(1)[0], stencil::ring(), {view_of("x", std::span(x))}, options);
  const auto goal = static_cast<float>(goal_of(given.place));
  Taken taken;
  double slowest_s = 0;
  std::int64_t steps = 0;
  while (seconds_since_1970() < given.until && leaves == 0) {
    const auto began = Clock::now();
    worker.step([&] {
      for (float& value : x) value -= static_cast<float>(rate) * (value - goal);
      if (breaks != 0) x[0] = std::nanf("");
      std::this_thread::sleep_until(began +
                                    std::chrono::duration_cast<Clock::duration>(given.pace));
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
           {"waited", stats.waited_s},
           {"sent", stats.bytes_sent},
           {"received", stats.bytes_received},
           {"left_out", stats.left_out},
           {"x", x[0]}});
    slowest_s = 0;
  }
  worker.finish();
  print({{"time", seconds_since_1970()},
         {leaves == 0 ? "end" : "left", x[0]},
         {"goal", goal},
         {"steps", steps}});
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  constexpr int fewest = 7;
  if (argc < fewest) return 2;
  std::signal(SIGTERM, [](int) { leaves = 1; });
  std::signal(SIGUSR1, [](int) { breaks = 1; });
  try {
    return run(options_in(argc, argv));
  } catch (const std::exception& error) {
    print({{"time", seconds_since_1970()}, {"error", error.what()}});
    return 1;
  }
}
