#include "core/split_text.hpp"

#include <string>

#include "support/catch.hpp"

using fast::split_text;

TEST_CASE("a text has one part more than separators, empty ones among them") {
  using Parts = std::vector<std::string_view>;
  CHECK(split_text("3x28x28", 'x') == Parts{"3", "28", "28"});
  CHECK(split_text("age", ',') == Parts{"age"});
  CHECK(split_text("", ',') == Parts{""});
  CHECK(split_text(",a,,b,", ',') == Parts{"", "a", "", "b", ""});
}
