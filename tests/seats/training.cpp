// Training runs with spares whose workers die or are suspended, against runs to which nothing
// happens: as good a model, every sample of every epoch, no hang.
#include <fmt/ranges.h>

#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <limits>

#include "seats/coverage.hpp"
#include "seats/launch.hpp"
#include "seats/training_work.hpp"
#include "support/temporary_directory.hpp"

using namespace seats;

namespace {

constexpr fast::Seconds longest_run{120};
constexpr double mean_within = 0.001, deviations_within = 3;

struct Settings {
  std::string fastrun, self, table;
  std::uint64_t count = 100, undisturbed = 100, growing = 0, seed = 1, from = 0;
  int samples = 6000, epochs = 6;
  std::vector<std::int64_t> staleness{0, 2};
  bool devices = false;
};

struct Outcome {
  TrainingPlan plan;
  double accuracy = std::numeric_limits<double>::quiet_NaN(), seconds = 0;
  std::uint64_t repeated = 0;  ///< samples, as the summary has it
  Coverage coverage;
  std::string wrong;  ///< empty: nothing
};

std::string judge(const Outcome& outcome, int status, std::size_t seats, std::size_t lost) {
  const Coverage& coverage = outcome.coverage;
  if (status < 0) return "it hung";
  if (status != 0) return fmt::format("status {}", status);
  if (seats != static_cast<std::size_t>(outcome.plan.seats()))
    return fmt::format("{} seats were held in the end", seats);
  if (lost > 0) return "a seat counts as lost";
  if (coverage.missing > 0) return fmt::format("{} batches were never used", coverage.missing);
  if (coverage.unknown > 0) return fmt::format("{} batches are unknown", coverage.unknown);
  if (outcome.repeated < coverage.again * TrainingPlan::batch_size)
    return "the summary counts fewer samples that were used again";
  return {};
}

Outcome run_one(const Settings& settings, TrainingPlan plan, const fast::data::Splits& data) {
  plan.devices = settings.devices;
  const fast::testing::TemporaryDirectory directory;
  const std::string path = directory.path().string();
  const auto began = fast::Clock::now();
  std::vector<std::string> words{settings.fastrun, "-n", std::to_string(plan.workers), "--spares",
                                 std::to_string(plan.spares)};
  if (plan.trouble == Trouble::grow) words.insert(words.end(), {"--grow-at", "0.3"});
  words.insert(words.end(), {settings.self, "--work", write(plan), path});
  const int status = run_to_the_end(words, path + "/log", longest_run);
  Outcome outcome;
  outcome.plan = plan;
  outcome.seconds = fast::Seconds(fast::Clock::now() - began).count();
  outcome.coverage = count_batches(plan, data, used_batches(path, plan));
  std::size_t seats = 0, lost = 0;
  for (int rank = plan.workers + plan.spares - 1; rank >= 0; --rank) {
    const auto result = result_of(path, rank);
    if (!result) continue;
    ++seats;
    lost += result->lost;
    outcome.accuracy = result->accuracy;
    outcome.repeated = std::max(outcome.repeated, result->repeated);
  }
  outcome.wrong = judge(outcome, status, seats, lost);
  if (!outcome.wrong.empty()) {
    std::ifstream log(path + "/log");
    for (std::string line; std::getline(log, line);) std::printf("    | %s\n", line.c_str());
  }
  return outcome;
}

constexpr const char* head =
    "| run | what | ranks | rounds | staleness | accuracy, % | batches | missing | twice | samples "
    "twice, summary | s | verdict |\n|---|---|---|---|---|---|---|---|---|---|---|---|\n";

std::string row(std::uint64_t index, const Outcome& one) {
  return fmt::format("| {} | {} | {} | {} | {} | {:.2f} | {} | {} | {} | {} | {:.1f} | {} |\n",
                     index, name(one.plan.trouble), fmt::join(one.plan.victims, ", "),
                     fmt::join(one.plan.rounds, ", "), one.plan.staleness, 100 * one.accuracy,
                     one.coverage.all, one.coverage.missing, one.coverage.again, one.repeated,
                     one.seconds, one.wrong.empty() ? "ok" : one.wrong);
}

/// Prints each row when it is known.
std::vector<Outcome> run_all(const Settings& settings, const fast::data::Splits& data,
                             std::uint64_t from, std::uint64_t count, bool disturbed,
                             std::FILE* table) {
  std::vector<Outcome> all;
  for (std::uint64_t index = from; index < from + count; ++index) {
    TrainingPlan plan =
        draw_training(settings.seed, index, settings.samples, settings.epochs, settings.staleness);
    if (!disturbed) {
      plan.trouble = Trouble::none;
      plan.victims.clear();
      plan.rounds.clear();
    }
    all.push_back(run_one(settings, plan, data));
    for (std::FILE* out : {stdout, table}) {
      if (out == nullptr) continue;
      std::fputs(row(index, all.back()).c_str(), out);
      std::fflush(out);
    }
  }
  return all;
}

struct Spread {
  double mean = 0, deviation = 0, lowest = 1;
};

/// Of the runs that ended.
Spread spread_of(const std::vector<Outcome>& outcomes) {
  Spread spread;
  double count = 0, squares = 0;
  for (const Outcome& one : outcomes) {
    if (std::isnan(one.accuracy)) continue;
    ++count;
    spread.mean += one.accuracy;
    spread.lowest = std::min(spread.lowest, one.accuracy);
  }
  spread.mean /= std::max(1.0, count);
  for (const Outcome& one : outcomes) {
    if (!std::isnan(one.accuracy)) squares += std::pow(one.accuracy - spread.mean, 2);
  }
  spread.deviation = std::sqrt(squares / std::max(1.0, count - 1));
  return spread;
}

/// The last lines of the table, and whether all is as it should be.
std::pair<std::string, bool> conclude(const std::vector<Outcome>& plain,
                                      const std::vector<Outcome>& disturbed) {
  const Spread expected = spread_of(plain), found = spread_of(disturbed);
  std::uint64_t failed = 0, hung = 0, missing = 0, again = 0;
  for (const auto* outcomes : {&plain, &disturbed}) {
    for (const Outcome& one : *outcomes) {
      failed += one.wrong.empty() ? 0 : 1;
      hung += one.wrong == "it hung" ? 1 : 0;
      missing += one.coverage.missing;
      again += one.coverage.again;
    }
  }
  const double off = found.mean - expected.mean;
  const double worst = (expected.mean - found.lowest) / expected.deviation;
  const bool as_good = std::abs(off) <= mean_within, none_far = !(worst > deviations_within);
  std::string text =
      "\n| | runs | mean, % | standard deviation | lowest, % |\n|---|---|---|---|---|\n";
  text += fmt::format("| undisturbed | {} | {:.3f} | {:.3f} | {:.2f} |\n", plain.size(),
                      100 * expected.mean, 100 * expected.deviation, 100 * expected.lowest);
  text += fmt::format("| disturbed | {} | {:.3f} | {:.3f} | {:.2f} |\n\n", disturbed.size(),
                      100 * found.mean, 100 * found.deviation, 100 * found.lowest);
  text += fmt::format("- difference of the means: {:+.3f} points, at most {} ({})\n", 100 * off,
                      100 * mean_within, as_good ? "ok" : "MISSED");
  text += fmt::format("- lowest disturbed run: {:.2f} standard deviations below, at most {} ({})\n",
                      worst, deviations_within, none_far ? "ok" : "MISSED");
  text += fmt::format("- batches never used: {}; used twice: {}\n", missing, again);
  text += fmt::format("- runs that hung: {}; runs with another fault: {}\n", hung, failed - hung);
  return {text, as_good && none_far && failed == 0};
}

int compare(const Settings& settings) {
  TrainingPlan any;
  any.samples = settings.samples;
  const fast::data::Splits data = training_data(any);
  std::FILE* table = settings.table.empty() ? nullptr : std::fopen(settings.table.c_str(), "w");
  if (!settings.table.empty() && table == nullptr) {
    std::fprintf(stderr, "--table: %s cannot be written\n", settings.table.c_str());
    return 2;
  }
  for (std::FILE* out : {stdout, table}) {
    if (out != nullptr) std::fputs(head, out);
  }
  const auto plain = run_all(settings, data, settings.from, settings.undisturbed, false, table);
  const auto disturbed = run_all(settings, data, settings.from, settings.count, true, table);
  const auto [text, good] = conclude(plain, disturbed);
  for (std::FILE* out : {stdout, table}) {
    if (out != nullptr) std::fputs(text.c_str(), out);
  }
  if (table != nullptr) std::fclose(table);
  return good ? 0 : 1;
}

/// Each batch of each epoch is used once, by as many workers as there are in that epoch.
int grow(const Settings& settings) {
  std::uint64_t failed = 0;
  for (std::uint64_t index = settings.from; index < settings.from + settings.growing; ++index) {
    const TrainingPlan plan =
        draw_growth(settings.seed, index, settings.samples, settings.epochs, settings.staleness);
    Outcome one = run_one(settings, plan, training_data(plan));
    if (one.wrong.empty() && one.coverage.again > 0)
      one.wrong = fmt::format("{} batches were used twice", one.coverage.again);
    std::fputs(row(index, one).c_str(), stdout);
    std::fflush(stdout);
    failed += one.wrong.empty() ? 0 : 1;
  }
  std::printf(
      "%llu runs of seed %llu, %llu failures\n", static_cast<unsigned long long>(settings.growing),
      static_cast<unsigned long long>(settings.seed), static_cast<unsigned long long>(failed));
  return failed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 4 && std::string(argv[1]) == "--work")
    return train_rank(argc, argv, read_training(argv[2]), argv[3]);
  Settings settings;
  CLI::App app("Training runs with spares", "seats_training");
  app.option_defaults()->always_capture_default();
  app.add_option("fastrun", settings.fastrun, "the launcher")->required();
  app.add_option("--count", settings.count, "disturbed runs");
  app.add_option("--undisturbed", settings.undisturbed,
                 "runs to which nothing happens, with the same seeds; two at least")
      ->check(CLI::Range(2, 100000));
  app.add_option("--growing", settings.growing,
                 "runs in which a spare joins, on synthetic data; instead of the others");
  app.add_option("--seed", settings.seed, "of the runs");
  app.add_option("--from", settings.from, "the first run, to have one again");
  app.add_option("--samples", settings.samples, "training samples")->check(CLI::Range(640, 60000));
  app.add_option("--epochs", settings.epochs, "of each run")->check(CLI::PositiveNumber);
  app.add_option("--staleness", settings.staleness, "to choose from")->delimiter(',');
  app.add_flag("--devices", settings.devices, "weights on devices, as the host plays them");
  app.add_option("--table", settings.table, "a file for the table (Markdown)");
  CLI11_PARSE(app, argc, argv);
  settings.self = std::filesystem::read_symlink("/proc/self/exe").string();
  return settings.growing > 0 ? grow(settings) : compare(settings);
}
