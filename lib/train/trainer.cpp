#include <fast/train/trainer.hpp>

#include <algorithm>
#include <optional>
#include <utility>

#include "core/contains.hpp"
#include "exchange/open_coordinator.hpp"
#include "membership/peer_state.hpp"
#include "membership/rank_map.hpp"
#include "membership/run_agreement.hpp"
#include "train/run/final_model.hpp"
#include "train/run/output_files.hpp"
#include "train/run/resume.hpp"
#include "train/run/training_loop.hpp"
#include "worker/start/startup.hpp"

namespace fast::train {
namespace {

using membership::NumberedRound;
using membership::RunAgreement;

RunAgreement::Options agreement_options(const TrainerOptions& options,
                                        const std::optional<ResumePoint>& resumed) {
  RunAgreement::Options agreement;
  agreement.exact = options.worker.staleness == 0;
  agreement.silent_after = options.worker.suspect_after.value_or(suspect_after_at_first);
  agreement.deadline = options.worker.deadline;
  agreement.stop_requested = options.checkpoints.stop_requested;
  agreement.reductions = resumed ? resumed->reductions : 0;
  return agreement;
}

/// Adds the observer that the options make, and returns it. Null: they make none.
std::shared_ptr<Observer> add_observer(RunPlan& plan) {
  TrainerOptions& options = plan.options;
  if (!options.make_observer) return nullptr;
  auto made = options.make_observer(plan.group.rank(), options.worker.log);
  options.worker.observer = all_of({options.worker.observer, made});
  return made;
}

RunLog::Beginning beginning_of(const RunPlan& plan, bool is_spare) {
  if (!is_spare) return RunLog::Beginning::founds;
  const bool joins = contains(plan.group.joined(), plan.group.rank()) &&
                     !contains(plan.group.replaced(), plan.group.rank());
  return joins ? RunLog::Beginning::joins : RunLog::Beginning::on_seat;
}

/// The worker before this one on its seat has left out so many batches, some of them perhaps before
/// the run grew for the last time. If it is not known when that was, only those of the present
/// epoch are known.
void note_left_out(const RunPlan& plan, std::int64_t count, const WorkerStats& stats,
                   const TrainingCursor& position, TrainingBatches& batches) {
  const membership::SeatGrowth& growth = plan.members->growth();
  if (plan.members->map().entered() == 0)
    return batches.note_left_out(count, position.epoch(), position.round());
  const auto in_epoch = static_cast<std::int64_t>(position.round());
  const std::int64_t grown_in = growth.entered_in().value_or(stats.joined_at - in_epoch);
  const std::int64_t since = std::min(count, stats.joined_at - grown_in);
  batches.note_left_out(since, position.epoch(), position.round());
  if (count == since || !growth.entered_in()) return;
  batches.note_left_out(plan, plan.group.size() - 1, count - since,
                        position.epoch_of_past(stats.joined_at - grown_in));
}

/// What was left out on this seat before the last worker there, and spares have not made up for.
/// Not in a run that has grown: the batches of before were others. Returns how many there are.
std::int64_t note_left_out_before(const RunPlan& plan, const WorkerStats& stats,
                                  const TrainingCursor& position, TrainingBatches& batches) {
  const membership::RankMap& map = plan.members->map();
  if (map.entered() > 0) return 0;
  std::int64_t count = 0;
  for (const membership::RoundSpan& span : membership::left_out_before(map, plan.group.rank())) {
    batches.note_left_out(span.end - span.begin, position.epoch(), position.round(),
                          stats.joined_at - span.end);
    count += span.end - span.begin;
  }
  return count;
}

/// A spare that has taken a seat: what the workers before it left out is made up for, and what both
/// may have used is counted.
void note_predecessor(const RunPlan& plan, const WorkerStats& stats, const TrainingCursor& position,
                      TrainingBatches& batches) {
  const std::int64_t left_out = stats.joined_at - stats.predecessor_rounds;
  const bool can_make_up = !plan.rotates();
  const std::int64_t left_before =
      can_make_up ? note_left_out_before(plan, stats, position, batches) : 0;
  if (left_out > 0 && can_make_up) note_left_out(plan, left_out, stats, position, batches);
  if (beginning_of(plan, true) == RunLog::Beginning::joins) return;  // nobody was there before
  const WorkerOptions& worker = plan.options.worker;
  const std::int64_t under_way = worker::rounds_per_combination(worker);
  // The spare before may have made up for one more batch in each round under way.
  const std::int64_t again = std::max<std::int64_t>(0, -left_out) +
                             (left_out <= 0 || can_make_up ? under_way : 0) +
                             std::min(left_before, under_way);
  plan.members->map().records().set_work(
      {.repeated = static_cast<std::uint64_t>(again) * plan.options.batch_size});
}

/// A spare that has a seat comes to the run's place.
void come_to_seat(const RunPlan& plan, RunAgreement& agreement, Resume& resume,
                  TrainingCursor& position, const Replica& replica) {
  std::optional<NumberedRound> next;
  if (plan.members->map().entered() > 0) next = agreement.next_epoch(replica.worker().round());
  resume.join(next);
  const bool joins = beginning_of(plan, true) == RunLog::Beginning::joins;
  agreement.join(joins ? position.rounds() - 1 : position.rounds());  // nobody has saved its file
}

/// Makes the objects of a run, each from those before it, and runs them. A spare waits in Replica.
Summary run(RunPlan& plan, RunFiles& files, std::optional<TrainingBatches>& batches,
            Backend& backend) {
  const bool is_spare = !plan.group.has_seat();
  is_spare ? attend_opening(plan) : open_files(plan, files);
  agree(plan.group.everyone(), plan.deadline(), "Trainer: opening the observers' files", [&] {
    if (!is_spare) add_observer(plan);
  });
  std::optional<ResumePoint> resume_point = find_resume_point(plan);
  open_coordinator(plan);
  RunAgreement agreement(plan.coordinator, exchange::rank_map_of(plan.group, plan.coordinator),
                         agreement_options(plan.options, resume_point));
  Replica replica(plan, backend, [&](int neighbor, std::int64_t round) {
    if (batches) batches->parts().note_missed(neighbor, round);
  });
  if (!plan.group.has_seat()) return {};
  std::shared_ptr<Observer> of_seat;  ///< its Worker was made without it
  if (is_spare) {
    if (plan.group.size() != plan.schedule.workers()) grow(plan);
    continue_files(plan, files);
    of_seat = add_observer(plan);
    batches.emplace(plan);
  }
  Evaluator evaluator(replica, plan.data.normalization, plan.options.batch_size);
  BestModel best(plan, replica, evaluator);
  TrainingCursor position(batches->rounds(), batches->stream_order());
  Balancer balancer(plan, *batches, replica);
  RunState state(replica, best, position, balancer);
  Resume resume(plan, std::move(resume_point), replica, state);
  is_spare ? come_to_seat(plan, agreement, resume, position, replica) : resume.run();
  replica.count_events_from(position.own_rounds());
  replica.add_observer(of_seat);
  if (plan.options.stream) begin_stream(plan, position, *batches->stream_order());
  balancer.start();
  if (is_spare) note_predecessor(plan, replica.worker().stats(), position, *batches);
  complete_overview(plan, worker_options(plan.options).algorithm.traits(), is_spare);
  look_at_training(plan, replica.layout().parameter_count(), batches->rounds());
  const bool joins = beginning_of(plan, is_spare) == RunLog::Beginning::joins;
  RunCheckpoint checkpoint(plan, agreement, state, std::move(files.checkpoints), joins);
  RunLog log(plan, replica, evaluator, position, files.metrics, files.log);
  log.start(beginning_of(plan, is_spare));
  const auto more_workers = [&] {
    grow(plan);
    batches->grow(plan);
  };
  const LoopFigures figures =
      TrainingLoop(plan, *batches, replica, best, balancer, checkpoint, log, more_workers).run();
  if (figures.left) {
    log.leave(figures.seconds);
    plan.coordinator->spread_news();
  }
  if (figures.left || !plan.group.has_seat()) {
    plan.group.disable_collectives();
    Summary summary;
    summary.has_left = figures.left;
    return summary;
  }
  Summary summary = RunEnd(plan, replica, evaluator, best, checkpoint, figures).summary();
  log.end(summary, figures.seconds);
  merge_files(plan, summary);
  return summary;
}

}  // namespace

Summary train(const Group& group, const TopologyRule& rule, Backend& backend,
              const data::Splits& data, const TrainerOptions& options) {
  std::optional<RunPlan> plan;
  std::optional<TrainingBatches> batches;
  agree(group.everyone(), Deadline(options.worker.deadline), "Trainer: starting up", [&] {
    plan.emplace(plan_run(group, rule, backend, data, options));
    if (group.has_seat()) batches.emplace(*plan);
    const RunDirectories directories = directories_of(options);
    if (plan->is_first_of_host()) require_free(directories);
  });
  RunFiles files = prepare_files(*plan);
  try {
    return run(*plan, files, batches, backend);
  } catch (const std::exception& error) {
    if (files.metrics) files.metrics->fail(error.what());
    if (files.log) files.log->write(LogLevel::error, error.what());
    throw;
  }
}

}  // namespace fast::train
