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
    if (other.clock_ahead_s != 0) add("clock_ahead_s", other.clock_ahead_s);
    if (other.reads > 0) add("age", static_cast<double>(other.age));
  }
  return scalars;
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
