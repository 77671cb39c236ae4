#include <fast/train/metrics.hpp>

#include <cerrno>
#include <cstring>
#include <fast/core/error.hpp>
#include <nlohmann/json.hpp>

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

}  // namespace fast::train
