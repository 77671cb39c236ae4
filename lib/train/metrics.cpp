#include "train/metrics.hpp"

#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <fast/core/error.hpp>
#include <memory>
#include <optional>
#include <queue>

#include "core/whole_file.hpp"
#include "train/checkpoint/run_directories.hpp"

namespace fast::train {

using Json = nlohmann::ordered_json;

namespace {

bool ends_within_a_line(const std::filesystem::path& path) {
  std::error_code problem;
  if (!std::filesystem::is_regular_file(path, problem)) return false;
  std::ifstream in(path, std::ios::binary | std::ios::ate);
  if (!in || in.tellg() <= 0) return false;
  in.seekg(-1, std::ios::end);
  return in.get() != '\n';
}

Json json_of(const Figures& figures) {
  Json object = Json::object();
  for (const auto& [name, value] : figures) object[name] = value;
  return object;
}

template <class Value>
Json json_of(const Value& value) {
  return value;
}

double time_s() { return Seconds(std::chrono::system_clock::now().time_since_epoch()).count(); }

}  // namespace

MetricsWriter::MetricsWriter(const std::filesystem::path& directory, int rank)
    : path_(directory / metrics_directory / metrics_name(rank)), rank_(rank) {
  std::error_code error;
  std::filesystem::create_directories(path_.parent_path(), error);
  require(!error, ErrorKind::resource,
          "metrics: the directory {} cannot be made: {}; choose another",
          path_.parent_path().string(), error.message());
  open();
}

void MetricsWriter::open() {
  const bool cut = ends_within_a_line(path_);
  errno = 0;
  out_.open(path_, std::ios::app);
  require(out_.is_open(), ErrorKind::resource,
          "metrics: {} cannot be written: {}; choose another directory", path_.string(),
          std::strerror(errno));
  if (cut) out_ << '\n';
}

void MetricsWriter::write(std::string_view kind, std::span<const Metric> metrics) {
  Json line = {{"kind", kind},
               {"time", time_s()},
               {"seconds", Seconds(Clock::now() - began_).count()},
               {"rank", rank_}};
  for (const Metric& metric : metrics) {
    std::visit([&](const auto& value) { line[metric.name] = json_of(value); }, metric.value);
  }
  if (!out_.is_open()) open();
  out_ << line.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n' << std::flush;
  if (out_.good()) return;
  out_.close();
  out_.clear();
  fail(ErrorKind::resource, "metrics: {} cannot be written; check the disk's free space",
       path_.string());
}

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
  std::ranges::sort(files);
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
