#include "fastrun/host.hpp"

#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

using fastrun::why_not_startable;

namespace {

constexpr const char* missing = "No such file or directory";
constexpr const char* forbidden = "Permission denied";

void make_file(const std::string& path, mode_t mode) {
  std::ofstream(path) << "#!/bin/sh\n";
  chmod(path.c_str(), mode);
}

/// PATH, as it was at the end.
class Path {
 public:
  explicit Path(const std::string& value) { setenv("PATH", value.c_str(), 1); }
  Path(const Path&) = delete;
  Path& operator=(const Path&) = delete;
  ~Path() { setenv("PATH", before_.c_str(), 1); }

 private:
  std::string before_ = std::getenv("PATH");
};

/// The one in which this program works, until the end.
class WorkingDirectory {
 public:
  explicit WorkingDirectory(const std::filesystem::path& directory) {
    std::filesystem::current_path(directory);
  }
  WorkingDirectory(const WorkingDirectory&) = delete;
  WorkingDirectory& operator=(const WorkingDirectory&) = delete;
  ~WorkingDirectory() { std::filesystem::current_path(before_); }

 private:
  std::filesystem::path before_ = std::filesystem::current_path();
};

}  // namespace

TEST_CASE("a program with a slash is a file that may be executed") {
  const fast::testing::TemporaryDirectory directory;
  const std::string program = directory / "program", notes = directory / "notes";
  make_file(program, 0755);
  make_file(notes, 0644);
  CHECK(why_not_startable(program).empty());
  CHECK(why_not_startable(notes) == forbidden);
  CHECK(why_not_startable(directory.path().string()) == forbidden);
  CHECK(why_not_startable(program + "s") == missing);
}

TEST_CASE("a program without a slash is looked for in all directories of PATH") {
  const fast::testing::TemporaryDirectory directory;
  const std::string first = directory / "first", second = directory / "second";
  for (const std::string& each : {first, second}) std::filesystem::create_directory(each);
  make_file(first + "/both", 0644);
  make_file(second + "/both", 0755);
  make_file(first + "/notes", 0644);
  const Path path(first + ":" + second);
  CHECK(why_not_startable("both").empty());
  CHECK(why_not_startable("notes") == forbidden);
  CHECK(why_not_startable("neither") == missing);
}

TEST_CASE("an empty name in PATH is the working directory, also as the last one") {
  const fast::testing::TemporaryDirectory directory;
  make_file(directory / "program", 0755);
  const WorkingDirectory here(directory.path());
  for (const char* value : {"", ":/nowhere", "/nowhere:", "/nowhere::/none"}) {
    INFO("PATH=" << value);
    const Path path(value);
    CHECK(why_not_startable("program").empty());
    CHECK(why_not_startable("programs") == missing);
  }
}
