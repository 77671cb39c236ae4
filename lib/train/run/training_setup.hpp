// What a run is: the options, data and topology on which all workers agree before training.
#pragma once

#include <fast/core/deadline.hpp>
#include <fast/data/dataset.hpp>
#include <fast/exchange/group.hpp>
#include <fast/train/model_metadata.hpp>
#include <fast/train/trainer.hpp>
#include <fast/worker/worker.hpp>

#include <memory>

#include "membership/members.hpp"
#include "train/balance/shares.hpp"
#include "train/overview.hpp"

namespace fast::train {

/// The samples of a run. No worker trains on `validation` and `test`.
struct RunData {
  data::Dataset train, validation, test;
  data::Normalization normalization;
  std::vector<std::string> notes, features, class_names;  ///< see data::Splits
  std::string target;
};

struct RunPlan {
  Group group;
  TrainerOptions options;
  RunData data;
  Schedule given;     ///< the topology's, in which rank r is worker r
  Schedule schedule;  ///< the same topology with the ranks in their places
  Shares shares;      ///< before a Balancer changes them
  Overview overview;
  TopologyRule rule;          ///< of the given schedule, for any number of workers
  bool has_observer = false;  ///< of the program; it is told figures and weights after each epoch
  std::shared_ptr<membership::Members> members;          ///< null without spares
  std::shared_ptr<membership::Coordinator> coordinator;  ///< null before open_coordinator()

  Deadline deadline() const { return Deadline(options.worker.deadline); }
  bool all_reduces() const { return options.all_reduce; }
  bool rotates() const { return options.arena == Arena::rotating; }
  bool is_first_of_host() const;
  void log(LogLevel level, std::string_view text) const;
};

/// Throws Error(argument) when options are out of range or do not fit each other.
RunPlan plan_run(const Group& group, const TopologyRule& rule, Backend& backend,
                 const data::Splits& data, const TrainerOptions& options);

/// Collective over all ranks, spares among them. For the agreements of the run.
void open_coordinator(RunPlan& plan);

/// The topology of the run's Worker, for any number of workers. When a run grows, ranks are not put
/// in other places: each worker must know the places alone.
TopologyRule worker_rule(const RunPlan& plan);

/// The workers have become more: they are as many as the group says.
void grow(RunPlan& plan);

/// Of the run's Worker: the settings that must be equal on all workers are added to must_agree.
WorkerOptions worker_options(const TrainerOptions& options);

/// What those who use the run's models must know.
ModelMetadata note_of(const RunPlan& plan);

/// On which samples the mean model is tested after every epoch.
std::string validation_text(const RunPlan& plan);

/// Says in the overview what is trained.
void look_at_training(RunPlan& plan, std::size_t parameters, std::size_t epoch_rounds);

/// Collective unless `alone`. Completes the overview when the Worker is there.
void complete_overview(RunPlan& plan, const algorithm::RuleTraits& algorithm, bool alone = false);

}  // namespace fast::train
