#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fstream>
#include <simgrid/kernel/routing/NetPoint.hpp>
#include <sstream>

#include "core/closest.hpp"
#include "simgrid/build_platform.hpp"

namespace fast::simgrid {
namespace {

namespace s4u = ::simgrid::s4u;
using ::simgrid::kernel::routing::NetPoint;
using Hosts = std::vector<s4u::Host*>;

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
  std::sort(hosts.begin(), hosts.end(), precedes);
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

}  // namespace

std::vector<std::string> platform_kinds() { return {"star", "fat_tree", "dragonfly", "sites"}; }

void check_platform(const Platform& platform) {
  if (is_file(platform.kind)) return check_file(platform.kind);
  const std::vector<std::string> kinds = platform_kinds();
  const std::vector<std::string_view> names(kinds.begin(), kinds.end());
  require(std::find(kinds.begin(), kinds.end(), platform.kind) != kinds.end(), ErrorKind::argument,
          "platform: there is no \"{}\"; choose from {}, or a file that ends in .xml{}",
          platform.kind, fmt::join(kinds, ", "), did_you_mean(platform.kind, names));
  require(platform.bandwidth > 0 && platform.wan_bandwidth > 0 && platform.latency_s >= 0 &&
              platform.wan_latency_s >= 0,
          ErrorKind::argument, "platform: bandwidths are above 0, and latencies at least 0");
  require(platform.sites >= 1, ErrorKind::argument, "platform: {} sites; at least 1 is needed",
          platform.sites);
}

std::vector<s4u::Host*> build_platform(const s4u::Engine& engine, const Platform& platform,
                                       int hosts) {
  std::vector<s4u::Host*> found = built(engine, platform, hosts);
  require(found.size() >= static_cast<std::size_t>(hosts), ErrorKind::data,
          "platform: {} has {} hosts, the workers need {}", platform.kind, found.size(), hosts);
  return found;
}

}  // namespace fast::simgrid
