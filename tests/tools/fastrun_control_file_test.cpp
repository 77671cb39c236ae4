#include "fastrun/requests.hpp"

#include <fast/core/error.hpp>
#include <filesystem>
#include <fstream>
#include <thread>

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

using fastrun::ControlFile;
using Lines = std::vector<std::string>;

namespace {

void append(const std::filesystem::path& file, const char* text) {
  std::ofstream(file, std::ios::app) << text;
}

}  // namespace

TEST_CASE("whole lines that are appended are found once, and not those of an earlier job") {
  const fast::testing::TemporaryDirectory directory;
  const auto path = directory / "control";
  append(path, "leave 0\n");
  ControlFile file(path);
  CHECK(file.new_lines().empty());
  append(path, "leave 2\n\nleave");
  CHECK(file.new_lines() == Lines{"leave 2"});
  CHECK(file.new_lines().empty());
  append(path, " 1\nleave 3\n");
  CHECK(file.new_lines() == Lines{"leave 1", "leave 3"});
}

TEST_CASE("a file that is written anew is read from its beginning") {
  const fast::testing::TemporaryDirectory directory;
  const auto path = directory / "control";
  ControlFile file(path);
  append(path, "leave 2\n");
  CHECK(file.new_lines() == Lines{"leave 2"});
  std::this_thread::sleep_for(std::chrono::milliseconds(20));  // the file system's clock goes on
  std::ofstream(path) << "leave 3\n";
  CHECK(file.new_lines() == Lines{"leave 3"});
  std::ofstream(path) << "leave\n";  // shorter
  CHECK(file.new_lines() == Lines{"leave"});
  std::filesystem::rename(path, directory / "old");
  CHECK(file.new_lines().empty());
  append(path, "leave 1\nleave 0\n");
  CHECK(file.new_lines() == Lines{"leave 1", "leave 0"});
  CHECK(file.new_lines().empty());
}

TEST_CASE("a control file is made if it is not there, and one that cannot be made is refused") {
  const fast::testing::TemporaryDirectory directory;
  ControlFile file(directory / "control");
  append(directory / "control", "leave 1\n");
  CHECK(file.new_lines() == Lines{"leave 1"});
  CHECK_THROWS_WITH(ControlFile(directory / "none/control"),
                    Catch::Contains("--control") && Catch::Contains("cannot be written"));
}

TEST_CASE("a request names a rank of the job, or is refused with what to write") {
  CHECK(fastrun::parse_request("leave 3", 4).rank == 3);
  CHECK(fastrun::parse_request("  leave\t0 ", 4).rank == 0);
  CHECK(fastrun::parse_request("leave 3", 4).problem.empty());
  CHECK(fastrun::parse_request("leave 3", 4).what == fastrun::Request::What::leave);
  CHECK(fastrun::parse_request(" grow ", 4).problem.empty());
  CHECK(fastrun::parse_request(" grow ", 4).what == fastrun::Request::What::grow);
  for (const char* line : {"leav 3", "leave", "leave x", "leave 1 2", "grow 1"}) {
    INFO(line);
    CHECK_THAT(fastrun::parse_request(line, 4).problem, Catch::Contains("write: leave RANK"));
  }
  for (const char* line : {"leave 4", "leave -1"})
    CHECK_THAT(fastrun::parse_request(line, 4).problem, Catch::Contains("4 ranks (0..3)"));
}
