#include <fast/train/metrics.hpp>

#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fast/core/error.hpp>
#include <fast/core/host.hpp>
#include <memory>
#include <optional>
#include <queue>

#include "core/whole_file.hpp"
#include "train/checkpoint/run_directories.hpp"

namespace fast::train {
namespace {

/// Of a line as MetricsWriter writes it; nothing if it was cut off. `key` is "\"name\":".
std::optional<double> number_in(std::string_view line, std::string_view key) {
  const std::size_t at = line.find(key);
  double number = 0;
  if (at == std::string_view::npos || !line.starts_with('{') || !line.ends_with('}')) return {};
  const char* first = line.data() + at + key.size();
  const auto [end, problem] = std::from_chars(first, line.data() + line.size(), number);
  return problem == std::errc() ? std::optional(number) : std::nullopt;
}

/// A worker's lines, one after the other.
class Source {
 public:
  explicit Source(const std::filesystem::path& file) : in_(file, std::ios::binary) {}
  /// False when there is no further line.
  bool next() {
    while (std::getline(in_, line_)) {
      const auto time = number_in(line_, R"("time":)");
      if (!time) continue;
      if (line_.starts_with(R"({"kind":"start")")) {
        ahead_s_ = number_in(line_, R"("clock_offset":)").value_or(0);
      }
      time_ = std::max(time_, *time - ahead_s_);  // clocks may be set back
      return true;
    }
    return false;
  }
  bool is_open() const { return in_.is_open(); }
  double time() const { return time_; }
  const std::string& line() const { return line_; }

 private:
  std::ifstream in_;
  std::string line_;
  double time_ = 0;
  double ahead_s_ = 0;  ///< the worker's clock, of worker 0's
};

struct IsLater {
  bool operator()(const Source* a, const Source* b) const { return a->time() > b->time(); }
};

std::vector<std::filesystem::path> metrics_files(const std::filesystem::path& directory) {
  std::error_code problem;
  std::vector<std::filesystem::path> files;
  for (const auto& entry :
       std::filesystem::directory_iterator(directory / metrics_directory, problem)) {
    const bool is_ours = is_metrics_name(entry.path().filename().string());
    if (is_ours && entry.is_regular_file(problem)) files.push_back(entry.path());
  }
  std::sort(files.begin(), files.end());
  return files;
}

/// Returns the files that cannot be read.
std::vector<std::filesystem::path> merge(const std::vector<std::filesystem::path>& files,
                                         WholeFile& out) {
  std::vector<std::filesystem::path> omitted;
  std::vector<std::unique_ptr<Source>> sources;
  std::priority_queue<Source*, std::vector<Source*>, IsLater> queue;
  for (const auto& file : files) {
    sources.push_back(std::make_unique<Source>(file));
    if (!sources.back()->is_open()) omitted.push_back(file);
    if (sources.back()->next()) queue.push(sources.back().get());
  }
  while (!queue.empty()) {
    Source* source = queue.top();
    queue.pop();
    out.write(source->line());
    out.write("\n");
    if (source->next()) queue.push(source);
  }
  return omitted;
}

}  // namespace

std::vector<std::filesystem::path> merge_metrics(const std::filesystem::path& directory) {
  const std::filesystem::path path = directory / merged_metrics_name;
  WholeFile out(path);
  std::vector<std::filesystem::path> omitted = merge(metrics_files(directory), out);
  out.finish();
  return omitted;
}

}  // namespace fast::train
