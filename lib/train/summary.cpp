#include <fmt/ranges.h>

#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/topology/topology.hpp>
#include <fast/train/summary.hpp>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "core/whole_file.hpp"
#include "train/overview.hpp"

namespace fast::train {
namespace {

std::string percent(double fraction) { return fmt::format("{:.2f} %", 100 * fraction); }

std::string size_text(double bytes) {
  constexpr const char* units[] = {"B", "kB", "MB", "GB"};
  std::size_t unit = 0;
  for (; bytes >= 1000 && unit < 3; ++unit) bytes /= 1000;
  return fmt::format("{:.{}f} {}", bytes, unit == 0 ? 0 : 1, units[unit]);
}

nlohmann::ordered_json json_of(const std::vector<NeighborShare>& shares) {
  nlohmann::ordered_json all = nlohmann::ordered_json::array();
  for (const NeighborShare& of : shares)
    all.push_back(
        {{"worker", of.worker}, {"reads", of.reads}, {"clipped", of.clipped}, {"kept", of.kept}});
  return all;
}

/// Of the worker of which least was kept.
std::string least_kept(const std::vector<NeighborShare>& shares) {
  const auto least = std::ranges::min_element(shares, {}, &NeighborShare::kept);
  if (least->clipped == 0) return "everything";
  return fmt::format("{} of worker {}, clipped in {} of {} reads", percent(least->kept),
                     least->worker, least->clipped, least->reads);
}

struct Figure {
  std::string name, text;
  bool of_neighbors = false;  ///< an all-reduce has none
};

}  // namespace

std::vector<TestMeasure> Summary::results() const {
  if (!measures.empty()) return measures;
  return {{"accuracy", Measure::Form::share, test_accuracy_mean_model, test_accuracy_worst_worker}};
}

std::string Summary::to_json() const {
  using Json = nlohmann::ordered_json;
  Json json = Json::object();
  const auto known = [this](double figure) { return evaluated ? Json(figure) : Json(); };
  for (const TestMeasure& measure : results()) {
    json["test_" + measure.name + "_mean_model"] = known(measure.mean_model);
    json["test_" + measure.name + "_worst_worker"] = known(measure.worst_worker);
  }
  json["test_loss_mean_model"] = known(test_loss_mean_model);
  const Json others = {
      {"consensus_distance", known(consensus_distance)},
      {"samples_per_second", known(samples_per_second)},
      {"wait_fraction", known(wait_fraction)},
      {"publish_fraction", known(publish_fraction)},
      {"mix_fraction", known(mix_fraction)},
      {"fresh_fraction", known(fresh_fraction)},
      {"sent_fraction", known(sent_fraction)},
      {"bytes_sent_per_worker_per_round", known(bytes_sent_per_worker_per_round)},
      {"rounds", rounds},
      {"closing_rounds", closing_rounds},
      {"epochs", epochs},
      {"lr_reductions", lr_reductions},
      {"workers", workers},
      {"topology", topology},
      {"spectral_gap", spectral_gap},
      {"lazy_weights", lazy_weights},
      {"connected", connected},
      {"exchange", exchange},
      {"algorithm", algorithm},
      {"codec", codec},
      {"staleness", staleness},
      {"seconds", seconds},
      {"rejoined", rejoined},
      {"healed", healed},
      {"shares", json_of(shares)},
      {"lost", lost},
      {"replaced", replaced},
      {"left", left},
      {"joined", joined},
      {"repeated_samples", repeated_samples},
      {"parts", parts},
      {"stopped", stopped},
      {"unsaved", unsaved},
  };
  json.update(others);
  return json.dump(2, ' ', false, Json::error_handler_t::replace);
}

std::string Summary::to_table() const { return table(true); }
std::string Summary::results_table() const { return table(false); }

std::string Summary::table(bool with_run) const {
  if (!evaluated) {
    return fmt::format("  stopped after {} rounds, {}\n", rounds,
                       unsaved.empty() ? "to be resumed" : "not saved: " + unsaved);
  }
  std::vector<std::pair<std::string, std::string>> rows;
  for (const TestMeasure& measure : results()) {
    const std::string name = "test " + measure.name;
    rows.emplace_back(name + ", mean model", measure_text(measure.form, measure.mean_model));
    rows.emplace_back(name + ", worst worker", measure_text(measure.form, measure.worst_worker));
  }
  const std::vector<Figure> figures = {
      {"consensus distance", fmt::format("{:.4g}", consensus_distance), true},
      {"samples per second", fmt::format("{:.0f}", samples_per_second)},
      {"time waiting", percent(wait_fraction)},
      {"time publishing", percent(publish_fraction), true},
      {"time mixing", percent(mix_fraction), true},
      {"fresh neighbor reads", percent(fresh_fraction), true},
      {"messages sent", percent(sent_fraction), true},
      {"sent per worker and round", size_text(bytes_sent_per_worker_per_round)},
      {"rounds", fmt::format("{}", rounds)},
      {"closing rounds", fmt::format("{}", closing_rounds), true},
      {"epochs", fmt::format("{}", epochs)},
  };
  const std::vector<Figure> run = {
      {"workers", fmt::format("{}", workers)},
      {"topology", topology, true},
      {"spectral gap",
       fmt::format("{:.4g}{}", spectral_gap, lazy_weights ? ", lazy weights (I + W) / 2" : ""),
       true},
      {"exchange", exchange},
      {"algorithm", algorithm, true},
      {"codec", codec, true},
      {"staleness", staleness, true},
  };
  for (const auto* some : {&figures, &run}) {
    if (some == &run && !with_run) continue;
    for (const Figure& figure : *some)
      if (!figure.of_neighbors || !all_reduces(exchange))
        rows.emplace_back(figure.name, figure.text);
  }
  rows.emplace_back("seconds", fmt::format("{:.1f}", seconds));
  std::string table;
  if (!unsaved.empty()) table += fmt::format("  {:<28}  {}\n", "not saved", unsaved);
  if (stopped)
    table += fmt::format("  {:<28}  after {} rounds, as was asked for\n", "stopped", rounds);
  if (!lost.empty()) table += fmt::format("  {:<28}  {}\n", "lost workers", fmt::join(lost, ", "));
  if (!left.empty())
    table += fmt::format("  {:<28}  {}\n", "left as asked to", fmt::join(left, ", "));
  if (!joined.empty())
    table += fmt::format("  {:<28}  {}\n", "joined as asked to", fmt::join(joined, ", "));
  if (!replaced.empty())
    table += fmt::format("  {:<28}  {}; {} samples used again\n", "replaced by spares",
                         fmt::join(replaced, ", "), repeated_samples);
  if (parts.size() > 1)
    table += fmt::format("  {:<28}  {}; all figures: the first\n", "parts", describe_parts(parts));
  if (!connected && with_run) {
    table += fmt::format("  {:<28}  {}\n", "connected", "no: the parts of the topology stay apart");
  }
  if (lr_reductions > 0)
    table += fmt::format("  {:<28}  {}\n", "learning rate reductions", lr_reductions);
  if (rejoined > 0) table += fmt::format("  {:<28}  {}\n", "workers taken back", rejoined);
  if (healed > 0) table += fmt::format("  {:<28}  {}\n", "steps left out, not finite", healed);
  if (!shares.empty()) table += fmt::format("  {:<28}  {}\n", "least kept", least_kept(shares));
  for (const auto& [name, value] : rows) table += fmt::format("  {:<28}  {}\n", name, value);
  return table;
}

bool Summary::same_workers() const {
  return !ended_alone && lost.empty() && replaced.empty() && left.empty() && joined.empty();
}

void Summary::write_json(const std::filesystem::path& path) const {
  write_whole(path, to_json() + '\n');
}

}  // namespace fast::train
