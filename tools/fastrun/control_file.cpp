#include "control_file.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <fast/core/error.hpp>
#include <filesystem>
#include <iterator>
#include <sstream>
#include <utility>

namespace fastrun {

Request parse_request(const std::string& line, int ranks) {
  std::istringstream words(line);
  std::string what, more;
  int rank = -1;
  words >> what;
  if (what == "grow" && !(words >> more)) return {Request::What::grow, -1, {}};
  Request request;
  if (what != "leave" || !(words >> rank) || words >> more) {
    request.problem = fmt::format("\"{}\" is unknown; write: leave RANK, or grow", line);
  } else if (rank < 0 || rank >= ranks) {
    request.problem = fmt::format("\"{}\": this job has {} ranks (0..{})", line, ranks, ranks - 1);
  }
  request.rank = rank;
  return request;
}

namespace {

/// Of a file that is not there: all 0.
struct stat status_of(const std::string& path) {
  struct stat found {};
  if (stat(path.c_str(), &found) != 0) return {};
  return found;
}

}  // namespace

ControlFile::ControlFile(std::string path) : path_(std::move(path)) {
  std::error_code ignored;
  fast::require(!std::filesystem::exists(path_, ignored) || S_ISREG(status_of(path_).st_mode),
                fast::ErrorKind::argument,
                "fastrun: --control {} is not a regular file; choose another file", path_);
  const bool made = std::ofstream(path_, std::ios::app).good();
  std::ifstream in(path_, std::ios::binary | std::ios::ate);
  fast::require(made && in.good(), fast::ErrorKind::argument,
                "fastrun: --control {} cannot be written; choose another file", path_);
  read_ = in.tellg();
  note_state();
}

void ControlFile::note_state() {
  const struct stat now = status_of(path_);
  number_ = now.st_ino;
  written_ = now.st_mtim;
}

std::vector<std::string> ControlFile::new_lines() {
  const struct stat now = status_of(path_);
  if (now.st_ino == 0) return {};
  const bool same_size = now.st_size == read_, written = now.st_mtim.tv_sec != written_.tv_sec ||
                                                         now.st_mtim.tv_nsec != written_.tv_nsec;
  if (now.st_ino == number_ && same_size && !written) return {};
  if (now.st_ino != number_ || now.st_size < read_ || same_size) read_ = 0;
  std::ifstream in(path_, std::ios::binary);
  if (!in.seekg(read_)) return {};
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const std::size_t whole = text.rfind('\n') + 1;  // 0 if there is none
  read_ += static_cast<std::streamoff>(whole);
  note_state();
  std::istringstream lines(text.substr(0, whole));
  std::vector<std::string> found;
  for (std::string line; std::getline(lines, line);) {
    if (line.find_first_not_of(" \t\r") != std::string::npos) found.push_back(line);
  }
  return found;
}

}  // namespace fastrun
