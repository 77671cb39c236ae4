#include "train/run/training_loop.hpp"

#include <algorithm>

namespace fast::train {

TrainingLoop::TrainingLoop(const RunPlan& plan, TrainingBatches& batches, Replica& replica,
                           BestModel& best, RunCheckpoint& checkpoint, RunLog& log)
    : plan_(plan),
      batches_(batches),
      replica_(replica),
      best_(best),
      checkpoint_(checkpoint),
      log_(log) {}

LoopFigures TrainingLoop::run() {
  while (position().epoch() < plan_.options.epochs) {
    const int epoch = position().epoch();
    run_epoch(epoch);
    if (checkpoint_.stopped() || best_.stops(epoch)) break;
  }
  log_.finish();
  checkpoint_.end();
  return figures_;
}

void TrainingLoop::run_epoch(int epoch) {
  batches_.take_over(replica_.worker().lost(), replica_.worker().round());
#ifndef NDEBUG
  replica_.worker().layout().require_in_place(replica_.home().tensors());
#endif
  loss_sum_ = 0;
  steps_ = 0;
  while (position().epoch() == epoch && checkpoint_.may_go_on(round_s())) {
    const std::size_t round = position().round();
    const std::int64_t before = replica_.worker().round();
    run_round(epoch, round);
    position().advance(replica_.worker().round() - before);
    after_round(epoch, round);
    checkpoint_.after_round();
  }
}

/// The learning rate is that of the round's middle.
void TrainingLoop::run_round(int epoch, std::size_t round) {
  const auto start = Clock::now();
  const Batch& batch = batches_.batch(epoch, round);
  const double epochs_done =
      epoch + (static_cast<double>(round) + 0.5) / static_cast<double>(batches_.rounds());
  const double rate = plan_.options.learning_rate.at(epochs_done, plan_.options.epochs);
  loss_sum_ += replica_.round(batch, rate);
  ++steps_;
  figures_.seconds += Seconds(Clock::now() - start).count();
  figures_.samples += static_cast<double>(batch.count());
}

/// Rules that read no neighbors publish nothing in their rounds: the mean model needs it here.
void TrainingLoop::after_round(int epoch, std::size_t round) {
  show(epoch, round);
  const std::size_t every = plan_.options.evaluate_every;
  const bool epoch_is_over = position().epoch() > epoch;
  if (!epoch_is_over && (every == 0 || (round + 1) % every != 0)) return;
  const bool is_unread = replica_.worker().algorithm().scope == algorithm::Scope::nobody;
  if (is_unread && !plan_.all_reduces()) replica_.worker().republish();
  log_.add_line(epoch + 1, mean_loss(), figures_.seconds);
  if (epoch_is_over) best_.validate(epoch);
}

void TrainingLoop::show(int epoch, std::size_t round) {
  log_.show({static_cast<std::size_t>(epoch), static_cast<std::size_t>(plan_.options.epochs),
             round + 1, batches_.rounds(), mean_loss(),
             figures_.samples * plan_.group.size() / figures_.seconds, figures_.seconds});
}

double TrainingLoop::round_s() const {
  return figures_.seconds /
         static_cast<double>(std::max<std::int64_t>(1, position().rounds_here()));
}

}  // namespace fast::train
