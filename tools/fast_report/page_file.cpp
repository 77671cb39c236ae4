#include "fast_report/page_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fast/core/error.hpp>
#include <fstream>

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

[[noreturn]] void fail_to_write(const fs::path& path, const std::string& reason) {
  fast::fail(fast::ErrorKind::resource, "{}: it cannot be written: {}; choose another file",
             path.string(), reason);
}

void write_directly(const fs::path& path, const fs::path& shown, const std::string& text) {
  errno = 0;
  std::ofstream out(path, std::ios::binary | std::ios::trunc);
  out << text << std::flush;
  if (!out.good()) fail_to_write(shown, std::strerror(errno == 0 ? EIO : errno));
}

/// Removes the file unless it was renamed.
class NewFile {
 public:
  explicit NewFile(const fs::path& beside)
      : path_(beside.string() + fmt::format(".{}.new", getpid())) {}
  NewFile(const NewFile&) = delete;
  NewFile& operator=(const NewFile&) = delete;
  ~NewFile() {
    std::error_code ignored;
    fs::remove(path_, ignored);
  }
  const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

}  // namespace

void require_writable(const fs::path& path, bool overwrite) {
  std::error_code problem;
  if (fs::is_directory(path, problem)) fail_to_write(path, "it is a directory");
  const fs::path folder = fs::absolute(path).parent_path();
  if (!fs::is_directory(folder, problem)) {
    fail_to_write(path, "there is no directory " + folder.string());
  }
  if (overwrite || !fs::is_regular_file(path, problem) || fs::file_size(path, problem) == 0) return;
  fast::require(
      is_report(path), fast::ErrorKind::argument,
      "{}: the file exists and is not a report of fast-report; choose another file or add "
      "--overwrite",
      path.string());
}

void write_page(const fs::path& path, const std::string& text) {
  std::error_code problem;
  if (fs::exists(path, problem) && !fs::is_regular_file(path, problem)) {
    return write_directly(path, path, text);
  }
  const fs::path target = fs::is_symlink(path, problem) ? fs::canonical(path, problem) : path;
  const NewFile file(target);
  write_directly(file.path(), path, text);
  fs::rename(file.path(), target, problem);
  if (problem) fail_to_write(path, problem.message());
}

}  // namespace fast_report
