// How a run continues from a checkpoint of as many workers, or of another number.
#pragma once

#include <fast/train/checkpoint.hpp>

#include <optional>

#include "train/run/run_plan.hpp"
#include "train/run/run_state.hpp"

namespace fast::train {

/// Worker `rank` of `workers` takes these workers' files: a group of them, or one that several
/// take.
std::vector<int> sources_of(const Manifest& manifest, int rank, int workers);

/// When every worker has its file, and at staleness 0 all files are of the same round, the run
/// continues exactly. Otherwise the workers start from their files or, where those are missing,
/// from averages, and the rule begins anew.
class Resume {
 public:
  Resume(const RunPlan& plan, Replica& replica, RunState& state)
      : plan_(plan), replica_(replica), state_(state) {}

  /// Collective. Does nothing when the options name no checkpoint.
  void run();

 private:
  void find();
  bool is_exact() const;
  void load(bool exact);
  void load_average();
  void take_any_place();

  const RunPlan& plan_;
  Replica& replica_;
  RunState& state_;
  Manifest manifest_;
  std::optional<Safetensors> own_;  ///< empty: missing, broken, or of another number of workers
};

}  // namespace fast::train
