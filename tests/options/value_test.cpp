#include "options/value.hpp"

#include <cmath>
#include <fast/core/random.hpp>

#include "support/catch.hpp"
#include "support/seed.hpp"

using namespace fast;
using namespace fast::options;

namespace {

template <class T>
Fit fit_of(const Value<T>& value, std::string_view text) {
  T into{};
  return value.parse(text, into);
}

template <class T>
T read(const Value<T>& value, std::string_view text) {
  T into{};
  REQUIRE(value.parse(text, into) == Fit::good);
  return into;
}

}  // namespace

TEST_CASE("a number is read when it is one and in its range") {
  const auto value = number<int>(one_or_more());
  CHECK(read(value, "12") == 12);
  CHECK(fit_of(value, "0") == Fit::out_of_range);
  CHECK(fit_of(value, "-3") == Fit::out_of_range);
  for (const char* text : {"", "many", "1.5", "1x", " 1", "99999999999"}) {
    CHECK(fit_of(value, text) == Fit::unreadable);
  }
  CHECK(value.required == "a whole number, at least 1,");
}

TEST_CASE("infinity and nan are in no range") {
  for (const Range& range : {zero_or_more(), positive(), fraction(), any()}) {
    const auto value = number<double>(range);
    for (const char* text : {"inf", "nan", "-inf"}) CHECK(fit_of(value, text) == Fit::out_of_range);
  }
  CHECK(fit_of(number<double>(fraction()), "1") == Fit::out_of_range);
  CHECK(read(number<double>(fraction()), "0") == 0);
  CHECK(fit_of(number<double>(positive()), "0") == Fit::out_of_range);
}

TEST_CASE("a large seed is read, and a negative one is not a value") {
  const auto value = number<std::uint64_t>(any());
  CHECK(read(value, "18446744073709551615") == ~std::uint64_t{0});
  CHECK(fit_of(value, "-1") == Fit::unreadable);
  CHECK(fit_of(value, "18446744073709551616") == Fit::unreadable);
}

TEST_CASE("a word stands for its value") {
  const auto value = or_word(number<std::int64_t>(zero_or_more()), "inf", std::int64_t{1} << 40);
  CHECK(read(value, "inf") == std::int64_t{1} << 40);
  CHECK(value.format(std::int64_t{1} << 40) == "inf");
  CHECK(value.format(3) == "3");
  CHECK(value.required == "a whole number, 0 or more, or inf");
}

TEST_CASE("a value that is not set has no text, or its word") {
  CHECK(!options::optional(number<double>(positive())).format(std::nullopt));
  const auto value = options::optional(number<std::int64_t>(zero_or_more()), "auto");
  CHECK(value.format(std::nullopt) == "auto");
  CHECK(!read(value, "auto"));
  CHECK(read(value, "7") == 7);
  CHECK(value.kind == Kind::mixed);
  const auto time = options::optional(seconds(positive()), "auto");
  CHECK(time.kind == Kind::mixed_number);
  CHECK(read(time, "2.5") == Seconds(2.5));
  CHECK(fit_of(time, "0") == Fit::out_of_range);
  CHECK(time.required == "a positive finite number of seconds, or auto");
}

TEST_CASE("a choice is one of its names") {
  enum class Color { red, green, blue };
  const auto value =
      choice<Color>({{"red", Color::red}, {"green", Color::green}, {"blue", Color::blue}});
  CHECK(read(value, "green") == Color::green);
  CHECK(value.format(Color::blue) == "blue");
  CHECK(fit_of(value, "gren") == Fit::unreadable);
  CHECK(value.required == "red, green or blue");
}

TEST_CASE("a scaled number is written so that it reads back to the same bits") {
  const std::uint64_t seed = test_seed(7);
  INFO("seed " << seed);
  Rng rng(seed);
  for (const double factor : {1e-3, 1e6 / 8}) {
    const auto value = scaled(zero_or_more(), factor);
    for (int i = 0; i < 1000; ++i) {
      const double product = read(value, fmt::format("{}", std::pow(10, rng.uniform(-6, 9))));
      const auto text = value.format(product);
      REQUIRE(text);
      CHECK(read(value, *text) == product);
    }
    CHECK(value.format(40 * factor) == "40");
  }
}
