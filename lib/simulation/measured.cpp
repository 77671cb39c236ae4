#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/simulation/work.hpp>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

namespace fast::simulation {
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
  std::sort(paths.begin(), paths.end());
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

}  // namespace fast::simulation
