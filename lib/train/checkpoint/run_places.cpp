#include "train/checkpoint/run_places.hpp"

#include <algorithm>
#include <cctype>
#include <fast/core/error.hpp>
#include <fstream>
#include <nlohmann/json.hpp>
#include <vector>

#include "train/checkpoint/durable_file.hpp"
#include "train/checkpoint/manifest.hpp"

namespace fast::train {
namespace {

using std::filesystem::path;

constexpr const char* number_file = "run.json";

std::string read_number(const path& directory) {
  std::ifstream in(directory / number_file);
  const auto json = nlohmann::json::parse(in, nullptr, false);
  return json.is_object() ? json.value("run", std::string()) : std::string();
}

void write_number(const path& directory, const std::string& number) {
  if (read_number(directory) == number) return;
  const std::string text = nlohmann::ordered_json{{"format", "fast run 1"}, {"run", number}}.dump();
  write_durably(directory / number_file, {bytes_of(text + "\n")});
}

bool is_metrics_name(const std::string& name) {
  constexpr std::string_view head = "metrics-", tail = ".jsonl";
  if (!name.starts_with(head) || !name.ends_with(tail)) return false;
  const std::string digits = name.substr(head.size(), name.size() - head.size() - tail.size());
  return !digits.empty() && std::all_of(digits.begin(), digits.end(),
                                        [](unsigned char c) { return std::isdigit(c) != 0; });
}

std::vector<path> entries(const path& directory) {
  std::error_code problem;
  std::vector<path> all;
  for (const auto& entry : std::filesystem::directory_iterator(directory, problem))
    all.push_back(entry.path());
  std::sort(all.begin(), all.end());
  return all;
}

/// A result in a run's output. Files of a run that ended before its first result do not count.
bool is_result(const path& file) {
  std::error_code problem;
  const std::string name = file.filename().string();
  return name == mean_model_name ||
         (is_metrics_name(name) && std::filesystem::file_size(file, problem) > 0);
}

/// The first file or directory that a run has written there.
std::optional<path> found_in(const path& directory, bool of_checkpoints) {
  for (const path& entry : entries(directory)) {
    if (of_checkpoints ? round_of(entry).has_value() : is_result(entry)) return entry;
  }
  return std::nullopt;
}

bool are_same(const path& a, const path& b) {
  std::error_code problem;
  return std::filesystem::equivalent(a, b, problem);
}

/// The directory of the checkpoints from which the run resumes.
std::optional<path> resumed_directory(const RunPlaces& places) {
  if (!places.resume) return std::nullopt;
  std::error_code problem;
  const path whole = std::filesystem::weakly_canonical(*places.resume, problem);
  return std::filesystem::exists(whole / manifest_name, problem) ? whole.parent_path() : whole;
}

bool is_resumed_run(const path& directory, const path& resumed, bool of_checkpoints) {
  const std::string number = read_number(directory);
  if (!number.empty() && number == read_number(resumed)) return true;
  return are_same(directory, of_checkpoints ? resumed : resumed.parent_path());
}

/// A file of another run, if there is one.
std::optional<path> in_the_way(const RunPlaces& places, const path& directory,
                               bool of_checkpoints) {
  const auto resumed = resumed_directory(places);
  if (resumed && is_resumed_run(directory, *resumed, of_checkpoints)) return std::nullopt;
  return found_in(directory, of_checkpoints);
}

void require_free(const RunPlaces& places, const path& directory, bool of_checkpoints) {
  const auto found = in_the_way(places, directory, of_checkpoints);
  if (!found || places.overwrite) return;
  constexpr const char* advice = "choose another directory, or overwrite that run (--overwrite)";
  require(places.resume.has_value(), ErrorKind::argument,
          "Trainer: {} holds a run already ({}); resume from its checkpoints, {}",
          directory.string(), found->filename().string(), advice);
  fail(ErrorKind::argument, "Trainer: {} holds another run ({}) than {}, which is resumed; {}",
       directory.string(), found->filename().string(), places.resume->string(), advice);
}

void make(const path& directory) {
  std::error_code problem;
  std::filesystem::create_directories(directory, problem);
  require(!problem, ErrorKind::resource,
          "Trainer: the directory {} cannot be made ({}); choose another", directory.string(),
          problem.message());
}

void remove_results(const path& directory) {
  std::error_code ignored;
  for (const path& entry : entries(directory)) {
    const std::string name = entry.filename().string();
    if (name == mean_model_name || is_metrics_name(name)) std::filesystem::remove(entry, ignored);
  }
}

}  // namespace

void require_free(const RunPlaces& places) {
  if (places.out) require_free(places, *places.out, false);
  if (places.checkpoints) require_free(places, *places.checkpoints, true);
}

std::string number_of(const RunPlaces& places, const std::string& fresh) {
  const auto resumed = resumed_directory(places);
  if (!resumed) return fresh;
  const bool goes_on = (places.out && is_resumed_run(*places.out, *resumed, false)) ||
                       (places.checkpoints && is_resumed_run(*places.checkpoints, *resumed, true));
  const std::string number = read_number(*resumed);
  return goes_on && !number.empty() ? number : fresh;
}

void claim(const RunPlaces& places, const std::string& number,
           std::optional<std::int64_t> resumed_round) {
  if (places.out) {
    if (in_the_way(places, *places.out, false)) remove_results(*places.out);
    make(*places.out);
    write_number(*places.out, number);
  }
  if (places.checkpoints) {
    const bool others = in_the_way(places, *places.checkpoints, true).has_value();
    remove_checkpoints_after(*places.checkpoints, others ? -1 : resumed_round.value_or(-1));
    make(*places.checkpoints);
    write_number(*places.checkpoints, number);
  }
}

}  // namespace fast::train
