#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/train/trainer.hpp>
#include <numbers>

#include "core/text.hpp"

namespace fast::train {

double LearningRate::warmup_of(double epochs) const { return std::min(warmup_epochs, epochs / 4); }

double LearningRate::at(double epochs_done, double epochs, std::int64_t reductions) const {
  const double warmup = warmup_of(epochs);
  if (epochs_done < warmup) return base * epochs_done / warmup;
  const double done = (epochs_done - warmup) / (epochs - warmup);
  switch (schedule) {
    case Schedule::constant:
      return base;
    case Schedule::step:
      return base * (done < 0.5 ? 1 : done < 0.75 ? 0.1 : 0.01);
    case Schedule::cosine:
      return base * 0.5 * (1 + std::cos(std::numbers::pi * done));
    case Schedule::plateau:
      break;
  }
  double rate = base;
  for (; reductions > 0; --reductions) rate *= plateau_factor;
  return rate;
}

std::string describe(const LearningRate& rate, double epochs) {
  constexpr const char* schedules[] = {"constant", "step", "cosine", "plateau"};
  std::string text = fmt::format("{}, {}", rate.base, schedules[static_cast<int>(rate.schedule)]);
  if (rate.schedule == LearningRate::Schedule::plateau)
    text += fmt::format(" (times {} after more than {} epochs without a lower loss)",
                        rate.plateau_factor, rate.plateau_patience);
  const double warmup = rate.warmup_of(epochs);
  if (warmup > 0) {
    text += fmt::format(", warm-up of {} epoch{}{}", warmup, warmup == 1 ? "" : "s",
                        warmup < rate.warmup_epochs ? " (a quarter of the run)" : "");
  }
  return text;
}

LearningRate::Schedule learning_rate_schedule(std::string_view name) {
  if (name == "constant") return LearningRate::Schedule::constant;
  if (name == "step") return LearningRate::Schedule::step;
  if (name == "cosine") return LearningRate::Schedule::cosine;
  if (name == "plateau") return LearningRate::Schedule::plateau;
  fail(ErrorKind::argument,
       "learning rate schedule: \"{}\" is unknown; choose constant, step, cosine or plateau", name);
}

namespace {

/// Empty if some part is not a positive number.
std::vector<double> read_speeds(std::string_view text) {
  std::vector<double> speeds;
  for (const std::string_view part : split_text(text, ',')) {
    double speed = 0;
    const bool good = reads(part, speed);
    if (!good || !std::isfinite(speed) || speed <= 0) return {};
    speeds.push_back(speed);
  }
  return speeds;
}

}  // namespace

std::string Balance::text() const {
  if (kind == Kind::even) return "even";
  if (kind == Kind::measured) return "measured";
  return fmt::format("{}", fmt::join(speeds, ","));
}

Balance balance_from(std::string_view text) {
  if (text == "even") return {};
  if (text == "measured") return {Balance::Kind::measured, {}};
  std::vector<double> speeds = read_speeds(text);
  require(!speeds.empty(), ErrorKind::argument,
          "balance: \"{}\"; choose even, measured or a positive number for each worker (1,2,4)",
          text);
  return {Balance::Kind::given, std::move(speeds)};
}

}  // namespace fast::train
