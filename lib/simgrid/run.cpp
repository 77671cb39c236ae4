#include <fast/simgrid/run.hpp>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <simgrid/kernel/Timer.hpp>
#include <simgrid/kernel/routing/NetPoint.hpp>
#include <simgrid/s4u.hpp>

#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fstream>
#include <sstream>
#include <utility>
#include <vector>

#include "core/contains.hpp"
#include "core/registry.hpp"
#include "simgrid/carriers.hpp"
#include "simgrid/exchange_runs.hpp"

namespace fast::simgrid {

// Makes SimGrid's platforms.

namespace {

namespace s4u = ::simgrid::s4u;
using ::simgrid::kernel::routing::NetPoint;
using Hosts = std::vector<s4u::Host*>;

constexpr int most_cores = 100'000;
constexpr double any_speed = 1e9;  // steps take the seconds that they are given
constexpr auto full_duplex = s4u::Link::SharingPolicy::SPLITDUPLEX;

bool is_file(const std::string& kind) { return kind.ends_with(".xml"); }

void add_hosts_to_star(s4u::NetZone& star, const Platform& platform, int count, Hosts& hosts) {
  for (int k = 0; k < count; ++k) {
    const std::string number = std::to_string(hosts.size());
    s4u::Host* host = star.create_host("host" + number, any_speed);
    s4u::SplitDuplexLink* link = star.create_split_duplex_link("link" + number, platform.bandwidth);
    link->set_latency(platform.latency_s);
    star.add_route(host->get_netpoint(), nullptr, nullptr, nullptr,
                   {{link, s4u::LinkInRoute::Direction::UP}}, true);
    hosts.push_back(host);
  }
}

Hosts build_star(const Platform& platform, int count) {
  Hosts hosts;
  s4u::NetZone* star = s4u::create_star_zone("star");
  add_hosts_to_star(*star, platform, count, hosts);
  star->seal();
  return hosts;
}

s4u::ClusterCallbacks collecting(Hosts& hosts) {
  return s4u::ClusterCallbacks(
      [&hosts](s4u::NetZone* zone, const std::vector<unsigned long>&, unsigned long) {
        s4u::Host* host = zone->create_host("host" + std::to_string(hosts.size()), any_speed);
        hosts.push_back(host);
        return std::pair<NetPoint*, NetPoint*>(host->get_netpoint(), nullptr);
      });
}

// k switches with k hosts and k links up each, and k switches above.
Hosts build_fat_tree(const Platform& platform, int count) {
  Hosts hosts;
  const auto k = static_cast<unsigned>(std::ceil(std::sqrt(count)));
  s4u::create_fatTree_zone("fat_tree", nullptr, s4u::FatTreeParams(2, {k, k}, {1, k}, {1, 1}),
                           collecting(hosts), platform.bandwidth, platform.latency_s, full_duplex)
      ->seal();
  return hosts;
}

// k groups of k routers with k hosts each.
Hosts build_dragonfly(const Platform& platform, int count) {
  Hosts hosts;
  const auto k = static_cast<unsigned>(std::max(2.0, std::ceil(std::cbrt(count) - 1e-9)));
  s4u::create_dragonfly_zone("dragonfly", nullptr, s4u::DragonflyParams({k, 1}, {1, 1}, {k, 1}, k),
                             collecting(hosts), platform.bandwidth, platform.latency_s, full_duplex)
      ->seal();
  return hosts;
}

Hosts build_sites(const Platform& platform, int count) {
  Hosts hosts;
  s4u::NetZone* wan = s4u::create_full_zone("wan");
  std::vector<s4u::NetZone*> sites;
  std::vector<NetPoint*> routers;
  for (int site = 0; site < platform.sites; ++site) {
    const std::string name = "site" + std::to_string(site);
    s4u::NetZone* star = s4u::create_star_zone(name);
    star->set_parent(wan);
    const int first = site * count / platform.sites, last = (site + 1) * count / platform.sites;
    add_hosts_to_star(*star, platform, last - first, hosts);
    routers.push_back(star->create_router(name + "_router"));
    star->add_route(routers.back(), nullptr, nullptr, nullptr, {}, true);
    star->seal();
    sites.push_back(star);
  }
  for (std::size_t a = 0; a < sites.size(); ++a) {
    for (std::size_t b = 0; b < a; ++b) {
      s4u::SplitDuplexLink* link =
          wan->create_split_duplex_link(fmt::format("wan{}_{}", b, a), platform.wan_bandwidth);
      link->set_latency(platform.wan_latency_s);
      wan->add_route(sites[a]->get_netpoint(), sites[b]->get_netpoint(), routers[a], routers[b],
                     {{link, s4u::LinkInRoute::Direction::UP}}, true);
    }
  }
  wan->seal();
  return hosts;
}

// Names with numbers by their numbers: host2 before host10.
bool precedes(const s4u::Host* a, const s4u::Host* b) {
  const std::string& x = a->get_name();
  const std::string& y = b->get_name();
  return x.size() != y.size() ? x.size() < y.size() : x < y;
}

Hosts load_file(const s4u::Engine& engine, const std::string& path) {
  engine.load_platform(path);
  Hosts hosts = engine.get_all_hosts();
  std::ranges::sort(hosts, precedes);
  return hosts;
}

Hosts built(const s4u::Engine& engine, const Platform& platform, int hosts) {
  if (is_file(platform.kind)) return load_file(engine, platform.kind);
  if (platform.kind == "fat_tree") return build_fat_tree(platform, hosts);
  if (platform.kind == "dragonfly") return build_dragonfly(platform, hosts);
  if (platform.kind == "sites") return build_sites(platform, hosts);
  return build_star(platform, hosts);
}

// SimGrid ends the program on a file that is no platform.
void check_file(const std::string& path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  require(file.good(), ErrorKind::data, "platform: {} cannot be read; name another file", path);
  require(text.str().find("<platform") != std::string::npos, ErrorKind::data,
          "platform: {} has no element <platform>; give a platform of SimGrid", path);
}

std::vector<std::string> platform_kinds() { return {"star", "fat_tree", "dragonfly", "sites"}; }

/// Throws Error for what build_platform() would end the program for.
void check_platform(const Platform& platform) {
  if (is_file(platform.kind)) return check_file(platform.kind);
  const std::vector<std::string> kinds = platform_kinds();
  const std::vector<std::string_view> names(kinds.begin(), kinds.end());
  require(contains(kinds, platform.kind), ErrorKind::argument,
          "platform: there is no \"{}\"; choose from {}, or a file that ends in .xml{}",
          platform.kind, fmt::join(kinds, ", "), did_you_mean(platform.kind, names));
  require(platform.bandwidth > 0 && platform.wan_bandwidth > 0 && platform.latency_s >= 0 &&
              platform.wan_latency_s >= 0,
          ErrorKind::argument, "platform: bandwidths are above 0, and latencies at least 0");
  require(platform.sites >= 1, ErrorKind::argument, "platform: {} sites; at least 1 is needed",
          platform.sites);
}

/// Builds the network in the engine. The hosts in the order of the workers, at least `hosts`.
std::vector<s4u::Host*> build_platform(const s4u::Engine& engine, const Platform& platform,
                                       int hosts) {
  std::vector<s4u::Host*> found = built(engine, platform, hosts);
  require(found.size() >= static_cast<std::size_t>(hosts), ErrorKind::data,
          "platform: {} has {} hosts, the workers need {}", platform.kind, found.size(), hosts);
  return found;
}

// Messages within a host do not meet the network.
class SimulatedStage final : public Stage {
 public:
  SimulatedStage(std::vector<s4u::Host*> hosts, const RunOptions& options)
      : hosts_(std::move(hosts)),
        options_(options),
        free_s_(hosts_.size(), std::vector<double>(static_cast<std::size_t>(options.cores))) {}

  double now() const override { return s4u::Engine::get_clock(); }

  void after(double seconds, Event event) override {
    ::simgrid::kernel::timer::Timer::set(now() + seconds, std::move(event));
  }

  void send(int from, int to, double size_bytes, Event arrived) override {
    const std::size_t source = host(from), reader = host(to);
    if (source == reader) return copy(reader, size_bytes, std::move(arrived));
    sent_bytes_[{source, reader}] += size_bytes;
    // Events run outside of actors, whose stacks are small: there may be 10^5 of them.
    carriers_.send(hosts_[source], hosts_[reader], size_bytes,
                   [this, reader, size_bytes, event = std::move(arrived)] {
                     after(0, [=, this] {
                       if (options_.cores == 0) return event();
                       copy(reader, size_bytes, event);
                     });
                   });
  }

  void finish() override {
    is_finished_ = true;
    finished_->release();
  }
  bool is_finished() const { return is_finished_; }
  void wait_until_finished() { finished_->acquire(); }

  std::vector<LinkUse> links() const {
    std::map<std::string, double> uses;
    for (const auto& [ends, size_bytes] : sent_bytes_) {
      std::vector<s4u::Link*> route;
      hosts_[ends.first]->route_to(hosts_[ends.second], route, nullptr);
      for (const s4u::Link* link : route) uses[link->get_name()] += size_bytes;
    }
    std::vector<LinkUse> sorted;
    for (const auto& [link, size_bytes] : uses) sorted.push_back({link, size_bytes});
    std::ranges::stable_sort(
        sorted, [](const LinkUse& a, const LinkUse& b) { return a.size_bytes > b.size_bytes; });
    return sorted;
  }

 private:
  std::size_t host(int worker) const {
    return static_cast<std::size_t>(worker / options_.workers_per_host);
  }

  // One message after another on each core.
  void copy(std::size_t host, double size_bytes, Event copied) {
    const double copy_s = size_bytes / options_.memory_bandwidth;
    if (options_.cores == 0) return after(copy_s, std::move(copied));
    double& free_s = *std::ranges::min_element(free_s_[host]);
    free_s = std::max(now(), free_s) + copy_s;
    after(free_s - now(), std::move(copied));
  }

  std::vector<s4u::Host*> hosts_;
  RunOptions options_;
  std::vector<std::vector<double>> free_s_;  // when each core of a host is free
  Carriers carriers_;
  s4u::SemaphorePtr finished_ = s4u::Semaphore::create(0);
  bool is_finished_ = false;
  std::map<std::pair<std::size_t, std::size_t>, double> sent_bytes_;
};

// SimGrid's own options: bytes take bytes/bandwidth, and directions do not slow each other.
s4u::Engine& engine() {
  static std::vector<std::string> words = {"fast",
                                           "--log=root.thres:critical",
                                           "--cfg=network/model:CM02",
                                           "--cfg=network/TCP-gamma:0",
                                           "--cfg=network/crosstraffic:no",
                                           "--cfg=contexts/stack-size:16",
                                           "--cfg=contexts/guard-size:0",
                                           "--cfg=debug/verbose-exit:no"};
  static std::vector<char*> arguments = [] {
    std::vector<char*> pointers;
    for (std::string& word : words) pointers.push_back(word.data());
    pointers.push_back(nullptr);
    return pointers;
  }();
  static int count = static_cast<int>(words.size());
  static s4u::Engine made(&count, arguments.data());
  return made;
}

template <class Workers>
simulation::RoundFigures figures_of(const simulation::Workload& load, SimulatedStage& stage,
                                    s4u::Host* home) {
  Workers workers(load, stage);
  // Something must be running besides actors that wait, or SimGrid ends them.
  s4u::Actor::create("run", home, [&] {
    workers.start();
    stage.wait_until_finished();
  });
  engine().run();
  require(stage.is_finished(), ErrorKind::internal,
          "simulation: at {:.6g} s, workers wait for each other without end", stage.now());
  return workers.tally().figures();
}

void check_options(const simulation::Workload& load, const RunOptions& options) {
  require(options.workers_per_host >= 1, ErrorKind::argument,
          "simulation: {} workers a host; at least 1 is needed", options.workers_per_host);
  require(options.memory_bandwidth > 0, ErrorKind::argument,
          "simulation: a memory bandwidth of {}; it is above 0", options.memory_bandwidth);
  require(options.cores >= 0 && options.cores <= most_cores, ErrorKind::argument,
          "simulation: {} cores; they are from 0 to {}", options.cores, most_cores);
  simulation::check(load);
}

}  // namespace

SimulatedRun run(const simulation::Workload& workload, const Platform& platform,
                 const RunOptions& options) {
  check_options(workload, options);
  check_platform(platform);
  const int workers = workload.schedule.workers();
  const int hosts = (workers + options.workers_per_host - 1) / options.workers_per_host;
  std::vector<s4u::Host*> built = build_platform(engine(), platform, hosts);
  s4u::Host* home = built.front();
  SimulatedStage stage(std::move(built), options);
  SimulatedRun result;
  result.figures = workload.pattern == simulation::Pattern::neighbors
                       ? figures_of<NeighborRun>(workload, stage, home)
                       : figures_of<CollectiveRun>(workload, stage, home);
  result.links = stage.links();
  return result;
}

}  // namespace fast::simgrid
