#include <cerrno>
#include <cstring>
#include <fast/core/error.hpp>
#include <fast/train/metrics.hpp>
#include <nlohmann/json.hpp>

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

}  // namespace

MetricsWriter::MetricsWriter(const std::filesystem::path& directory, int rank)
    : path_(directory / fmt::format("metrics-{}.jsonl", rank)) {
  std::error_code error;
  std::filesystem::create_directories(directory, error);
  require(!error, ErrorKind::resource,
          "metrics: the directory {} cannot be made: {}; choose another", directory.string(),
          error.message());
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

void MetricsWriter::write(std::span<const Metric> metrics) {
  Json line = Json::object();
  for (const Metric& metric : metrics) {
    std::visit([&](const auto& value) { line[metric.name] = value; }, metric.value);
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
