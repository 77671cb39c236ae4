#include "observe/output_file.hpp"

#include <fstream>
#include <sstream>
#include <vector>

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

using namespace fast;

TEST_CASE("bytes are in the file at once, and gone after clear") {
  const testing::TemporaryDirectory directory;
  observe::OutputFile file("trace", directory / "made/a.trace", {});
  const auto content = [&] {
    std::ostringstream text;
    text << std::ifstream(file.path()).rdbuf();
    return text.str();
  };
  CHECK(file.append("one"));
  CHECK(file.append("two"));
  CHECK(content() == "onetwo");
  file.clear();
  CHECK(file.append("three"));
  CHECK(content() == "three");
  CHECK(file.size_bytes() == 5);
}

TEST_CASE("a file that exists is emptied, or refused and left as it is") {
  const testing::TemporaryDirectory directory;
  const auto path = directory / "a.trace";
  CHECK(observe::OutputFile("trace", path, {}).append("one"));
  CHECK_THROWS_WITH(observe::OutputFile("trace", path, {}, observe::Existing::refused),
                    Catch::Matchers::Contains("cannot be written: File exists"));
  CHECK(std::filesystem::file_size(path) == 3);
  const observe::OutputFile again("trace", path, {});
  CHECK(std::filesystem::file_size(path) == 0);
}

TEST_CASE("the first failure warns, the others say nothing") {
  std::vector<std::string> said;
  observe::OutputFile file("trace", "/dev/full",
                           [&](LogLevel, std::string_view text) { said.emplace_back(text); });
  CHECK_FALSE(file.append("one"));
  CHECK_FALSE(file.append("two"));
  REQUIRE(said.size() == 1);
  CHECK(said[0] ==
        "trace: /dev/full cannot be written: No space left on device; training goes on without it");
}
