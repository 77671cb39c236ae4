#include "fast_report/summary.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "fast_report/curves.hpp"
#include "fast_report/html.hpp"
#include "fast_report/time_use.hpp"
#include "fast_report/workers.hpp"

namespace fast_report {

namespace {

/// The latest end line that has the field.
std::optional<double> at_end(const Run& run, const std::string& field) {
  std::optional<double> value;
  int number = -1;
  for (const auto& [rank, worker] : run.workers) {
    for (const Part& part : worker.parts) {
      if (!part.end || part.number <= number || !part.end->number(field)) continue;
      value = part.end->number(field);
      number = part.number;
    }
  }
  return value;
}

std::int64_t epochs_of(const Run& run) {
  std::int64_t most = 0;
  for (const auto& [rank, worker] : run.workers) {
    for (const Part& part : worker.parts) {
      for (const Measurement& epoch : part.epochs) {
        most = std::max(most, epoch.fields.integer("epoch").value_or(0));
      }
    }
  }
  return most;
}

std::optional<double> total_speed(const Run& run) {
  const std::vector<Point> speeds = means(run, "samples_per_second");
  if (speeds.empty()) return std::nullopt;
  return speeds.back().value * speeds.back().worker;
}

}  // namespace

Summary summarize(const Run& run) {
  Summary summary;
  summary.epochs = epochs_of(run);
  for (const auto& [rank, worker] : run.workers) {
    summary.rounds = std::max(summary.rounds, rounds_of(worker));
  }
  summary.seconds = last_second(run);
  summary.loss = last_mean(run, "loss");
  if (!are_same(run, "validation_accuracy", "test_accuracy")) {
    summary.validation_accuracy = last_mean(run, "validation_accuracy");
  }
  summary.test_accuracy = at_end(run, "test_accuracy");
  if (!summary.test_accuracy) summary.test_accuracy = last_mean(run, "test_accuracy");
  summary.samples_per_second = total_speed(run);
  summary.wait_share = sum(totals(run)).wait_share();
  for (const auto& [rank, state] : states(run)) {
    if (state.state == State::finished) ++summary.finished;
    if (state.state == State::lost || state.state == State::suspected) summary.lost.push_back(rank);
    if (state.state == State::failed) summary.failed.push_back(rank);
    if (state.state == State::left) summary.left.push_back(rank);
  }
  return summary;
}

namespace {

void add(Rows& rows, const std::string& name, const std::optional<std::string>& text) {
  if (text && !text->empty()) rows.emplace_back(name, *text);
}

std::optional<std::string> whole(const Fields& fields, const std::string& name) {
  const auto number = fields.integer(name);
  return number ? std::optional(grouped(*number)) : fields.text(name);
}

std::string workers_text(const Run& run) {
  std::map<State, std::vector<int>> by_state;
  for (const auto& [rank, state] : states(run)) by_state[state.state].push_back(rank);
  std::string text = grouped(run.size);
  for (const auto& [state, ranks] : by_state) {
    text += fmt::format("; {}: {}", name(state), by_state.size() == 1 ? "all" : as_ranges(ranks));
  }
  return text;
}

std::string hosts_text(const Run& run) {
  std::set<std::string> hosts;
  for (const auto& [rank, worker] : run.workers) {
    if (const auto host = worker.parts.back().start.text("host")) hosts.insert(*host);
  }
  if (hosts.size() > 4) return counted(static_cast<std::int64_t>(hosts.size()), "host");
  return fmt::format("{}", fmt::join(hosts, ", "));
}

std::string trained_text(const Run& run, const Summary& summary) {
  std::string text = fmt::format("{}, {}, {}", counted(summary.epochs, "epoch"),
                                 counted(summary.rounds, "round"), duration(summary.seconds));
  const int parts = parts_of(run.workers);
  if (parts > 1) text += fmt::format("; resumed {}", counted(parts - 1, "time"));
  return text;
}

}  // namespace

Rows facts(const Run& run) {
  const Fields& start = run.start();
  const Summary summary = summarize(run);
  Rows rows;
  add(rows, "Directory", run.directory.string());
  add(rows, "Workers", workers_text(run));
  add(rows, "Hosts", hosts_text(run));
  add(rows, "Trained", trained_text(run, summary));
  add(rows, "Topology", start.text("topology"));
  if (const auto gap = start.number("spectral_gap")) add(rows, "Spectral gap", short_number(*gap));
  add(rows, "Rule", start.text("algorithm"));
  add(rows, "Staleness", start.text("staleness"));
  add(rows, "Codec", start.text("codec"));
  add(rows, "Exchange", start.text("exchange"));
  add(rows, "Model", start.text("model"));
  add(rows, "Parameters", whole(start, "parameters"));
  add(rows, "Data", start.text("data"));
  add(rows, "Training samples", whole(start, "samples"));
  add(rows, "Batch", whole(start, "batch"));
  add(rows, "Optimizer", start.text("optimizer"));
  add(rows, "Learning rate", start.text("learning_rate"));
  add(rows, "Seed", start.text("seed"));
  add(rows, "Validated on", start.text("validation"));
  return rows;
}

namespace {

std::string result_text(const Summary& summary) {
  std::vector<std::string> parts;
  if (summary.test_accuracy) {
    parts.push_back("test accuracy of the mean model " + percent(*summary.test_accuracy));
  }
  if (summary.validation_accuracy) {
    parts.push_back("validation accuracy " + percent(*summary.validation_accuracy));
  }
  if (summary.loss) parts.push_back("training loss " + short_number(*summary.loss));
  if (parts.empty()) return "No epoch was finished.";
  return fmt::format("After {} in {}: {}.", counted(summary.epochs, "epoch"),
                     duration(summary.seconds), fmt::join(parts, ", "));
}

/// The first failure is the cause: it ends the others.
std::string failure_text(const Run& run, const std::vector<int>& failed) {
  const Event* first = nullptr;
  int worker = failed.front();
  double first_s = 0;
  for (const int rank : failed) {
    const Part& part = run.workers.at(rank).parts.back();
    for (const Event& event : part.events) {
      if (event.name != "failed" || (first != nullptr && part.at(event.seconds) >= first_s))
        continue;
      first = &event;
      first_s = part.at(event.seconds);
      worker = rank;
    }
  }
  const std::string reason = first == nullptr ? "" : first->text;
  return fmt::format("The run failed on worker {}{}{}.", worker, reason.empty() ? "" : ": ",
                     reason);
}

std::string unfinished_text(const Run& run) {
  for (const auto& [rank, state] : states(run)) {
    if (state.state == State::no_end || state.state == State::suspected) {
      return " The run was killed, or it still trains.";
    }
  }
  return "";
}

std::string end_text(const Run& run, const Summary& summary) {
  if (summary.finished == run.size) return counted(run.size, "worker") + " finished.";
  std::string text =
      fmt::format("{} of {} finished.", summary.finished, counted(run.size, "worker"));
  if (!summary.failed.empty()) text += fmt::format(" {}", failure_text(run, summary.failed));
  if (!summary.left.empty()) {
    text += fmt::format(" Left on request: worker {}.", as_ranges(summary.left));
  }
  if (summary.finished == 0 && summary.failed.empty()) text += unfinished_text(run);
  if (!summary.lost.empty()) {
    text += fmt::format(" Lost: worker {}.", as_ranges(summary.lost));
  }
  return text;
}

std::string waiting_text(const Run& run, const Summary& summary) {
  const auto spent = totals(run);
  if (sum(spent).seconds() <= 0) return "";
  std::string text =
      fmt::format("Workers spent {} of their time waiting.", percent(summary.wait_share));
  const std::map<int, double> waited = waited_for(spent);
  const auto most =
      std::ranges::max_element(waited, {}, [](const auto& one) { return one.second; });
  if (most != waited.end() && most->second > 0) {
    text += fmt::format(" They waited the longest for worker {}: {} in all.", most->first,
                        duration(most->second));
  }
  return text;
}

}  // namespace

std::vector<std::string> findings(const Run& run) {
  const Summary summary = summarize(run);
  std::vector<std::string> sentences = {result_text(summary), end_text(run, summary)};
  const std::string waiting = waiting_text(run, summary);
  if (!waiting.empty()) sentences.push_back(waiting);
  return sentences;
}

namespace {

const std::string unknown = "–";

/// Without the columns that have a value in no line.
std::vector<std::vector<std::string>> without_unknown(
    const std::vector<std::vector<std::string>>& table) {
  std::vector<std::vector<std::string>> kept(table.size());
  for (std::size_t column = 0; column < table.front().size(); ++column) {
    const bool empty = std::all_of(table.begin() + 1, table.end(),
                                   [&](const auto& line) { return line[column] == unknown; });
    if (empty) continue;
    for (std::size_t i = 0; i < table.size(); ++i) kept[i].push_back(table[i][column]);
  }
  return kept;
}

}  // namespace

std::vector<std::vector<std::string>> comparison(const std::vector<Run>& runs,
                                                 const std::vector<std::string>& names) {
  std::vector<std::vector<std::string>> table = {
      {"Run", "Workers", "Finished", "Topology", "Rule", "Epochs", "Rounds", "Time",
       "Training loss", "Validation accuracy", "Test accuracy", "Samples/s", "Waiting"}};
  for (std::size_t i = 0; i < runs.size(); ++i) {
    const Run& run = runs[i];
    const Summary s = summarize(run);
    table.push_back({names[i], grouped(run.size), grouped(s.finished),
                     run.start().text("topology").value_or(unknown),
                     run.start().text("algorithm").value_or(unknown), grouped(s.epochs),
                     grouped(s.rounds), duration(s.seconds), short_number(s.loss),
                     percent(s.validation_accuracy), percent(s.test_accuracy),
                     short_number(s.samples_per_second), percent(s.wait_share)});
  }
  return without_unknown(table);
}

std::vector<std::vector<std::string>> differences(const std::vector<Run>& runs,
                                                  const std::vector<std::string>& names) {
  std::set<std::string> options;
  for (const Run& run : runs) {
    for (const Option& option : run.options) options.insert(option.name);
  }
  std::vector<std::vector<std::string>> table = {{"Option"}};
  table[0].insert(table[0].end(), names.begin(), names.end());
  for (const std::string& option : options) {
    std::vector<std::string> line = {option};
    for (const Run& run : runs) line.push_back(run.option(option).value_or(unknown));
    const bool same = std::all_of(line.begin() + 1, line.end(),
                                  [&](const std::string& value) { return value == line[1]; });
    if (!same) table.push_back(std::move(line));
  }
  return table;
}

}  // namespace fast_report
