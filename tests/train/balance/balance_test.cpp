#include <fast/train/trainer.hpp>

#include <fast/core/error.hpp>

#include "support/catch.hpp"

using namespace fast;
using train::Balance;
using train::balance_from;

TEST_CASE("a balance is read from the text that it writes") {
  for (const char* text : {"even", "measured", "1,2,4", "0.5,1"})
    CHECK(balance_from(text).text() == text);
  CHECK(balance_from("even").is_even());
  CHECK(balance_from("measured").kind == Balance::Kind::measured);
  CHECK(balance_from("1,2.5,4").speeds == std::vector<double>{1, 2.5, 4});
}

TEST_CASE("a text that is no balance is refused") {
  for (const char* text : {"", "odd", "1,", ",1", "1,-2", "1,0", "1;2", "nan,1", "inf,1"})
    CHECK_THROWS_WITH(balance_from(text), ContainsSubstring("choose even"));
}
