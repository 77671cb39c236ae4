// What a run measures on the way and reports at its end.
#include <fast/core/memory.hpp>
#include <fast/topology/parts.hpp>
#include <fast/train/safetensors.hpp>

#include <algorithm>
#include <cstring>

#include "train/training_run.hpp"

namespace fast::train {
namespace {

constexpr std::size_t evaluation_batch = 500;

/// A contiguous part of the test set for each worker.
data::Dataset slice_of(const data::Dataset& dataset, int rank, int workers) {
  const auto bound = [&](int r) {
    return dataset.size() * static_cast<std::size_t>(r) / static_cast<std::size_t>(workers);
  };
  return dataset.slice(bound(rank), bound(rank + 1) - bound(rank));
}

/// Fills in what comes of all workers' reports.
void add_up(const std::vector<Report>& reports, double test_samples, Summary& summary) {
  const double workers = static_cast<double>(reports.size());
  double longest_s = 0, worst = 1, samples = 0, reads = 0, fresh = 0, sent = 0, held = 0;
  double most_rounds = 0;
  for (const Report& report : reports) {
    longest_s = std::max(longest_s, report.loop_s);
    worst = std::min(worst, report.replica_accuracy);
    samples += report.samples;
    most_rounds = std::max(most_rounds, report.rounds);
    reads += report.reads;
    fresh += report.fresh;
    sent += report.messages_sent;
    held += report.messages_held;
    summary.rejoined += static_cast<std::uint64_t>(report.rejoined);
    summary.healed += static_cast<std::uint64_t>(report.healed);
    summary.wait_fraction += report.wait_s / report.loop_s / workers;
    summary.publish_fraction += report.publish_s / report.loop_s / workers;
    summary.mix_fraction += report.mix_s / report.loop_s / workers;
    summary.bytes_sent_per_worker_per_round += report.bytes / report.rounds / workers;
    summary.test_accuracy_mean_model += report.mean_model_correct / test_samples;
  }
  summary.test_accuracy_worst_worker = worst;
  summary.samples_per_second = samples / longest_s;
  summary.fresh_fraction = reads > 0 ? fresh / reads : 0;
  summary.sent_fraction = sent + held > 0 ? sent / (sent + held) : 1;
  summary.rounds = static_cast<std::uint64_t>(most_rounds);
  summary.seconds = longest_s;
}

}  // namespace

void Training::log(int epoch, double loss) {
  if (!metrics_) return;
  const data::Dataset slice = slice_of(data_.test, group_.rank(), group_.size());
  const Evaluation mean = evaluate(current_model(), slice);
  const WorkerStats stats = worker_->stats();
  write_metrics({{"epoch", epoch},
                 {"round", stats.rounds},
                 {"train_loss", loss},
                 {"mean_model_test_correct", mean.correct},
                 {"mean_model_test_samples", slice.size()},
                 {"mean_model_test_loss_sum", mean.loss_sum},
                 {"consensus_distance", options_.all_reduce ? 0 : worker_->consensus_distance()},
                 {"seconds", loop_s_},
                 {"elapsed_seconds", Seconds(Clock::now() - began_).count()},
                 {"wait_seconds", stats.wait_s + reduce_s_},
                 {"publish_seconds", stats.publish_s},
                 {"mix_seconds", stats.mix_s}});
}

/// A full disk does not end training: the line is left out, and the first time there is a warning.
void Training::write_metrics(std::initializer_list<Metric> line) {
  try {
    metrics_->write(line);
  } catch (const Error& error) {
    if (!warned_of_metrics_ && options_.worker.log) {
      options_.worker.log(LogLevel::warning,
                          fmt::format("worker {}: {}; training goes on without such lines",
                                      group_.rank(), error.what()));
    }
    warned_of_metrics_ = true;
  }
}

Evaluation Training::evaluate(const data::Dataset& dataset) {
  data::Loader loader(dataset, data_.normalization, evaluation_batch);
  Evaluation total;
  for (std::size_t r = 0; r < loader.rounds(); ++r) {
    const Evaluation part = backend_.evaluate(loader.batch(0, r));
    total.loss_sum += part.loss_sum;
    total.correct += part.correct;
  }
  return total;
}

/// The worker's own weights are put back.
Evaluation Training::evaluate(const AlignedBuffer& model, const data::Dataset& dataset) {
  const ParameterLayout& layout = layout_;
  const AlignedBuffer own(layout.size_bytes());
  download();
  layout.gather(own.data());
  layout.scatter(model.data());
  upload();
  const Evaluation result = evaluate(dataset);
  layout.scatter(own.data());
  upload();
  return result;
}

AlignedBuffer Training::mean_model() const {
  AlignedBuffer mean(layout_.size_bytes());
  worker_->mean_model({mean.data(), mean.size_bytes()});
  return mean;
}

/// While training goes on. With all-reduce nobody publishes weights, and replicas are equal.
AlignedBuffer Training::current_model() const {
  if (!options_.all_reduce) return mean_model();
  AlignedBuffer own(layout_.size_bytes());
  download();
  layout_.gather(own.data());
  return own;
}

void Training::validate(int epoch) {
  if (validation_.size() == 0 || group_.rank() != 0) return;
  AlignedBuffer mean = current_model();
  const auto correct = static_cast<std::int64_t>(evaluate(mean, validation_).correct);
  if (correct > best_.correct) best_ = {correct, epoch, std::move(mean)};
}

/// Early stopping: worker 0 decides, the others follow it out of training.
bool Training::stops(int epoch) const {
  if (options_.patience == 0) return false;
  if (group_.rank() == 0) return epoch - best_.epoch >= options_.patience;
  return worker_->has_finished(0);
}

/// Worker 0's best one, or the mean model of all as they are now.
AlignedBuffer Training::final_model() const {
  if (validation_.size() == 0) return mean_model();
  const std::string_view mine(reinterpret_cast<const char*>(best_.packed.data()),
                              best_.packed.size_bytes());
  const std::string best = group_.all_gather(mine, Deadline(options_.worker.deadline),
                                             "Trainer: handing out the best model")[0];
  AlignedBuffer model(best.size());
  std::memcpy(model.data(), best.data(), best.size());
  return model;
}

Report Training::report(const AlignedBuffer& model) {
  Report mine{};
  mine.loop_s = loop_s_;
  mine.wait_s = stats_.wait_s + reduce_s_;
  mine.publish_s = stats_.publish_s;
  mine.mix_s = stats_.mix_s;
  mine.bytes = stats_.bytes_sent;
  mine.reads = static_cast<double>(stats_.reads);
  mine.fresh = static_cast<double>(stats_.fresh_reads);
  mine.messages_sent = static_cast<double>(stats_.messages_sent);
  mine.messages_held = static_cast<double>(stats_.messages_held);
  mine.rejoined = static_cast<double>(stats_.rejoined);
  mine.healed = static_cast<double>(stats_.healed);
  mine.samples = samples_;
  mine.rounds = static_cast<double>(stats_.rounds);
  if (reducer_) {
    mine.bytes = 2.0 * static_cast<double>(layout_.size_bytes()) * (group_.size() - 1) /
                 group_.size() * mine.rounds;
  }
  mine.replica_accuracy =
      static_cast<double>(evaluate(data_.test).correct) / static_cast<double>(data_.test.size());
  mine.mean_model_correct = static_cast<double>(
      evaluate(model, slice_of(data_.test, group_.rank(), group_.size())).correct);
  return mine;
}

std::vector<Report> Training::gather(const Report& mine) const {
  const auto all =
      group_.all_gather({reinterpret_cast<const char*>(&mine), sizeof mine},
                        Deadline(options_.worker.deadline), "Trainer: gathering results");
  std::vector<Report> reports(all.size());
  for (std::size_t r = 0; r < all.size(); ++r) {
    std::memcpy(&reports[r], all[r].data(), sizeof(Report));
  }
  return reports;
}

/// Returns why the mean model could not be saved.
std::string Training::adopt(const AlignedBuffer& model) {
  layout_.scatter(model.data());
  upload();
  if (!options_.out || !is_first_left()) return {};
  try {
    save_safetensors(*options_.out / mean_model_name, backend_.parameters());
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

/// Why something was not saved, on all workers; `unsaved` is this worker's reason. Collective
/// unless workers are lost.
void Training::give_reason(Summary& summary, std::string unsaved) {
  if (cut_ && !checkpoints_ && !options_.out)
    unsaved = "the run was stopped, and no directory was given to save to";
  if (lost_.empty()) {
    const auto all = group_.all_gather(unsaved, Deadline(options_.worker.deadline),
                                       "Trainer: telling what was not saved");
    const auto first = std::find_if(all.begin(), all.end(),
                                    [](const std::string& reason) { return !reason.empty(); });
    summary.unsaved = first == all.end() ? std::string() : *first;
    return;
  }
  const auto worker = control_->report(unsaved.empty());
  if (unsaved.empty() && worker) unsaved = fmt::format("worker {} could not save", *worker);
  summary.unsaved = std::move(unsaved);
}

Summary Training::summarize() {
  const AlignedBuffer model = final_model();
  const Report mine = report(model);
  Summary summary;
  summary.consensus_distance = worker_->consensus_distance();
  give_reason(summary, adopt(model));
  add_up(gather(mine), static_cast<double>(data_.test.size()), summary);
  describe_run(summary);
  return summary;
}

/// Of a run that has lost workers: nothing collective is done any more, and every survivor comes to
/// its own summary.
Summary Training::summarize_alone(AlignedBuffer model) {
  group_.give_up();
  if (group_.size() > 1 && validation_.size() > 0 && best_.packed.size_bytes() > 0) {
    model = std::move(best_.packed);
  }
  Report mine = report(model);
  mine.mean_model_correct = static_cast<double>(evaluate(model, data_.test).correct);
  Summary summary;
  if (worker_) summary.consensus_distance = worker_->consensus_distance();
  give_reason(summary, adopt(model));
  add_up({mine}, static_cast<double>(data_.test.size()), summary);
  describe_run(summary);
  summary.lost = lost_;
  summary.parts = living_parts(*schedule_, lost_);
  return summary;
}

/// Who writes what is written once: the lowest worker of the largest part of those that are left.
bool Training::is_first_left() const {
  const int first = lost_.empty() ? 0 : living_parts(*schedule_, lost_).front().front();
  return group_.rank() == first;
}

/// Of a run that goes on another time. A worker that had made all its rounds saves, too: the others
/// need its file.
Summary Training::leave() {
  if (!stopped_) save_checkpoint(control_->round_of(Request::stop));
  if (!lost_.empty()) group_.give_up();
  Summary summary;
  give_reason(summary, checkpoints_->finish());
  summary.lost = lost_;
  if (!lost_.empty()) summary.parts = living_parts(*schedule_, lost_);
  summary.evaluated = false;
  summary.rounds = static_cast<std::uint64_t>(rounds_);
  summary.seconds = loop_s_;
  describe_run(summary);
  return summary;
}

void Training::describe_run(Summary& summary) const {
  summary.stopped = cut_;
  summary.closing_rounds = static_cast<std::uint64_t>(closing_rounds_);
  summary.epochs = summary.rounds / loader_->rounds();
  summary.workers = group_.size();
  summary.topology = overview_.topology;
  summary.spectral_gap = overview_.spectrum.gap;
  summary.connected = overview_.unconnected.empty();
  summary.exchange = overview_.exchange;
  summary.algorithm = overview_.algorithm;
  summary.codec = overview_.codec;
  summary.staleness = overview_.staleness;
}

}  // namespace fast::train
