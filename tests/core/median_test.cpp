#include "core/numbers.hpp"

#include <algorithm>

#include "support/catch.hpp"

using fast::median;

TEST_CASE("half of the values are below the median, in whatever order they come") {
  CHECK(median({}) == 0);
  CHECK(median({7}) == 7);
  std::vector<double> odd{1, 2, 4, 8, 1000}, even{1, 2, 4, 1000};
  do CHECK(median(odd) == 4);
  while (std::next_permutation(odd.begin(), odd.end()));
  do CHECK(median(even) == 3);
  while (std::next_permutation(even.begin(), even.end()));
}
