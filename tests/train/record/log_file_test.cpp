#include "train/record/log_file.hpp"

#include <fast/core/error.hpp>

#include <filesystem>
#include <fstream>
#include <regex>
#include <vector>

#include "support/catch.hpp"
#include "support/contents.hpp"
#include "support/temporary_directory.hpp"

using namespace fast;
using namespace fast::testing;
using train::LogFile;

namespace {

const std::string log_time = R"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d\.\d{3} )";

}  // namespace

TEST_CASE("a log has time, rank and level, from its least level on, and is appended to") {
  const TemporaryDirectory directory;
  LogFile log(LogLevel::info, {});
  log.write(LogLevel::error, "before there is a file");
  log.open(directory.path(), 3);
  log.write(LogLevel::debug, "too small");
  log.write(LogLevel::info, "first");
  log.write(LogLevel::warning, "two\nlines");
  LogFile again(LogLevel::error, {});
  again.open(directory.path(), 3);
  again.write(LogLevel::warning, "too small, too");
  again.write(LogLevel::error, "last");
  CHECK(std::regex_match(
      contents(directory / "logs/3.log"),
      std::regex(log_time + "rank 3 info: first\n" + log_time + R"(rank 3 warning: two\\nlines)" +
                 "\n" + log_time + "rank 3 error: last\n")));
}

TEST_CASE("a log that cannot be opened is refused with its name") {
  const TemporaryDirectory directory;
  LogFile log(LogLevel::info, {});
  std::ofstream(directory / "file") << "x";
  CHECK_THROWS_WITH(log.open(directory / "file", 0), ContainsSubstring("file/logs"));
  std::filesystem::create_directories(directory / "logs/1.log");
  CHECK_THROWS_WITH(log.open(directory.path(), 1), ContainsSubstring("logs/1.log"));
}

TEST_CASE("a full disk ends a log with one warning") {
  if (!std::filesystem::exists("/dev/full")) {
    WARN("skipped: there is no /dev/full");
    return;
  }
  const TemporaryDirectory directory;
  std::filesystem::create_directory(directory / "logs");
  std::filesystem::create_symlink("/dev/full", directory / "logs/0.log");
  std::vector<std::string> complaints;
  LogFile log(LogLevel::info,
              [&](LogLevel, std::string_view text) { complaints.emplace_back(text); });
  log.open(directory.path(), 0);
  for (int line = 0; line < 3; ++line) log.write(LogLevel::info, "text");
  REQUIRE(complaints.size() == 1);
  CHECK_THAT(complaints[0], ContainsSubstring("logs/0.log") && ContainsSubstring("free space"));
}
