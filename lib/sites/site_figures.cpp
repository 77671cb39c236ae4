#include "sites/site_figures.hpp"

#include <fmt/format.h>

#include "core/site_scalar.hpp"

namespace fast::sites {
namespace {

std::string megabytes(double bytes) { return fmt::format("{:.1f} MB", bytes / 1e6); }

}  // namespace

std::vector<std::pair<std::string, double>> scalars_of(const SiteStats& stats) {
  std::vector<std::pair<std::string, double>> scalars = {
      {"site/exchanges", static_cast<double>(stats.exchanges)},
      {"site/reads", static_cast<double>(stats.reads)},
      {"site/left_out", static_cast<double>(stats.left_out)},
      {"site/bytes_sent", stats.bytes_sent},
      {"site/bytes_received", stats.bytes_received},
      {"site/waited_s", stats.waited_s},
      {"site/median_age", stats.median_age}};
  for (const OtherSite& other : stats.others) {
    const auto add = [&](const char* what, double value) {
      scalars.emplace_back(fmt::format("{}{}/{}", other_site_scalars, other.name, what), value);
    };
    add("seen_s", other.seen_s);
    add("round", static_cast<double>(other.round));
    if (other.delay_s > 0) add("delay_s", other.delay_s);
    if (other.clock_ahead_s) add("clock_ahead_s", *other.clock_ahead_s);
    if (other.reads > 0) add("age", static_cast<double>(other.age));
  }
  return scalars;
}

void tell_figures(const SiteStats& stats, std::set<std::string>& told, Observer& observer,
                  int worker, std::int64_t round) {
  const auto now = Clock::now();
  std::set<std::string> others;
  for (const OtherSite& other : stats.others) others.insert(other.name);
  for (const std::string& site : std::exchange(told, others)) {
    if (others.contains(site)) continue;
    observer.on_site({.kind = SiteEvent::Kind::forgotten,
                      .site = site,
                      .worker = worker,
                      .round = round,
                      .at = now});
  }
  for (const auto& [name, value] : scalars_of(stats))
    observer.on_scalar({name, value, worker, round, now});
}

std::vector<std::pair<std::string, std::string>> rows_of(const SiteStats& stats) {
  return {
      {"exchanges between sites", fmt::format("{}, {} publications read, {} left out",
                                              stats.exchanges, stats.reads, stats.left_out)},
      {"median age of what was read", fmt::format("{:g} rounds", stats.median_age)},
      {"to and from other sites", fmt::format("{} sent, {} received", megabytes(stats.bytes_sent),
                                              megabytes(stats.bytes_received))},
      {"time waiting for sites", fmt::format("{:.1f} s", stats.waited_s)}};
}

}  // namespace fast::sites
