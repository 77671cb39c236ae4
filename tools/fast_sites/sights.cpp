#include "fast_sites/sights.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>

#include "core/message.hpp"

namespace fast_sites {

using fast::sites::Sight;
using fast::sites::Status;

namespace {

using Json = nlohmann::ordered_json;

std::string_view state_of(const Status& site) {
  if (site.leaving) return "leaves";
  return site.begun ? "trains" : "waits to begin";
}

/// Of the newest publication.
std::optional<double> samples_of(const Status& site) {
  if (site.newest.empty()) return std::nullopt;
  return std::ranges::max_element(site.newest, {}, &fast::sites::Publication::round)->samples;
}

/// The names of the sites, by what they train.
std::map<std::string, std::vector<std::string>> kinds_of(const std::vector<Sight>& sights) {
  std::map<std::string, std::vector<std::string>> kinds;
  for (const Sight& sight : sights) kinds[sight.status.about].push_back(sight.status.site);
  return kinds;
}

/// Sites that others have heard of, and that say nothing.
std::vector<std::string> silent_sites(const std::vector<Sight>& sights) {
  std::set<std::string> names;
  for (const Sight& sight : sights)
    for (const auto& [site, incarnation] : sight.status.known) names.insert(site);
  for (const Sight& sight : sights) names.erase(sight.status.site);
  return {names.begin(), names.end()};
}

std::string line_of(const Sight& sight, std::size_t width) {
  const std::optional<double> samples = samples_of(sight.status);
  return fmt::format("{:<{}}  {:>7}  {:>8}  {:<14}  {:>7}  {:.1f} s ago\n", sight.status.site,
                     width, sight.status.round, sight.status.next, state_of(sight.status),
                     samples ? fmt::format("{:g}", *samples) : "", sight.silent_s);
}

std::string heading(std::size_t width) {
  return fmt::format("{:<{}}  {:>7}  {:>8}  {:<14}  {:>7}  {}\n", "site", width, "round",
                     "exchange", "state", "samples", "heard");
}

std::string about_lines(const std::vector<Sight>& sights) {
  const auto kinds = kinds_of(sights);
  if (kinds.size() == 1) return fmt::format("all: {}\n", fast::printable(kinds.begin()->first));
  std::string text = "warning: these sites do not train the same model with the same options:\n";
  for (const auto& [about, names] : kinds)
    text += fmt::format("  {}: {}\n", fmt::join(names, ", "), fast::printable(about));
  return text;
}

Json json_of_site(const Sight& sight) {
  const Status& site = sight.status;
  const std::optional<double> samples = samples_of(site);
  return {{"name", site.site},
          {"round", site.round},
          {"next_exchange", site.next},
          {"state", state_of(site)},
          {"samples", samples ? Json(*samples) : Json()},
          {"heard_s", sight.silent_s},
          {"about", site.about}};
}

}  // namespace

std::string text_of(const std::vector<Sight>& sights) {
  std::size_t width = 4;
  for (const Sight& sight : sights) width = std::max(width, sight.status.site.size());
  std::string text = heading(width);
  for (const Sight& sight : sights) text += line_of(sight, width);
  text += about_lines(sights);
  const std::vector<std::string> silent = silent_sites(sights);
  if (!silent.empty())
    text += fmt::format("not there any more: {}\n",
                        fast::printable(fmt::format("{}", fmt::join(silent, ", "))));
  return text;
}

std::string json_of(const std::vector<Sight>& sights, const std::string& run) {
  const auto kinds = kinds_of(sights);
  Json all = Json::array();
  for (const Sight& sight : sights) all.push_back(json_of_site(sight));
  const Json result = {{"run", run},
                       {"sites", all},
                       {"about", kinds.size() == 1 ? Json(kinds.begin()->first) : Json()},
                       {"silent", silent_sites(sights)}};
  return result.dump(2, ' ', false, Json::error_handler_t::replace);
}

}  // namespace fast_sites
