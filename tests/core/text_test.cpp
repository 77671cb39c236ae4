#include "core/text.hpp"

#include <cstdint>

#include "support/catch.hpp"

using namespace fast;

TEST_CASE("a text has one part more than separators, empty ones among them") {
  using Parts = std::vector<std::string_view>;
  CHECK(split_text("3x28x28", 'x') == Parts{"3", "28", "28"});
  CHECK(split_text("age", ',') == Parts{"age"});
  CHECK(split_text("", ',') == Parts{""});
  CHECK(split_text(",a,,b,", ',') == Parts{"", "a", "", "b", ""});
}

TEST_CASE("a number is read only if it is the whole text and in range") {
  int whole = 7;
  CHECK(reads("-12", whole));
  CHECK(whole == -12);
  for (const char* text : {"", " 1", "1 ", "1.5", "+1", "x", "99999999999"})
    CHECK(!reads(text, whole));
  std::uint8_t small = 0;
  CHECK(reads("255", small));
  CHECK(!reads("256", small));
  CHECK(!reads("-1", small));
  double real = 0;
  CHECK(reads("1e-3", real));
  CHECK(real == 1e-3);
}

TEST_CASE("small letters stand for the capital ones of ASCII and nothing else changes") {
  CHECK(in_small_letters("DATA_1.Csv [@`{") == "data_1.csv [@`{");
  CHECK(in_small_letters("\xc3\x84Z") == "\xc3\x84z");
}

TEST_CASE("underscores stand for the dashes of a name") {
  CHECK(with_underscores("--max-lag_s") == "__max_lag_s");
}
