#include "seats/training_plan.hpp"

#include <fmt/ranges.h>

#include <fast/core/random.hpp>
#include <sstream>

namespace seats {
namespace {

const std::vector<std::string> troubles = {"none",  "kill", "kill-two", "kill-the-seated",
                                           "pause", "grow"};
constexpr std::uint64_t drawn = 4;  ///< of them

/// Late enough for training to have begun, early enough for a spare to make up for what was left
/// out.
int any_round(const TrainingPlan& plan, fast::Rng& rng) {
  const int all = plan.epochs * plan.epoch_rounds();
  return all / 20 + static_cast<int>(rng.below(static_cast<std::uint64_t>(all * 3 / 5)));
}

}  // namespace

std::string name(Trouble trouble) { return troubles[static_cast<std::size_t>(trouble)]; }

TrainingPlan draw_training(std::uint64_t seed, std::uint64_t index, int samples, int epochs,
                           const std::vector<std::int64_t>& staleness) {
  fast::Rng rng(fast::mix_seed(seed, index));
  TrainingPlan plan;
  plan.seed = fast::mix_seed(seed, index) % 100000;
  plan.trouble = static_cast<Trouble>(1 + index % drawn);
  plan.staleness = staleness[rng.below(staleness.size())];
  plan.samples = samples;
  plan.epochs = epochs;
  const int first = static_cast<int>(rng.below(static_cast<std::uint64_t>(plan.workers)));
  plan.victims = {first};
  plan.rounds = {any_round(plan, rng)};
  if (plan.trouble == Trouble::kill_two) {
    plan.victims.push_back((first + 1) % plan.workers);
    plan.rounds.push_back(any_round(plan, rng));
  }
  if (plan.trouble == Trouble::kill_the_seated) {
    plan.victims.push_back(plan.workers);
    plan.rounds.push_back(10 + static_cast<int>(rng.below(60)));
  }
  plan.delay_us = static_cast<int>(rng.below(5000));
  return plan;
}

TrainingPlan draw_growth(std::uint64_t seed, std::uint64_t index, int samples, int epochs,
                         const std::vector<std::int64_t>& staleness) {
  TrainingPlan plan = draw_training(seed, index, samples, epochs, staleness);
  plan.trouble = Trouble::grow;
  plan.victims.clear();
  plan.rounds.clear();
  return plan;
}

std::string write(const TrainingPlan& plan) {
  return fmt::format("{} {} {} {} {} {} {} {} {:d} {} {} {}", plan.seed,
                     static_cast<int>(plan.trouble), plan.workers, plan.spares, plan.staleness,
                     plan.samples, plan.epochs, plan.delay_us, plan.devices, plan.victims.size(),
                     fmt::join(plan.victims, " "), fmt::join(plan.rounds, " "));
}

TrainingPlan read_training(const std::string& text) {
  TrainingPlan plan;
  std::istringstream in(text);
  int trouble = 0;
  std::size_t victims = 0;
  in >> plan.seed >> trouble >> plan.workers >> plan.spares >> plan.staleness >> plan.samples >>
      plan.epochs >> plan.delay_us >> plan.devices >> victims;
  plan.trouble = static_cast<Trouble>(trouble);
  plan.victims.resize(victims);
  plan.rounds.resize(victims);
  for (int& victim : plan.victims) in >> victim;
  for (int& round : plan.rounds) in >> round;
  return plan;
}

}  // namespace seats
