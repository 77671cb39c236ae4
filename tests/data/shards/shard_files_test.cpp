#include <fast/core/error.hpp>
#include <fast/data/shards.hpp>
#include <fstream>

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

using namespace fast;
using fast::testing::TemporaryDirectory;

TEST_CASE("patterns name shards by globs, ranges and lists") {
  const TemporaryDirectory directory;
  for (const char* name : {"a-08.tar", "a-09.tar", "a-10.tar", "b-08.tar"})
    std::ofstream(directory / name) << "";
  const auto names = [&](const std::string& pattern) {
    std::string all;
    for (const auto& file : data::shard_files((directory / pattern).string()))
      all += file.stem().string() + ' ';
    return all;
  };
  CHECK(names("a-*.tar") == "a-08 a-09 a-10 ");
  CHECK(names("a-{08..10}.tar") == "a-08 a-09 a-10 ");
  CHECK(names("{b,a}-08.tar") == "b-08 a-08 ");
  CHECK(names("{a,b}-{08..08}.tar") == "a-08 b-08 ");
  CHECK(names("{a-0*,a-08}.tar") == "a-08 a-09 ");
  CHECK(names("b-08.tar") == "b-08 ");
  CHECK_THROWS_WITH(names("c-*.tar"), ContainsSubstring("no file matches"));
  CHECK_THROWS_WITH(names("a-{08..11}.tar"), ContainsSubstring("a-11.tar: there is no such file"));
  CHECK_THROWS_WITH(names("a-{08..}.tar"), ContainsSubstring("{08..} is not a range"));
  CHECK_THROWS_WITH(names("a-{9..1}.tar"), ContainsSubstring("is not a range"));
  CHECK_THROWS_WITH(names("a-{08"), ContainsSubstring("a brace without an end"));
  CHECK_THROWS_WITH(names("a-{0..9999999}.tar"), ContainsSubstring("is not a range"));
  CHECK(data::is_pattern("a{0..1}"));
  CHECK_FALSE(data::is_pattern("a-0.tar"));
}
