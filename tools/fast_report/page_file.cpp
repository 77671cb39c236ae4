#include "fast_report/page_file.hpp"

#include <fast/core/error.hpp>
#include <fstream>

#include "core/whole_file.hpp"
#include "fast_report/page.hpp"

namespace fast_report {

namespace fs = std::filesystem;

namespace {

bool is_report(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string first, second;
  std::getline(in, first);
  std::getline(in, second);
  return first == "<!DOCTYPE html>" && second.starts_with(page_mark);
}

}  // namespace

void require_replaceable(const fs::path& path, bool overwrite) {
  std::error_code problem;
  fast::require_writable(path);
  if (overwrite || !fs::is_regular_file(path, problem) || fs::file_size(path, problem) == 0) return;
  fast::require(
      is_report(path), fast::ErrorKind::argument,
      "{}: the file exists and is not a report of fast-report; choose another file or add "
      "--overwrite",
      path.string());
}

}  // namespace fast_report
