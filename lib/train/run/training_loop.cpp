#include "train/run/training_loop.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <set>
#include <thread>
#include <utility>

#include "mpi/launcher.hpp"
#include "worker/start/startup.hpp"

namespace fast::train {
namespace {

constexpr auto samples_asked_for_every = std::chrono::milliseconds(20);
constexpr Seconds counted_every{0.05};
constexpr auto report_wait_after = std::chrono::seconds(10);

/// Batches that a spare has made up for, and what it learned from them reached the others. Another
/// spare that takes the seat later need not make up for these.
void record_replayed_batches(const RunPlan& plan, std::int64_t batches) {
  if (plan.members) plan.members->map().records().set_work({.made_up = batches});
}

/// The first round with a combination from that one on: workers that join begin in it.
std::int64_t first_combined(std::int64_t round, std::int64_t steps) {
  return (round + steps - 1) / steps * steps;
}

/// A growth that is agreed on, or else the last one: with local steps, others may have come to its
/// round long before this worker, which may be the one that settles when all stop.
void note_newcomers(const RunPlan& plan, std::int64_t worker_round, std::int64_t steps,
                    RunCheckpoint& checkpoint) {
  if (!plan.members || steps == 1) return;
  const membership::SeatGrowth& growth = plan.members->growth();
  const auto coming = growth.coming();
  const auto grown_in = coming ? coming->round : growth.entered_in();
  if (!grown_in) return;
  const std::int64_t before = checkpoint.position().rounds() - worker_round;
  checkpoint.note_newcomers(before + *grown_in, before + first_combined(*grown_in, steps));
}

}  // namespace

TrainingLoop::TrainingLoop(const RunPlan& plan, TrainingBatches& batches, Replica& replica,
                           BestModel& best, Balancer& balancer, RunCheckpoint& checkpoint,
                           RunLog& log, Grow grow)
    : plan_(plan),
      batches_(batches),
      replica_(replica),
      best_(best),
      balancer_(balancer),
      checkpoint_(checkpoint),
      position_(checkpoint.position()),
      log_(log),
      grow_(std::move(grow)) {}

LoopFigures TrainingLoop::run() {
  const auto begun = static_cast<std::int64_t>(position_.round());  // of the epoch
  figures_.reductions = checkpoint_.reductions();
  validated_ = std::max<std::int64_t>(0, replica_.worker().round() - begun) / steps();
  while (!best_.has_ended() && position_.epoch() < plan_.options.epochs && has_seat()) {
    begin_epoch();
    const int epoch = position_.epoch();
    if (epoch >= plan_.options.epochs) break;  // the others have come to the end
    run_epoch(epoch);
    if (figures_.left || checkpoint_.stopped() || best_.stops(epoch)) break;
  }
  if (has_seat() && !figures_.left && !checkpoint_.stopped()) make_up_rest();
  log_.finish();
  checkpoint_.end(figures_.left);
  return figures_;
}

/// Rounds from one combination to the next.
std::int64_t TrainingLoop::steps() const {
  return worker::rounds_per_combination(plan_.options.worker);
}

/// Before `next`, where the next epoch begins, or later ones. A worker that joins begins with the
/// next combination, which must come before the end. From then on, epochs have rounds_of_more().
GrowthRounds TrainingLoop::growth_rounds(std::int64_t next, std::int64_t epoch_rounds) const {
  GrowthRounds rounds{.first = next, .every = epoch_rounds, .before = next};
  std::int64_t left = plan_.options.epochs - 1 - position_.epoch();
  // As long as the rounds that are left are more than those of a combination, one is among them.
  const std::int64_t sure = std::max<std::int64_t>(0, left - steps() / rounds_of_more() - 1);
  rounds.before += sure * epoch_rounds;
  for (left -= sure; left > 0; --left) {
    const std::int64_t begins = (rounds.before + steps() - 1) / steps() * steps();
    if (begins >= rounds.before + left * rounds_of_more()) break;
    rounds.before += epoch_rounds;
  }
  return rounds;
}

/// Of an epoch with one worker more; 0: the samples do not suffice.
std::int64_t TrainingLoop::rounds_of_more() const {
  const std::size_t needed =
      plan_.options.batch_size * static_cast<std::size_t>(plan_.schedule.workers() + 1);
  return static_cast<std::int64_t>(plan_.data.train.size() / needed);
}

/// A worker that was away in the growth's round comes to the place of the others.
void TrainingLoop::grow() {
  grow_();
  position_.begin_epochs_of(batches_.rounds());
  const std::int64_t round = replica_.worker().round();
  if (round > plan_.members->growth().entered_in()) checkpoint_.come_to_seat(round);
}

/// The workers become more at the beginning of an epoch only, so that each one's batches are those
/// of as many workers as the others take.
void TrainingLoop::begin_epoch() {
  Worker& worker = replica_.worker();
  if (plan_.group.size() != plan_.schedule.workers()) grow();
  const auto epoch_rounds = static_cast<std::int64_t>(position_.epoch_rounds());
  const std::int64_t next =
      worker.round() + epoch_rounds - static_cast<std::int64_t>(position_.round());
  const bool may_grow = plan_.options.stream == nullptr;
  if (may_grow && rounds_of_more() > 0) worker.allow_growth(growth_rounds(next, epoch_rounds));
  balancer_.begin_epoch(position_.epoch(), position_.round() > 0);
  checkpoint_.note_epoch(worker.round());
}

/// Lost or left. A worker knows those of its own host, the agreement those that have left of all
/// hosts.
std::vector<int> TrainingLoop::gone() const {
  const Departures departed = replica_.worker().departed();
  std::vector<int> gone = departed.lost;
  for (const auto& left : {departed.left, checkpoint_.agreement().left()})
    gone.insert(gone.end(), left.begin(), left.end());
  return gone;
}

/// How many workers train, on all hosts, for figures of speed: counted 20 times a second at most.
int TrainingLoop::living() {
  if (living_ > 0 && Clock::now() - counted_ < counted_every) return living_;
  counted_ = Clock::now();
  const std::vector<int> gone = this->gone(), absent = checkpoint_.agreement().absent();
  std::set<int> missing(gone.begin(), gone.end());
  missing.insert(absent.begin(), absent.end());
  missing.erase(plan_.group.rank());
  return living_ = std::max(1, plan_.group.size() - static_cast<int>(missing.size()));
}

/// Averages over all workers need every worker.
std::string TrainingLoop::why_not_to_leave() const {
  const algorithm::RuleTraits& traits = plan_.options.worker.algorithm.traits();
  if (plan_.all_reduces() || traits.topology.scope == algorithm::Scope::everybody ||
      traits.timing.average_every > 0)
    return "all workers average together";
  if (plan_.options.worker.site && plan_.group.size() > 1)
    return "the workers of a site make exchanges together";
  return best_.is_keeper() ? "it keeps the best model" : "";
}

/// A checkpoint that all have agreed on later is not waited for.
bool TrainingLoop::leaves() {
  if (refused_ || !plan_.options.leave_requested || !plan_.options.leave_requested()) return false;
  const std::string reason = why_not_to_leave();
  refused_ = !reason.empty();
  plan_.log(refused_ ? LogLevel::warning : LogLevel::info,
            fmt::format("worker {}: {} in round {}, as it was asked to{}", plan_.group.rank(),
                        refused_ ? "cannot leave training" : "leaves training", position_.rounds(),
                        refused_ ? ": " + reason : ""));
  if (refused_) {
    mpi::notify_launcher(mpi::LauncherNote::stays);
    return false;
  }
  replica_.worker().leave();
  return figures_.left = true;
}

void TrainingLoop::run_epoch(int epoch) {
  batches_.take_over(gone(), replica_.worker().round());
#ifndef NDEBUG
  replica_.worker().layout().require_in_place(replica_.home().tensors());
#endif
  sums_ = {};
  had_samples_ = false;
  skipped_ = 0;
  log_.begin_epoch();
  while (position_.epoch() == epoch && has_seat()) {
    await_samples();
    note_newcomers(plan_, replica_.worker().round(), steps(), checkpoint_);
    if (figures_.left || leaves() || !checkpoint_.may_go_on(round_s())) return;
    const std::size_t round = position_.round();
    const std::int64_t before = replica_.worker().round();
    run_round(epoch, round);
    if (!has_seat()) return;
    const std::int64_t made = replica_.worker().round() - before;
    position_.advance(made);
    if (made > 1) largest_rate_.reset();  // others have made the rounds between
    after_round(epoch, round);
    if (!has_seat()) return;
    checkpoint_.after_round();
  }
}

/// Of a stream, before the round begins: a worker that has begun it must finish it. Every worker
/// waits for the samples of all, so that none waits for another in the round. A stop that is agreed
/// on in a later round comes with samples, since another worker has them.
void TrainingLoop::await_samples() {
  const auto began = Clock::now();
  while (!batches_.is_there(position_.epoch(), position_.round())) {
    checkpoint_.wait();
    if (checkpoint_.agreement().stop_is_settled() || leaves()) return;
    if (Clock::now() - began > report_wait_after) report_wait();
    std::this_thread::sleep_for(samples_asked_for_every);
  }
  waited_s_ += Seconds(Clock::now() - began).count();
}

/// Once a run.
void TrainingLoop::report_wait() {
  if (plan_.group.rank() != 0 || std::exchange(told_of_wait_, true)) return;
  const std::uint64_t end = batches_.stream_order()->round_end(
      static_cast<std::size_t>(position_.epoch()), position_.round());
  plan_.log(LogLevel::info,
            fmt::format("{}: waits for samples; the next round needs those up to message {}",
                        plan_.options.stream->name(), end - 1));
}

/// That of the round's middle.
double TrainingLoop::rate_in(int epoch, std::size_t round, std::int64_t reductions) const {
  const double epochs_done =
      epoch + (static_cast<double>(round) + 0.5) / static_cast<double>(batches_.rounds());
  return plan_.options.learning_rate.at(epochs_done, plan_.options.epochs, reductions);
}

/// When the workers have agreed on it.
void TrainingLoop::lower_rate(int epoch, std::size_t round) {
  const std::int64_t before = std::exchange(figures_.reductions, checkpoint_.reductions());
  if (figures_.reductions != before)
    log_.lower_rate(rate_in(epoch, round, before), rate_in(epoch, round, figures_.reductions));
}

/// Of the rounds that others have made, or this run before it was resumed; for rules that ask. The
/// rate falls after the warm-up only: what it was before is the largest one.
double TrainingLoop::largest_rate_before(int epoch, std::size_t round) const {
  double largest = 0;
  if (!plan_.options.worker.algorithm.traits().step.needs_learning_rate) return largest;
  for (int e = 0; e <= epoch; ++e) {
    const std::size_t rounds = e < epoch ? batches_.rounds() : round;
    for (std::size_t r = 0; r < rounds; ++r) largest = std::max(largest, rate_in(e, r, 0));
  }
  return largest;
}

void TrainingLoop::run_round(int epoch, std::size_t round) {
  const auto start = Clock::now();
  if (!largest_rate_) largest_rate_ = largest_rate_before(epoch, round);
  lower_rate(epoch, round);
  rate_ = rate_in(epoch, round, figures_.reductions);
  largest_rate_ = std::max(*largest_rate_, rate_);
  make_up(rate_);
  const auto load = Clock::now();
  const Batch& batch = batches_.batch(epoch, round);
  const double load_s = Seconds(Clock::now() - load).count();
  count_damage(batch);
  const double loss = replica_.round(batch, rate_, *largest_rate_);
  // With local steps, the others have what it has learned after the next exchange.
  if (replica_.worker().round() % steps() == 0) record_replayed_batches(plan_, made_up_);
  had_samples_ = had_samples_ || batch.count() > 0;
  if (batch.count() > 0 && std::isfinite(loss))  // a step that is not finite has been left out
    sums_.add(loss, batch.count(), log_.is_silent() ? std::nullopt : replica_.step().correct());
  figures_.seconds += Seconds(Clock::now() - start).count();
  ++figures_.rounds;
  figures_.samples += static_cast<double>(batch.count());
  figures_.all_samples += static_cast<double>(plan_.options.batch_size) * living();
  balancer_.note_round(epoch, load_s, batch.count());
}

/// Batches are whole but for samples that could not be read.
void TrainingLoop::count_damage(const Batch& batch) {
  const std::size_t skipped = batches_.batch_size() - batch.count();
  skipped_ += skipped;
  if (skipped == 0 || std::exchange(warned_of_damage_, true)) return;
  plan_.log(LogLevel::warning,
            fmt::format("worker {}: leaves out samples that cannot be read; the first: {} (metrics "
                        "count them as skipped_samples)",
                        plan_.group.rank(),
                        plan_.options.stream ? plan_.options.stream->first_damage()
                                             : plan_.data.train.first_damage()));
}

/// A batch that the workers before this one on its seat have left out. False: none is left.
bool TrainingLoop::make_up(double rate) {
  const Batch* missed = batches_.next_missed();
  if (missed == nullptr) return false;
  replica_.step_more(*missed, rate);
  ++made_up_;
  figures_.samples += static_cast<double>(missed->count());
  return true;
}

/// After the last round, at its rate. The others wait meanwhile, for as long as the deadline
/// allows: what takes longer than half of it is left out. Above staleness 0, they may train
/// meanwhile, save and stop.
void TrainingLoop::make_up_rest() {
  const auto start = Clock::now();
  const double rate =
      rate_ > 0 ? rate_
                : rate_in(plan_.options.epochs - 1, batches_.rounds() - 1, figures_.reductions);
  const Deadline latest(plan_.options.worker.deadline / 2);
  const bool others_train = plan_.options.worker.staleness != 0;
  while (has_seat() && !latest.expired() && make_up(rate)) {
    if (!others_train) continue;
    checkpoint_.wait();
    if (checkpoint_.agreement().stop_is_settled()) break;
  }
  figures_.seconds += Seconds(Clock::now() - start).count();
}

/// Rules that read no neighbors publish nothing in their rounds: the mean model needs it here.
void TrainingLoop::after_round(int epoch, std::size_t round) {
  show(epoch, round);
  const std::size_t every = plan_.options.evaluate_every;
  const bool epoch_is_over = position_.epoch() > epoch;
  if (!epoch_is_over && (every == 0 || (round + 1) % every != 0)) return;
  const bool is_unread =
      plan_.options.worker.algorithm.traits().topology.scope == algorithm::Scope::nobody;
  if (is_unread && !plan_.all_reduces()) replica_.worker().republish();
  RunLog::Trained trained{epoch, sums_.mean_loss(), rate_, figures_.seconds, sums_.accuracy()};
  trained.skipped = skipped_;
  if (!log_.is_silent()) trained.gradient_norm = replica_.backend().gradient_norm();
  if (epoch_is_over) report_no_loss(trained);
  if (!epoch_is_over) return log_.evaluate(trained);
  log_.end_rounds();
  log_.end_epoch(trained, validate(epoch));
}

/// With local steps, an epoch may have no combination.
std::optional<Score> TrainingLoop::validate(int epoch) {
  const std::int64_t combinations = replica_.worker().round() / steps();
  if (std::exchange(validated_, combinations) != combinations)
    return best_.validate(epoch, figures_.reductions);
  best_.skip();
  return std::nullopt;
}

void TrainingLoop::report_no_loss(const RunLog::Trained& trained) {
  if (trained.loss || std::exchange(told_of_no_loss_, true)) return;
  const int epoch = trained.epoch + 1;
  const std::string why = had_samples_
                              ? fmt::format("no step of epoch {} had a finite loss", epoch)
                              : fmt::format("none of its samples of epoch {} could be read", epoch);
  plan_.log(LogLevel::warning, fmt::format("worker {}: {}: the epoch has no loss, shown as -",
                                           plan_.group.rank(), why));
}

void TrainingLoop::show(int epoch, std::size_t round) {
  log_.show({static_cast<std::size_t>(epoch), static_cast<std::size_t>(plan_.options.epochs),
             round + 1, batches_.rounds(), sums_.mean_loss(),
             figures_.all_samples / figures_.seconds, figures_.seconds},
            rate_, figures_.samples);
}

/// Empty before the first round of this program.
std::optional<double> TrainingLoop::round_s() const {
  if (figures_.rounds == 0) return std::nullopt;
  return (figures_.seconds + waited_s_) / static_cast<double>(figures_.rounds);
}

}  // namespace fast::train
