// A training run with spares: what happens in it, drawn from a seed.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace seats {

enum class Trouble {
  none,
  kill,             ///< a worker dies
  kill_two,         ///< two die, at different times
  kill_the_seated,  ///< a worker dies, later the spare that has its seat
  pause,            ///< a worker is suspended until a spare has its seat, and comes back
  grow,             ///< a spare joins
};

struct TrainingPlan {
  std::uint64_t seed = 0;  ///< of the model and the order of the samples
  Trouble trouble = Trouble::none;
  int workers = 4, spares = 2;
  std::int64_t staleness = 0;
  int samples = 6000, epochs = 6;
  /// Ranks, and the rounds in which they are struck. For a spare: so many rounds after it sat down.
  std::vector<int> victims, rounds;
  int delay_us = 0;      ///< after the beginning of that round
  bool devices = false;  ///< the weights are there

  static constexpr std::size_t batch_size = 16;
  static constexpr double suspect_after_s = 1, pause_s = 2.5, step_s = 0.004;
  int epoch_rounds() const { return samples / workers / static_cast<int>(batch_size); }
  int seats() const { return workers + (trouble == Trouble::grow ? 1 : 0); }  ///< in the end
};

std::string name(Trouble trouble);

/// Run `index` of a seed. The same for the same numbers, except for samples and epochs.
TrainingPlan draw_growth(std::uint64_t seed, std::uint64_t index, int samples, int epochs,
                         const std::vector<std::int64_t>& staleness);
/// A run to which one of the others happens.
TrainingPlan draw_training(std::uint64_t seed, std::uint64_t index, int samples, int epochs,
                           const std::vector<std::int64_t>& staleness);

std::string write(const TrainingPlan& plan);
TrainingPlan read_training(const std::string& text);

}  // namespace seats
