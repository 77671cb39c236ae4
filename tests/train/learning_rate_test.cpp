#include <cmath>
#include <fast/core/error.hpp>
#include <fast/train/trainer.hpp>

#include "support/catch.hpp"

using fast::train::LearningRate;

TEST_CASE("a learning rate is described with its schedule and warm-up") {
  LearningRate rate{.base = 0.05};
  CHECK(describe(rate) == "0.05, constant");
  rate.schedule = LearningRate::Schedule::cosine;
  rate.warmup_epochs = 1;
  CHECK(describe(rate) == "0.05, cosine, warm-up of 1 epoch");
  CHECK(describe(rate, 4) == "0.05, cosine, warm-up of 1 epoch");
  CHECK(describe(rate, 2) == "0.05, cosine, warm-up of 0.5 epochs (a quarter of the run)");
  CHECK(rate.at(0.25, 2) == 0.5 * rate.base);  // in the middle of the warm-up
  rate.schedule = LearningRate::Schedule::step;
  rate.warmup_epochs = 2.5;
  CHECK(describe(rate) == "0.05, step, warm-up of 2.5 epochs");
}

TEST_CASE("learning rates follow their formulas") {
  LearningRate rate{0.1, LearningRate::Schedule::constant, 0};
  CHECK(rate.at(0, 10) == 0.1);
  CHECK(rate.at(9.9, 10) == 0.1);
  rate.schedule = LearningRate::Schedule::step;
  CHECK(rate.at(4.9, 10) == Approx(0.1));
  CHECK(rate.at(5, 10) == Approx(0.01));
  CHECK(rate.at(7.5, 10) == Approx(0.001));
  rate.schedule = LearningRate::Schedule::cosine;
  CHECK(rate.at(0, 10) == Approx(0.1));
  CHECK(rate.at(5, 10) == Approx(0.05));
  CHECK(rate.at(7.5, 10) == Approx(0.05 * (1 - std::sqrt(0.5))));
}

TEST_CASE("on plateaus the rate is multiplied by the factor, once each") {
  LearningRate rate{0.1, LearningRate::Schedule::plateau, 1};
  rate.plateau_factor = 0.5;
  CHECK(rate.at(0.5, 10) == Approx(0.05));
  CHECK(rate.at(3, 10) == 0.1);
  CHECK(rate.at(3, 10, 2) == Approx(0.025));
  CHECK(rate.at(9, 10, 3) == Approx(0.0125));
  CHECK(describe(rate, 10) ==
        "0.1, plateau (times 0.5 after more than 10 epochs without a lower loss), warm-up of 1 "
        "epoch");
}

TEST_CASE("a warm-up rises linearly to the base and the rest of the run follows the schedule") {
  const LearningRate rate{0.1, LearningRate::Schedule::cosine, 1};
  CHECK(rate.at(0, 5) == 0);
  CHECK(rate.at(0.5, 5) == Approx(0.05));
  CHECK(rate.at(1, 5) == Approx(0.1));
  CHECK(rate.at(3, 5) == Approx(0.05));
  CHECK(rate.at(0.25, 1) == Approx(0.1));  // a quarter of a short run
}

TEST_CASE("an unknown schedule is refused with the choices") {
  CHECK(fast::train::learning_rate_schedule("cosine") == LearningRate::Schedule::cosine);
  CHECK_THROWS_WITH(fast::train::learning_rate_schedule("linear"),
                    ContainsSubstring("constant, step, cosine or plateau"));
}
