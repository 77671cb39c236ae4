// The parts of a Worker, and the order of its round.
#pragma once

#include <fast/worker/worker.hpp>
#include <optional>

#include "worker/context.hpp"
#include "worker/global_average.hpp"
#include "worker/lag.hpp"
#include "worker/mean_model.hpp"
#include "worker/model_reader.hpp"
#include "worker/publisher.hpp"
#include "worker/recovery.hpp"
#include "worker/round.hpp"
#include "worker/round_plan.hpp"
#include "worker/survivors.hpp"
#include "worker/worker_state.hpp"

namespace fast {

/// The parts refer to each other, so it stays in place.
struct Worker::Impl {
  /// Collective. All that has to agree has been checked.
  Impl(Group group, Schedule schedule, ParameterLayout layout, WorkerOptions options);
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  void begin_round();
  void end_round(const StepOptions& options);
  void republish();
  void set_schedule(const TopologyRule& rule);
  void restore(const std::vector<TensorView>& saved);
  void finish();
  bool abandon() noexcept;
  std::vector<int> own_part() const { return survivors.own_part(left); }
  void barrier(std::string_view purpose) const {
    setting.group.barrier(Deadline(setting.options.deadline), purpose);
  }

  std::unique_ptr<combine::Mixer> mixer;
  worker::Setting setting;
  std::shared_ptr<worker::RoundPlan> plan;  ///< shared with the exchange's edge plan
  Link link;
  worker::Progress progress;
  worker::Context context;
  worker::Publisher publisher;
  worker::ModelReader reader;
  worker::Lag lag;
  worker::Round round;
  worker::Recovery recovery;
  std::optional<worker::GlobalAverage> average;  ///< where the rule averages over all workers
  worker::Survivors survivors;
  worker::WorkerState state;
  worker::MeanModel mean;
  bool rotates = false;  ///< the weights live in slots (RotatingArena)

 private:
  Link open_link() const;
  bool combines_next() const { return (progress.stats.rounds + 1) % setting.steps() == 0; }
  void combine(const algorithm::RoundInfo& info);
  void adopt_initial();

  bool left = false;  ///< finished or abandoned
  Clock::time_point step_began;
};

}  // namespace fast
