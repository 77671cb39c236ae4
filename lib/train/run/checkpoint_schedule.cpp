#include "train/run/checkpoint_schedule.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "core/numbers.hpp"
#include "train/checkpoint/manifest.hpp"
#include "train/checkpoint/run_directories.hpp"
#include "train/record/run_events.hpp"
#include "train/run/output_files.hpp"

namespace fast::train {

using membership::NumberedRound;
using membership::Request;
using membership::RoundDecision;
using membership::Stage;

namespace {

constexpr double hear_within_s = 0.5;

/// Rounds within which every worker hears of a checkpoint that is wanted, so that none has to hold.
/// Above staleness 0 none holds: the checkpoint is of the round under way.
std::int64_t rounds_ahead(bool exact, const std::optional<double>& round_s) {
  if (!exact || !round_s) return 0;
  return saturate<std::int64_t>(std::ceil(hear_within_s / std::max(*round_s, 1e-6)));
}

}  // namespace

RunCheckpoint::RunCheckpoint(const RunPlan& plan, membership::RunAgreement& agreement,
                             RunState& state, std::unique_ptr<CheckpointWriter> writer, bool joins)
    : plan_(plan),
      agreement_(agreement),
      state_(state),
      position_(state.position()),
      writer_(std::move(writer)),
      last_saved_(position_.rounds()),
      rounds_at_save_(last_saved_),
      lacks_last_(joins),
      has_any_(resumes_in_place(directories_of(plan.options))) {}

bool RunCheckpoint::may_go_on(const std::optional<double>& round_s) {
  const bool exact = plan_.options.worker.staleness == 0;
  for (;;) {
    const RoundDecision turn =
        agreement_.take_turn(position_.rounds(), rounds_ahead(exact, round_s));
    if (turn == RoundDecision::go) return true;
    stopped_ = turn == RoundDecision::stop;
    save_settled(stopped_ ? Request::stop : Request::save);
    if (stopped_) return false;
    agreement_.saved();
  }
}

/// In the round on which the workers have agreed.
void RunCheckpoint::save_settled(Request what) {
  const std::int64_t round = agreement_.round_of(what);
  if (saves() && (lacks(round) || !has_any_)) save(round);
}

void RunCheckpoint::wait() {
  const std::int64_t rounds = position_.rounds();
  agreement_.wait(rounds);
  if (!saves()) return;
  if (agreement_.save_is_due(rounds)) {
    save_settled(Request::save);
    agreement_.saved();
  } else if (rounds > rounds_at_save_ && is_due_by_time()) {
    agreement_.request(Request::save);
  }
}

bool RunCheckpoint::is_due_by_time() const {
  const double every_s = plan_.options.checkpoints.every_s;
  return every_s > 0 && Seconds(Clock::now() - saved_at_).count() >= every_s;
}

void RunCheckpoint::after_round() {
  if (!saves()) return;
  const CheckpointOptions& options = plan_.options.checkpoints;
  const std::int64_t rounds = position_.rounds();
  const bool exact = plan_.options.worker.staleness == 0;
  const bool by_rounds =
      options.every_rounds > 0 && rounds >= rounds_at_save_ + options.every_rounds;
  if (is_due_by_time() || (by_rounds && !exact)) agreement_.request(Request::save);
  const bool grows = plan_.group.size() != plan_.schedule.workers();
  if (is_due() && !grows) save(rounds);
}

/// By rounds, at staleness 0.
bool RunCheckpoint::is_due() const {
  const std::int64_t every = plan_.options.checkpoints.every_rounds;
  const bool exact = plan_.options.worker.staleness == 0;
  return saves() && exact && every > 0 && position_.rounds() > 0 && position_.rounds() % every == 0;
}

void RunCheckpoint::note_epoch(std::int64_t worker_round) {
  const auto left = static_cast<std::int64_t>(position_.epoch_rounds() - position_.round());
  agreement_.note_next_epoch(
      {static_cast<std::uint64_t>(position_.epoch()) + 1, worker_round + left});
  // Others may have begun this epoch. They hear of it before they begin the next one.
  const bool alone = plan_.group.size() == 1;
  agreement_.lower_from(position_.rounds() + (alone ? 0 : left));
  if (const std::int64_t wanted = state_.wanted_reductions(); wanted > 0 && wanted > reductions())
    agreement_.lower(wanted);
  if (is_due() && lacks(position_.rounds())) save(position_.rounds());
}

std::int64_t RunCheckpoint::reductions() const {
  if (plan_.options.learning_rate.schedule != LearningRate::Schedule::plateau) return 0;
  return agreement_.reductions(position_.rounds());
}

void RunCheckpoint::come_to_seat(std::int64_t worker_round) {
  const NumberedRound next = agreement_.next_epoch(worker_round);
  position_.take_place(static_cast<int>(next.number), next.round, worker_round);
}

/// Above staleness 0, others may train on for long.
void RunCheckpoint::end(bool left) {
  const bool goes_on =
      saves() && !left && plan_.options.worker.staleness != 0 && plan_.group.has_seat();
  if (goes_on) keep();
  const Stage stage = left ? Stage::left : stopped_ ? Stage::stopped : Stage::done;
  agreement_.end(stage, position_.rounds());
  if (!goes_on) return;
  after_end_.emplace([this](Seconds) {
    save_again();
    return false;
  });
}

/// What the others save after this worker's end has its last state.
void RunCheckpoint::save_again() {
  if (!agreement_.save_is_due(position_.rounds())) return;
  writer_->save_kept(agreement_.round_of(Request::save));
  agreement_.saved();
}

/// Then no further checkpoint is settled. The last one may have been settled a moment before.
bool RunCheckpoint::conclude(const std::vector<int>& lost) {
  const bool any_was_stopped = agreement_.conclude(lost);
  if (after_end_) {
    after_end_.reset();
    save_again();
  }
  return any_was_stopped;
}

void RunCheckpoint::finish() {
  if (saves()) writer_->finish();
}

std::string RunCheckpoint::missing() const {
  const std::string problem = saves() ? writer_->finish() : std::string();
  const bool exists = problem.empty() || has_checkpoint(*directories_of(plan_.options).checkpoints);
  return exists ? std::string() : "no checkpoint: " + problem;
}

/// A worker that had made all its rounds saves, too: the others need its file.
std::string RunCheckpoint::leave() {
  if (!stopped_) save(agreement_.round_of(Request::stop));
  return writer_->finish();
}

void RunCheckpoint::keep() {
  writer_->expect(
      plan_.schedule.workers(), [&agreement = agreement_] { return agreement.absent(); },
      [&agreement = agreement_](std::int64_t round) { return agreement.has_ended_before(round); });
  Metadata metadata = state_.metadata();
  metadata.merge(to_metadata(note_of(plan_)));
  if (const std::int64_t times = reductions(); times > 0)
    metadata[lr_reductions_key] = std::to_string(times);
  writer_->keep(state_.tensors(), metadata);
}

/// A worker that was suspended may have lost its seat since the round.
void RunCheckpoint::save(std::int64_t round) {
  if (!plan_.group.has_seat()) return;
  const auto began = Clock::now();
  keep();
  writer_->save_kept(round);
  RunEvents(plan_).milestone(MilestoneEvent::Kind::saved, fmt::format("round {}", round),
                             position_.epoch(), round, began);
  last_saved_ = round;
  rounds_at_save_ = std::min(round, position_.rounds());
  lacks_last_ = false;
  has_any_ = true;
  saved_at_ = Clock::now();
}

}  // namespace fast::train
