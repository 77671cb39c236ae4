#include "core/toml.hpp"

#include <fast/core/error.hpp>

#include "support/catch.hpp"

using namespace fast;

TEST_CASE("a file with a byte order mark, as Windows programs write it, is read") {
  const TomlOrigin origin{"a.toml", ErrorKind::argument, "test"};
  for (const std::string text : {"workers = 3\n", "name = \"Größe\"\nworkers = 3\n"}) {
    CHECK(toml_table("\xef\xbb\xbf" + text, origin)["workers"].value<int>() == 3);
    CHECK_THROWS_AS(toml_table("\xef\xbb" + text, origin), Error);
  }
}
