#include <fmt/format.h>

#include <algorithm>

#include "core/contains.hpp"
#include "fast_report/curves.hpp"
#include "fast_report/page.hpp"
#include "fast_report/summary.hpp"
#include "fast_report/time_use.hpp"
#include "fast_report/workers.hpp"

namespace fast_report {

using nlohmann::json;

namespace {

std::string facts_table(const Rows& rows, std::size_t from, std::size_t to) {
  std::string html = "<table>\n";
  for (std::size_t i = from; i < to; ++i) {
    html += "<tr>" + element("th", rows[i].first) + element("td", rows[i].second) + "</tr>\n";
  }
  return html + "</table>\n";
}

/// Two tables side by side.
std::string in_columns(const Rows& rows) {
  const std::size_t middle = (rows.size() + 1) / 2;
  return "<div class=\"columns\">\n" + facts_table(rows, 0, middle) +
         facts_table(rows, middle, rows.size()) + "</div>\n";
}

json axes(std::initializer_list<const char*> names) { return names; }

json curve_data(const Curves& curves, const char* title, const char* format, json names) {
  return {{"workers", curves.workers},
          {"mean", curves.mean},
          {"title", title},
          {"format", format},
          {"axes", std::move(names)}};
}

/// Findings, faults and facts.
std::string overview_of(const Run& run) {
  std::string html = list(findings(run), " class=\"findings\"");
  if (!run.faults.empty()) {
    html += "<div class=\"faults\">What is missing:\n" + list(run.faults) + "</div>\n";
  }
  return html + in_columns(facts(run));
}

std::string change_of(const std::vector<Point>& means, std::string (*shown)(double)) {
  if (means.empty()) return "";
  if (means.size() == 1) return shown(means.front().value);
  return shown(means.front().value) + " → " + shown(means.back().value);
}

std::string thin_and_thick(const Run& run) {
  return run.workers.size() > 1 ? " Thin lines: single workers. Thick lines: their mean." : "";
}

std::string loss_of(const Run& run, Figures& figures) {
  const Curves loss =
      curves(run, {{"loss", "training"}, {"validation_loss", "validation"}, {"test_loss", "test"}});
  if (loss.mean.empty()) return "";
  return figures.add("curve", curve_data(loss, "loss", ".4~g", axes({"epoch", "seconds"})),
                     "Loss: training " + change_of(means(run, "loss"), short_number),
                     "After each epoch." + thin_and_thick(run));
}

std::string validated_on(const Run& run) {
  for (const auto& [rank, worker] : run.workers) {
    for (const Part& part : worker.parts) {
      for (const Measurement& epoch : part.epochs) {
        if (const auto text = epoch.fields.text("validated")) {
          return " Validation and test: of the " + *text + ".";
        }
      }
    }
  }
  return "";
}

std::string accuracy_of(const Run& run, Figures& figures) {
  const Curves accuracy = curves(
      run,
      {{"accuracy", "training"}, {"validation_accuracy", "validation"}, {"test_accuracy", "test"}});
  if (accuracy.mean.empty()) return "";
  const std::string shown = accuracy.mean.back()["measure"];
  const std::string field = shown == "training" ? "accuracy" : shown + "_accuracy";
  const auto best = means(run, field);
  return figures.add("curve", curve_data(accuracy, "accuracy", ".1~%", axes({"epoch", "seconds"})),
                     "Accuracy: " + shown + " " + change_of(best, percent),
                     "After each epoch." + validated_on(run) + thin_and_thick(run));
}

constexpr std::size_t most_measures = 20;

/// Names of the task's measures, without those that have figures of their own.
std::vector<std::string> measures_in(const Run& run) {
  std::vector<std::string> names;
  const auto add = [&](const std::string& field) {
    for (const std::string part : {"validation_", "test_"}) {
      if (!field.starts_with(part)) continue;
      const std::string name = field.substr(part.size());
      const bool is_known = name == "loss" || name == "accuracy" || name == "samples";
      if (is_known || names.size() >= most_measures) continue;
      if (!fast::contains(names, name)) names.push_back(name);
    }
  };
  for (const auto& [rank, worker] : run.workers) {
    for (const Part& part : worker.parts) {
      for (const Measurement& epoch : part.epochs) {
        for (const auto& [field, value] : epoch.fields.object().items()) add(field);
      }
    }
  }
  return names;
}

std::string measure_of(const Run& run, const std::string& name, Figures& figures) {
  const Curves found =
      curves(run, {{"validation_" + name, "validation"}, {"test_" + name, "test"}});
  if (found.mean.empty()) return "";
  const std::string shown = found.mean.back()["measure"];
  return figures.add(
      "curve", curve_data(found, name.c_str(), ".4~g", axes({"epoch", "seconds"})),
      name + ": " + shown + " " + change_of(means(run, shown + "_" + name), short_number),
      "After each epoch." + validated_on(run) + thin_and_thick(run));
}

/// A small figure over one axis.
std::string small_curve(const Run& run, Figures& figures, const Measure& measure,
                        const char* format, const std::string& title, const char* about) {
  const Curves found = curves(run, {measure});
  if (found.mean.empty()) return "";
  json data = curve_data(found, measure.name.c_str(), format, axes({"epoch"}));
  if (measure.field == "learning_rate") data["step"] = true;
  return figures.add("curve", std::move(data), title, about);
}

std::string speed_of(const Run& run, Figures& figures) {
  Curves speed;
  speed.workers = throughput(run);
  if (speed.workers.empty()) return "";
  json data = curve_data(speed, "samples/s", ",~r", axes({"seconds"}));
  data["scale"] = {{"zero", true}};
  const Summary summary = summarize(run);
  return figures.add("curve", std::move(data), "Speed of each worker",
                     summary.samples_per_second
                         ? "All together in the last epoch: " +
                               short_number(*summary.samples_per_second) + " samples/s."
                         : "One line for each worker.");
}

bool is_positive(const Run& run, const std::string& field) {
  const std::vector<Point> all = points(run, field);
  return std::ranges::any_of(all, [](const Point& point) { return point.value > 0; });
}

/// Loss, accuracy, learning rate, speed.
std::string learning_of(const Run& run, Figures& figures) {
  std::string html = loss_of(run, figures);
  html += accuracy_of(run, figures);
  for (const std::string& name : measures_in(run)) html += measure_of(run, name, figures);
  if (html.empty()) html = element("p", "No epoch was finished: there are no curves.");
  html += "<div class=\"columns\">\n";
  html += small_curve(run, figures, {"learning_rate", "learning rate"}, ".3~g", "Learning rate",
                      "Of the optimizer, in each epoch.");
  html += speed_of(run, figures);
  html += small_curve(run, figures, {"gradient_norm", "gradient norm"}, ".3~g", "Gradient norm",
                      "Thin lines: single workers. Thick line: their mean.");
  if (is_positive(run, "age_max")) {
    html += small_curve(run, figures, {"age_mean", "mean age (rounds)"}, ".2~f",
                        "Age of what workers read", "How many rounds old neighbors' weights were.");
  }
  return html + "</div>\n";
}

std::string contraction_text(const Contraction& contraction) {
  if (!contraction.gap) return " A predicted rate is left out. " + contraction.why_not;
  std::string text = fmt::format(
      " Averaging alone multiplies it by at most 1 − gap = {:.4g} a round (doubly stochastic W, "
      "gap = 1 − ‖W − 11ᵀ/N‖₂; Xiao and Boyd 2004)",
      1 - *contraction.gap);
  const double rounds = contraction.rounds_per_tenth();
  if (rounds > 0) text += fmt::format(": by 10 in {:.3g} rounds", rounds);
  return text +
         ". The dashed line falls at this rate from the largest value to the smallest. Training "
         "steps move workers apart in every round; the measured distance therefore stays at a "
         "noise floor.";
}

/// The consensus distance, or why it is left out.
std::string consensus_of(const Run& run, Figures& figures) {
  const std::vector<Point> mean = means(run, "consensus_distance");
  const auto positive = [](const Point& point) { return point.value > 0; };
  if (std::ranges::none_of(mean, positive)) {
    return element("p", run.size < 2 ? "One worker: there is no consensus distance."
                                     : "The run has no consensus distance above 0.");
  }
  const Contraction rate = contraction(run);
  json rows = json::array();
  for (const Point& point : mean) {
    if (positive(point)) {
      rows.push_back({{"rounds", point.rounds},
                      {"value", point.value},
                      {"part", point.part},
                      {"epoch", point.epoch}});
    }
  }
  json data = {{"mean", std::move(rows)},
               {"predicted", rate.gap ? prediction(mean, *rate.gap) : json::array()}};
  return figures.add("consensus", std::move(data), "How far the workers are apart",
                     "sqrt(mean_i ‖x_i − x̄‖²), after each epoch." + contraction_text(rate));
}

json ranks_of(const std::map<int, WorkerState>& states) {
  json ranks = json::array();
  for (const auto& [rank, state] : states) ranks.push_back(rank);
  return ranks;
}

std::string title_of(const std::map<int, WorkerState>& states) {
  std::map<State, int> count;
  for (const auto& [rank, state] : states) ++count[state.state];
  std::string title = "Workers:";
  for (const auto& [state, number] : count) {
    title += fmt::format("{} {} {}", title.back() == ':' ? "" : ",", number, name(state));
  }
  return title;
}

std::string waited_for_figure(const std::map<int, TimeSpent>& spent, json workers,
                              Figures& figures) {
  const std::map<int, double> waited = waited_for(spent);
  if (waited.empty()) return "";
  json rows = json::array();
  auto most = waited.begin();
  for (auto one = waited.begin(); one != waited.end(); ++one) {
    rows.push_back({{"worker", one->first}, {"seconds", one->second}});
    if (one->second > most->second) most = one;
  }
  const std::string title = most->second > 0
                                ? fmt::format("Worker {} was waited for the longest", most->first)
                                : "Nobody was waited for";
  return figures.add("waitedFor", {{"rows", std::move(rows)}, {"workers", std::move(workers)}},
                     title, "Time that its readers spent waiting for it, added up.");
}

/// The topology, and who was waited for.
std::string workers_of(const Run& run, Figures& figures) {
  const auto state = states(run);
  const Network picture = network(run, state);
  json data = {{"nodes", picture.nodes},
               {"edges", picture.edges},
               {"width", picture.width},
               {"height", picture.height},
               {"grid", picture.is_grid}};
  const std::string drawing = figures.add(
      "network", std::move(data), title_of(state),
      std::string("The half of an edge beside a worker says how long that worker waited "
                  "for the one at the other end.") +
          (picture.is_grid ? " Lines that leave the grid come back on the other side." : ""));
  return "<div class=\"columns\">\n" + drawing +
         waited_for_figure(totals(run), ranks_of(state), figures) + "</div>\n";
}

std::string anatomy_figure(const Run& run, const json& workers, Figures& figures) {
  json rows = anatomy(run);
  if (rows.empty()) return "";
  const TimeSpent all = sum(totals(run));
  json data = {{"rows", std::move(rows)}, {"phases", phases_in_order(all)}, {"workers", workers}};
  const double seconds = all.seconds();
  return figures.add("anatomy", std::move(data),
                     fmt::format("Where the time went: {} step, {} waiting",
                                 percent(all.phase("step") / seconds), percent(all.wait_share())),
                     "step: forward, backward, optimizer. publish: writing weights for neighbors. "
                     "wait: for neighbors. mix: averaging. rest: data, evaluation, checkpoints and "
                     "all else.");
}

/// Phases, waiting over time, events.
std::string time_of(const Run& run, Figures& figures) {
  const json workers = ranks_of(states(run));
  std::string html = anatomy_figure(run, workers, figures);
  json cells = waiting_over_time(run), events = events_over_time(run);
  if (cells.empty() && events.empty()) return html;
  const bool quiet = events.empty();
  const std::string title = quiet ? "Waiting over time" : "Waiting and events over time";
  json data = {{"cells", std::move(cells)},
               {"events", std::move(events)},
               {"workers", workers},
               {"last", last_second(run)}};
  return html + figures.add("timeline", std::move(data), title,
                            std::string("Share of the time that each worker waited. Gray: no "
                                        "measurement.") +
                                (quiet ? " There were no events." : ""));
}

/// The options, folded.
std::string options_of(const Run& run) {
  if (run.options.empty()) return "";
  Rows rows;
  for (const Option& option : run.options) rows.emplace_back(option.name, option.value);
  std::string html = "<details class=\"print\">\n" +
                     element("summary", fmt::format("Options of the run ({})", rows.size()));
  for (const std::string& remark : run.remarks)
    html += "<p class=\"note\">" + escaped(remark) + "</p>\n";
  return html + in_columns(rows) + "</details>\n";
}

}  // namespace

std::string section_of(const Run& run, Figures& figures) {
  std::string html = overview_of(run);  // one after another: figures are numbered in this order
  html += learning_of(run, figures);
  html += consensus_of(run, figures);
  html += workers_of(run, figures);
  html += time_of(run, figures);
  return html + options_of(run);
}

}  // namespace fast_report
