// What a run tells its observer. Without one, nothing is done.
#pragma once

#include <fast/core/deadline.hpp>
#include <fast/core/observer.hpp>

#include <string_view>

#include "train/run/run_plan.hpp"

namespace fast::train {

class RunEvents {
 public:
  explicit RunEvents(const RunPlan& plan)
      : observer_(plan.options.worker.observer.get()),
        wants_values_(observer_ != nullptr && plan.has_observer),
        worker_(plan.group.rank()) {}

  bool wanted() const { return observer_ != nullptr; }
  /// Whether values() does anything. It copies all weights.
  bool wants_values() const { return wants_values_; }
  void scalar(std::string_view name, double value, std::int64_t round) const {
    if (wanted()) observer_->on_scalar({name, value, worker_, round, Clock::now()});
  }
  /// Something that began then and ends now.
  void milestone(MilestoneEvent::Kind kind, std::string_view text, int epoch, std::int64_t round,
                 Clock::time_point began) const {
    if (wanted()) {
      observer_->on_milestone({kind, text, worker_, epoch, round, began, Clock::now()});
    }
  }
  /// The elements of each parameter of host memory, as floats: "weights/NAME" if `prefix` is
  /// "weights/".
  void values(std::string_view prefix, const std::vector<TensorView>& tensors, int epoch,
              std::int64_t round) const;

 private:
  Observer* observer_;
  bool wants_values_;
  int worker_;
};

}  // namespace fast::train
