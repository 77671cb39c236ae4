#include "fast_sites/commands.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/train/safetensors.hpp>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "core/message.hpp"
#include "core/whole_file.hpp"
#include "sites/onlooker.hpp"

namespace fast_sites {

using namespace fast;
using fast::sites::Sight;
using fast::sites::Status;

namespace {

void log(LogLevel level, std::string_view text) {
  if (level != LogLevel::info) fast::say("fast-sites: {}\n", printable(text));
}

sites::Onlooker look_at(const Access& access) {
  const std::string name = sites::new_onlooker_name();
  return {
      sites::connect_bus(
          sites::BusOptions{name, access.url, "URL", access.credentials_file, access.ca_file}, log),
      name, log};
}

void require_known_format(const std::filesystem::path& out) {
  require(
      out.extension() == ".safetensors", ErrorKind::argument,
      "--out {}: its ending names no format; choose .safetensors (fast-model export makes .onnx "
      "of it)",
      printable(out.string()));
}

void require_name(const std::string& site) {
  require(site.empty() || sites::is_site_name(site), ErrorKind::argument,
          "--site {}: it is no name; 1 to 40 letters, digits, '-' and '_' are required",
          printable(site));
}

std::size_t elements_of(const std::vector<TensorView>& tensors) {
  std::size_t elements = 0;
  for (const TensorView& tensor : tensors) elements += tensor.element_count();
  return elements;
}

// What an onlooker has seen, as text and as JSON.

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

/// A line for each site, and one that says what all train. Where they differ, a warning.
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

/// The same for programs. `about` is null where sites differ.
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

}  // namespace

void status(const Access& access, const StatusOptions& options) {
  sites::Onlooker onlooker = look_at(access);
  const std::vector<sites::Sight> sights = onlooker.look();
  if (options.json) fmt::print("{}\n", json_of(sights, onlooker.run()));
  require(!sights.empty(), ErrorKind::resource,
          "status: no site of the run \"{}\" is there; see whether sites run, and that they have "
          "this run's name",
          printable(onlooker.run()));
  if (!options.json) fmt::print("{}", text_of(sights));
}

void wait(const Access& access, const WaitOptions& options) {
  sites::Onlooker onlooker = look_at(access);
  if (onlooker.await(options.sites, options.round, Deadline(Seconds(options.timeout_s)))) return;
  fail(ErrorKind::deadline, "wait: {} of {} sites {} after {:g} s; start others, or wait longer",
       onlooker.counted(), options.sites,
       options.round == 0 ? "take part" : fmt::format("have made {} rounds", options.round),
       options.timeout_s);
}

void fetch(const Access& access, const FetchOptions& options) {
  require_name(options.site);
  require_known_format(options.out);
  require_writable(options.out);
  sites::Onlooker onlooker = look_at(access);
  const sites::SiteModel model = onlooker.fetch(options.site, Deadline(Seconds(options.timeout_s)));
  train::save_safetensors(options.out, model.tensors,
                          {{"fast.run", onlooker.run()},
                           {"fast.site", model.site},
                           {"fast.round", fmt::format("{}", model.round)}});
  fmt::print("{}: site {}, round {}, {} tensors, {} elements\n", printable(options.out), model.site,
             model.round, model.tensors.size(), elements_of(model.tensors));
}

}  // namespace fast_sites
