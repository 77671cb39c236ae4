#include "train/run/final_model.hpp"

#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/topology/topology.hpp>
#include <fast/train/safetensors.hpp>
#include <fast/worker/closing.hpp>
#include <iterator>
#include <utility>

#include "train/checkpoint/run_directories.hpp"

namespace fast::train {
namespace {

void note_mean_model(Report& report, const Tested& tested) {
  report.mean_model_samples = static_cast<double>(tested.samples);
  report.mean_model_correct = static_cast<double>(tested.correct);
  report.mean_model_loss_sum = tested.loss_sum;
  report.mean_model = tested.measures;
}

std::vector<int> union_of(const std::vector<int>& a, const std::vector<int>& b) {
  std::vector<int> all;
  std::set_union(a.begin(), a.end(), b.begin(), b.end(), std::back_inserter(all));
  return all;
}

std::vector<int> without(const std::vector<int>& all, const std::vector<int>& some) {
  std::vector<int> others;
  std::set_difference(all.begin(), all.end(), some.begin(), some.end(), std::back_inserter(others));
  return others;
}

/// Of two reasons why something was not saved, each of which may be empty.
std::string first_of(std::string one, std::string other) {
  return one.empty() ? std::move(other) : std::move(one);
}

}  // namespace

RunEnd::RunEnd(const RunPlan& plan, Replica& replica, Evaluator& evaluator, BestModel& best,
               RunCheckpoint& checkpoint, LoopFigures figures)
    : plan_(plan),
      replica_(replica),
      evaluator_(evaluator),
      best_(best),
      checkpoint_(checkpoint),
      figures_(figures) {}

Summary RunEnd::summary() {
  replica_.finish();
  stats_ = replica_.worker().stats();
  note_gone({});
  replaced_ = plan_.group.replaced();
  joined_ = plan_.group.joined();
  cut_ = checkpoint_.conclude(gone());
  note_gone(checkpoint_.agreement().given_up());
  Summary summary = cut_ && checkpoint_.saves() ? end_early() : end_with_survivors();
  describe_run(summary);
  return summary;
}

/// `given_up` by any worker. Workers of other hosts that have left may count as lost: only their
/// neighbors have seen more. Parts of a run that have given up each other end each by itself.
void RunEnd::note_gone(const std::vector<int>& given_up) {
  const Departures departed = replica_.worker().departed();
  left_ = union_of(departed.left, checkpoint_.agreement().left());
  lost_ = without(union_of(departed.lost, given_up), left_);
  if (gone().size() == static_cast<std::size_t>(plan_.group.size()))
    lost_ = without(departed.lost, left_);
}

std::vector<int> RunEnd::gone() const { return union_of(lost_, left_); }

/// Until the last collective call a worker may still go.
Summary RunEnd::end_with_survivors() {
  if (is_alone()) return end_alone();
  try {
    close();
    return end_together();
  } catch (const Error& error) {
    const std::vector<int> given_up = checkpoint_.agreement().given_up();
    const bool is_known = error.kind() == ErrorKind::deadline && !given_up.empty();
    if (!is_known && !is_of_a_loss(plan_.group, error)) throw;
    note_gone(union_of(plan_.group.died(), given_up));
    failed_together_ = true;
    return end_alone();
  }
}

/// Workers that do not average with neighbors are not brought together.
void RunEnd::close() {
  const bool average =
      plan_.options.worker.algorithm.traits().topology.scope == algorithm::Scope::neighbors;
  if (plan_.all_reduces() || !average) return;
  closing_rounds_ = plan_.options.closing_rounds.value_or(
      closing_rounds(plan_.schedule, plan_.overview.spectrum));
  if (closing_rounds_ == 0) return;
  plan_.group.barrier(plan_.deadline(), "Trainer: closing rounds");
  if (replica_.may_lose_worker()) reduce();
  const std::int64_t wanted = closing_rounds_;
  closing_rounds_ =
      replica_.close(wanted, [this] { return checkpoint_.agreement().stop_is_wanted(); });
  mean_ = AlignedBuffer();  // of before, if at all
  if (closing_rounds_ == wanted || plan_.group.rank() != 0) return;
  plan_.log(LogLevel::info,
            fmt::format("a stop was asked for: {} of {} closing rounds", closing_rounds_, wanted));
}

/// At the weights as they are now. Every replica is read once, and so is the mean.
void RunEnd::reduce(bool with_mean) {
  if (mean_.size_bytes() > 0) return;
  if (!replica_.has_worker()) {
    mean_ = replica_.own_model();
    return;
  }
  if (with_mean) {
    mean_ = replica_.reduced_model(distance_);
  } else {
    distance_ = replica_.reduced_distance();
  }
}

/// The model is worker 0's best one, if it has any; else the mean model.
Summary RunEnd::end_together() {
  const AlignedBuffer best = best_.is_wanted() ? best_.hand_out() : AlignedBuffer();
  const bool has_best = best.size_bytes() > 0;
  reduce(!has_best);
  const AlignedBuffer& model = has_best ? best : mean_;
  const Report mine = report(model);
  checkpoint_.finish();
  Summary summary;
  summary.consensus_distance = distance_;
  const std::vector<Report> all = gather(plan_.group, plan_.deadline(), mine);
  // No worker has a checkpoint to write any more.
  summary.unsaved = reason(first_of(save(model), checkpoint_.missing()));
  add_up(all, static_cast<double>(plan_.data.test.size()), summary);
  return summary;
}

/// Of a run that has lost workers. Nothing collective is done any more: every survivor makes its
/// own summary. The survivors still read each other's weights.
Summary RunEnd::end_alone() {
  const bool has_best = plan_.group.size() > 1 && best_.is_wanted() && best_.exists();
  reduce(!has_best);
  plan_.group.disable_collectives();
  const AlignedBuffer model = has_best ? best_.take() : std::move(mean_);
  Report mine = report(model);
  note_mean_model(mine, evaluator_.of(model, plan_.data.test));
  Summary summary;
  summary.consensus_distance = distance_;
  checkpoint_.finish();
  summary.unsaved = reason(first_of(save(model), checkpoint_.missing()));
  add_up({mine}, static_cast<double>(plan_.data.test.size()), summary);
  if (figures_.rounds > 0) summary.samples_per_second = figures_.all_samples / figures_.seconds;
  return summary;
}

/// Of a run that continues another time.
Summary RunEnd::end_early() {
  replica_.take_back_trained();
  std::string unsaved = checkpoint_.leave();
  if (is_alone()) plan_.group.disable_collectives();
  Summary summary;
  summary.unsaved = reason(std::move(unsaved));
  summary.evaluated = false;
  summary.rounds = static_cast<std::uint64_t>(checkpoint_.position().rounds());
  summary.epochs = static_cast<std::uint64_t>(checkpoint_.position().epoch());
  summary.seconds = figures_.seconds;
  summary.lr_reductions = static_cast<std::uint64_t>(figures_.reductions);
  return summary;
}

Report RunEnd::report(const AlignedBuffer& model) {
  const Group& group = plan_.group;
  const data::Dataset& test = plan_.data.test;
  Report mine{};
  mine.loop_s = figures_.seconds;
  mine.samples = figures_.samples;
  mine.worker = stats_;
  mine.reduce_s = replica_.step().reduce_s();
  mine.bytes_per_round =
      stats_.bytes_sent / static_cast<double>(std::max<std::int64_t>(1, figures_.rounds));
  mine.rounds = static_cast<double>(checkpoint_.position().own_rounds());
  mine.epochs = checkpoint_.position().epoch();
  mine.reductions = static_cast<double>(figures_.reductions);
  if (plan_.all_reduces()) {
    mine.bytes_per_round = 2.0 * static_cast<double>(replica_.layout().size_bytes()) *
                           (group.size() - 1) / group.size();
  }
  const Evaluation own = evaluator_.own(test);
  mine.replica_accuracy = static_cast<double>(own.correct) / static_cast<double>(test.size());
  mine.replica = own.measures;
  note_mean_model(mine, evaluator_.of(model, part_of(test, group.rank(), group.size())));
  return mine;
}

/// The replica becomes that model. Returns why it could not be saved.
std::string RunEnd::save(const AlignedBuffer& model) {
  replica_.adopt(model);
  if (!plan_.options.out || !is_first_left()) return {};
  try {
    save_safetensors(*plan_.options.out / mean_model_name, replica_.backend().parameters(),
                     to_metadata(note_of(plan_)));
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

/// Whether this worker writes what is written once: the lowest worker of the largest part of those
/// that are left.
bool RunEnd::is_first_left() const {
  const std::vector<int> gone = this->gone();
  const int first = gone.empty() ? 0 : living_parts(plan_.schedule, gone).front().front();
  return plan_.group.rank() == first;
}

/// Why something was not saved, on all workers; `unsaved` is this worker's reason. Collective
/// unless workers are lost.
std::string RunEnd::reason(std::string unsaved) {
  if (cut_ && !checkpoint_.saves() && !plan_.options.out)
    unsaved = "the run was stopped, and no directory was given to save to";
  if (!is_alone()) {
    const auto all =
        plan_.group.all_gather(unsaved, plan_.deadline(), "Trainer: telling what was not saved");
    const auto first =
        std::ranges::find_if(all, [](const std::string& text) { return !text.empty(); });
    return first == all.end() ? std::string() : *first;
  }
  const auto worker = checkpoint_.agreement().report(unsaved.empty());
  if (unsaved.empty() && worker) unsaved = fmt::format("worker {} could not save", *worker);
  return unsaved;
}

void RunEnd::describe_run(Summary& summary) const {
  describe(plan_.overview, summary);
  summary.stopped = cut_;
  summary.ended_alone = is_alone();
  summary.closing_rounds = static_cast<std::uint64_t>(closing_rounds_);
  summary.lost = lost_;
  summary.left = left_;
  summary.replaced = replaced_;
  summary.joined = joined_;
  if (plan_.members) summary.repeated_samples = plan_.members->repeated();
  if (!gone().empty()) summary.parts = living_parts(plan_.schedule, gone());
}

}  // namespace fast::train
