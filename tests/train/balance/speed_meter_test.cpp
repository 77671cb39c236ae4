#include "train/balance/balancer.hpp"

#include "support/catch.hpp"

using namespace fast::train;

TEST_CASE("a pause in some rounds does not change the measured speed") {
  SpeedMeter meter(5);
  CHECK(meter.seconds_per_sample() == 0);
  for (const double seconds : {0.2, 9.0, 0.2, 0.2, 7.0}) {
    CHECK_FALSE(meter.is_full());
    meter.add(seconds, 10);
  }
  CHECK(meter.is_full());
  CHECK(meter.seconds_per_sample() == Approx(0.02));
}

TEST_CASE("the speed is that of the first rounds, until the meter begins anew") {
  SpeedMeter meter(2);
  meter.add(2, 4);
  CHECK(meter.seconds_per_sample() == Approx(0.5));
  meter.add(4, 4);
  meter.add(100, 1);
  CHECK(meter.seconds_per_sample() == Approx(0.75));
  meter.restart();
  meter.add(1, 0);  // nothing could be read
  CHECK(meter.seconds_per_sample() == 0);
  meter.add(3, 1);
  CHECK(meter.seconds_per_sample() == Approx(3));
}
