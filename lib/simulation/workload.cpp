#include <fast/simulation/workload.hpp>

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <filesystem>
#include <fstream>

#include "core/registry.hpp"

namespace fast::simulation {
namespace {

constexpr double seconds_an_hour = 3600;

}  // namespace

double lognormal_factor(double sigma, std::uint64_t seed, std::uint64_t a, std::uint64_t b) {
  if (sigma == 0) return 1;
  return std::exp(sigma * Rng(mix_seed(seed, a, b)).normal() - sigma * sigma / 2);
}

double WorkTimes::of(int worker, std::int64_t round) const {
  const auto a = static_cast<std::uint64_t>(worker), b = static_cast<std::uint64_t>(round);
  const auto found = slow.find(worker);
  const double factor = found == slow.end() ? 1 : found->second;
  if (measured.empty()) return factor * seconds * lognormal_factor(jitter, seed, a, b);
  const std::vector<double>& steps = measured[a % measured.size()];
  return factor * steps[Rng(mix_seed(seed, a, b)).below(steps.size())];
}

double Failures::fails_after(int worker, std::int64_t round, double step_s) const {
  if (per_worker_hour <= 0) return -1;
  Rng rng(mix_seed(mix_seed(seed, 0xfa11), static_cast<std::uint64_t>(worker),
                   static_cast<std::uint64_t>(round)));
  const double mean_s = seconds_an_hour / per_worker_hour;
  const double fails_at = -mean_s * std::log1p(-rng.uniform());
  return fails_at < step_s ? fails_at / step_s : -1;
}

namespace {

using nlohmann::json;

// Means of the lines of one kind. A line counts the rounds since the line of its kind before it.
class StepMeans {
 public:
  explicit StepMeans(std::string kind) : kind_(std::move(kind)) {}

  void take(const json& line) {
    if (line.value("kind", "") != kind_ || !line.contains("phases")) return;
    const json& phase = line.at("phases").value("step", json());
    const json& step = line.value("step", json());
    if (!phase.is_number() || !step.is_number()) return;
    const double rounds = step.get<double>() - last_step_;
    last_step_ = step.get<double>();
    if (rounds > 0 && phase.get<double>() > 0) means_.push_back(phase.get<double>() / rounds);
  }
  void begin_at(double step) { last_step_ = step; }
  const std::vector<double>& means() const { return means_; }

 private:
  std::string kind_;
  double last_step_ = 0;
  std::vector<double> means_;
};

double number(const json& line, const char* key) {
  const json found = line.value(key, json());
  return found.is_number() ? found.get<double>() : 0;
}

// The round from which on the lines behind this one count; none: this line begins nothing.
std::optional<double> begins_at(const json& line) {
  if (line.value("kind", "") == "start") return number(line, "resumed_step");
  const std::string event = line.value("event", "");
  if (event == "seat taken" || event == "joined") return number(line, "step");
  return {};
}

std::vector<double> steps_in(const std::filesystem::path& path) {
  StepMeans intervals("interval"), epochs("epoch");
  std::ifstream file(path);
  for (std::string text; std::getline(file, text);) {
    const json line = json::parse(text, nullptr, false);
    if (!line.is_object()) continue;  // a run that was killed may end within a line
    if (const std::optional<double> step = begins_at(line)) {
      intervals.begin_at(*step);
      epochs.begin_at(*step);
    }
    intervals.take(line);
    epochs.take(line);
  }
  return intervals.means().empty() ? epochs.means() : intervals.means();
}

std::vector<std::filesystem::path> metrics_files(const std::string& directory) {
  std::vector<std::filesystem::path> paths;
  std::error_code none;
  for (const auto& entry :
       std::filesystem::directory_iterator(std::filesystem::path(directory) / "metrics", none)) {
    if (entry.path().extension() == ".jsonl") paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  return paths;
}

}  // namespace

std::vector<std::vector<double>> measured_steps(const std::string& directory) {
  std::vector<std::vector<double>> lists;
  for (const std::filesystem::path& path : metrics_files(directory)) {
    std::vector<double> steps = steps_in(path);
    if (!steps.empty()) lists.push_back(std::move(steps));
  }
  require(!lists.empty(), ErrorKind::data,
          "measured steps: {}/metrics has no file *.jsonl with the phases of an interval or an "
          "epoch; give the directory of a run of fast-train (--out)",
          directory);
  return lists;
}

namespace {

constexpr Named<Pattern> patterns[] = {{"neighbors", Pattern::neighbors},
                                       {"ring", Pattern::ring_allreduce},
                                       {"doubling", Pattern::doubling_allreduce},
                                       {"halving", Pattern::halving_allreduce},
                                       {"none", Pattern::nobody}};
constexpr Registry registry{patterns, "exchange: there is no \"{}\"; choose from {}"};

void check_steps(const WorkTimes& work, int workers) {
  require(work.seconds > 0 && std::isfinite(work.seconds), ErrorKind::argument,
          "simulation: steps of {} s; they take time, and end", work.seconds);
  require(work.jitter >= 0 && work.jitter <= 3, ErrorKind::argument,
          "simulation: a jitter of {}; it is from 0 to 3", work.jitter);
  for (const auto& [worker, factor] : work.slow) {
    require(worker >= 0 && worker < workers, ErrorKind::argument,
            "simulation: slow worker {}, but workers are 0 to {}", worker, workers - 1);
    require(factor > 0 && std::isfinite(factor), ErrorKind::argument,
            "simulation: the factor {} of worker {}; it is above 0 and finite", factor, worker);
  }
}

}  // namespace

std::string_view name(Pattern pattern) noexcept {
  for (const auto& [text, known] : patterns) {
    if (known == pattern) return text;
  }
  return "?";
}

Pattern pattern_by_name(std::string_view name) { return registry.at(name).value; }

void check(const Workload& workload) {
  require(workload.staleness >= 0, ErrorKind::argument,
          "simulation: a staleness of {}; it is at least 0", workload.staleness);
  require(workload.payload_bytes >= 0 && workload.payload_bytes <= 1e15, ErrorKind::argument,
          "simulation: messages of {} bytes; they have 0 to 1e15", workload.payload_bytes);
  require(workload.rounds >= 1, ErrorKind::argument, "simulation: {} rounds; at least 1 is needed",
          workload.rounds);
  check_steps(workload.work, workload.schedule.workers());
  const Failures& failures = workload.failures;
  for (const double each :
       {failures.per_worker_hour, failures.absent_s, failures.suspect_after_s}) {
    require(each >= 0 && std::isfinite(each), ErrorKind::argument,
            "simulation: {}; rates and times of failures are at least 0 and finite", each);
  }
}

}  // namespace fast::simulation
