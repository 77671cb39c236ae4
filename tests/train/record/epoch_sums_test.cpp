#include "train/record/run_metrics.hpp"

#include "support/catch.hpp"

using fast::train::EpochSums;

TEST_CASE("the accuracy of an epoch weights each step with its samples, the loss does not") {
  EpochSums sums;
  CHECK_FALSE(sums.mean_loss());
  CHECK_FALSE(sums.accuracy());
  sums.add(2, 10, 3);
  sums.add(1, 30, 21);
  CHECK(sums.mean_loss() == 1.5);
  CHECK(sums.accuracy() == 24.0 / 40);
}

TEST_CASE("an epoch has no accuracy if that of some step is not known") {
  EpochSums first, last;
  first.add(1, 10, {});
  first.add(1, 10, 5);
  last.add(1, 10, 5);
  last.add(1, 10, {});
  last.add(1, 10, 5);
  CHECK_FALSE(first.accuracy());
  CHECK_FALSE(last.accuracy());
  CHECK(last.mean_loss() == 1);
}
