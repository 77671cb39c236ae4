// Learning rates over a run.
#pragma once

#include <limits>
#include <string>
#include <string_view>

namespace fast::train {

/// base × a factor that depends on how far the run is. Linear scaling (Goyal et al. 2017, arXiv
/// 1706.02677): with k times the batch, take k times the base and a warm-up.
struct LearningRate {
  enum class Schedule {
    constant,
    step,    ///< a tenth after half of the run, a hundredth after three quarters
    cosine,  ///< half a cosine, from 1 to 0 (Loshchilov & Hutter 2017, arXiv 1608.03983)
  };
  double base = 0.05;
  Schedule schedule = Schedule::constant;
  double warmup_epochs = 0;  ///< of a linear rise from 0; at most a quarter of the run counts

  /// That counts in a run of so many epochs.
  double warmup_of(double epochs) const;
  /// The rate after `epochs_done` of `epochs`; fractions of epochs count.
  double at(double epochs_done, double epochs) const;
};

/// "0.05, cosine, warm-up of 1 epoch": in a run of so many epochs.
std::string describe(const LearningRate& rate,
                     double epochs = std::numeric_limits<double>::infinity());

/// "constant", "step" or "cosine". Throws Error(argument) with the choices on another name.
LearningRate::Schedule learning_rate_schedule(std::string_view name);

}  // namespace fast::train
