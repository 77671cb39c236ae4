#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <fast/data/loader.hpp>
#include <fast/train/metrics.hpp>
#include <fast/train/overview.hpp>
#include <fast/train/progress.hpp>
#include <fast/train/safetensors.hpp>
#include <fast/train/trainer.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstring>

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

/// What each worker tells the others when all is done.
struct Report {
  double loop_s, wait_s, publish_s, mix_s, bytes;
  double reads, fresh, samples, rounds;
  double replica_accuracy, mean_model_correct;
};

class Training {
 public:
  Training(const Group& group, const TopologyRule& rule, Backend& backend, const data::Splits& data,
           const TrainerOptions& options);
  Summary run();

 private:
  void look_over(const Schedule& schedule);
  void epoch(int index);
  double train_one(const Batch& batch);
  void average(const std::vector<TensorView>& gradients);
  void log_epoch(int index, double loss);
  Evaluation evaluate(const data::Dataset& dataset);
  Evaluation evaluate_mean_model();
  Summary summarize();

  Group group_;
  Backend& backend_;
  const data::Splits& data_;
  TrainerOptions options_;
  Overview overview_;
  std::optional<data::Loader> loader_;
  std::optional<MetricsWriter> metrics_;
  std::optional<Progress> progress_;
  std::optional<Worker> worker_;
  std::unique_ptr<Reducer> reducer_;
  double loop_s_ = 0, reduce_s_ = 0;
  double samples_ = 0;
};

WorkerOptions worker_options(const TrainerOptions& options) {
  WorkerOptions worker = options.worker;
  worker.must_agree += fmt::format(
      "epochs {}\nbatch size {}\nseed {}\nall-reduce {}\nplacement {}\n", options.epochs,
      options.batch_size, options.seed, options.all_reduce, options.placement);
  const LearningRate& rate = options.learning_rate;
  worker.must_agree += fmt::format("learning rate {}\nschedule {}\nwarm-up epochs {}\n", rate.base,
                                   static_cast<int>(rate.schedule), rate.warmup_epochs);
  if (options.all_reduce) {
    worker.algorithm = algorithm::none();
    worker.initial = Initial::broadcast;
  }
  return worker;
}

Training::Training(const Group& group, const TopologyRule& rule, Backend& backend,
                   const data::Splits& data, const TrainerOptions& options)
    : group_(group), backend_(backend), data_(data), options_(options) {
  const Deadline deadline(options_.worker.deadline);
  std::optional<Schedule> schedule, laid_out;
  agree(group_, deadline, "Trainer: starting up", [&] {
    require(options_.epochs >= 1, ErrorKind::argument, "Trainer: {} epochs; at least 1 is needed",
            options_.epochs);
    const LearningRate& rate = options_.learning_rate;
    require(std::isfinite(rate.base) && rate.base > 0, ErrorKind::argument,
            "Trainer: learning rate {}; a positive number is required", rate.base);
    require(std::isfinite(rate.warmup_epochs) && rate.warmup_epochs >= 0, ErrorKind::argument,
            "Trainer: {} epochs of warm-up; 0 or more are required", rate.warmup_epochs);
    loader_.emplace(data_.train, data_.normalization, group_.size(), group_.rank(),
                    options_.batch_size, options_.seed);
    if (options_.out) metrics_.emplace(*options_.out, group_.rank());
    schedule = rule.make(group_.size());
    const bool may_move = options_.placement && !options_.all_reduce;
    laid_out = lay_out(*schedule, group_.hosts(), may_move, overview_);
  });
  worker_.emplace(group_, *laid_out, backend_.parameters(), worker_options(options_));
  if (options_.all_reduce) {
    ExchangeOptions exchange;
    exchange.deadline = options_.worker.deadline;
    exchange.suspect_after = options_.worker.suspect_after;
    reducer_ = group_.open_reducer(worker_->layout().size_bytes(), exchange);
  }
  look_over(*schedule);
  if (options_.progress && group_.rank() == 0) {
    std::fputs(overview_.to_table().c_str(), stderr);
    progress_.emplace();
  }
}

/// The spectrum is that of the schedule before ranks were laid on it: it is the same, and may have
/// a closed form.
void Training::look_over(const Schedule& schedule) {
  overview_.workers = group_.size();
  overview_.topology = schedule.name();
  overview_.exchange = options_.all_reduce ? "allreduce" : group_.name();
  overview_.algorithm = options_.all_reduce ? "allreduce" : std::string(worker_->algorithm().name);
  overview_.codec = codec::name(options_.worker.codec);
  overview_.staleness = options_.worker.staleness == unbounded_staleness
                            ? "inf"
                            : std::to_string(options_.worker.staleness);
  overview_.spectrum = spectrum(schedule, options_.worker.weights, options_.worker.lazy_weights);
  overview_.momentum = options_.momentum;
  const Spectrum& found = overview_.spectrum;
  if (overview_.algorithm == "awc" && found.converged && found.smallest_eigenvalue) {
    overview_.awc_stability = awc_stability_factor(*found.smallest_eigenvalue, options_.momentum);
  }
}

Summary Training::run() {
  for (int e = 0; e < options_.epochs; ++e) epoch(e);
  if (progress_) progress_->finish();
  worker_->await_finish();
  return summarize();
}

void Training::epoch(int index) {
  const auto rounds = loader_->rounds();
  double loss_sum = 0;
  for (std::size_t r = 0; r < rounds; ++r) {
    const auto start = Clock::now();
    const Batch& batch = loader_->batch(static_cast<std::size_t>(index), r);
    const double rate = options_.learning_rate.at(
        index + (static_cast<double>(r) + 0.5) / static_cast<double>(rounds), options_.epochs);
    backend_.set_learning_rate(rate);
    const double loss = worker_->step([&] { return train_one(batch); }, {.learning_rate = rate});
    loop_s_ += Seconds(Clock::now() - start).count();
    samples_ += static_cast<double>(batch.count());
    loss_sum += loss;
    if (progress_) {
      progress_->update({static_cast<std::size_t>(index), static_cast<std::size_t>(options_.epochs),
                         r + 1, rounds, loss_sum / static_cast<double>(r + 1),
                         samples_ * group_.size() / loop_s_, loop_s_});
    }
  }
  log_epoch(index, loss_sum / static_cast<double>(rounds));
}

double Training::train_one(const Batch& batch) {
  if (!reducer_) return backend_.train(batch);
  return backend_.train(batch, [&](const auto& gradients) { average(gradients); });
}

/// Runs of gradients that are one in memory are averaged at once.
void Training::average(const std::vector<TensorView>& gradients) {
  const auto start = Clock::now();
  const ParameterLayout layout(gradients);
  for (const Segment& segment : layout.segments()) {
    if (segment.dtype == DType::f64) {
      reducer_->average(std::span(static_cast<double*>(segment.data), segment.element_count));
    } else {
      require(segment.dtype == DType::f32, ErrorKind::argument,
              "all-reduce: gradients of type {}; f32 and f64 are supported", name(segment.dtype));
      reducer_->average(std::span(static_cast<float*>(segment.data), segment.element_count));
    }
  }
  reduce_s_ += Seconds(Clock::now() - start).count();
}

void Training::log_epoch(int index, double loss) {
  if (!metrics_) return;
  const Evaluation mean = evaluate_mean_model();
  const data::Dataset slice = slice_of(data_.test, group_.rank(), group_.size());
  const WorkerStats stats = worker_->stats();
  metrics_->write({{"epoch", index + 1},
                   {"round", stats.rounds},
                   {"train_loss", loss},
                   {"mean_model_test_correct", mean.correct},
                   {"mean_model_test_samples", slice.size()},
                   {"mean_model_test_loss_sum", mean.loss_sum},
                   {"consensus_distance", worker_->consensus_distance()},
                   {"seconds", loop_s_},
                   {"wait_seconds", stats.wait_s + reduce_s_},
                   {"publish_seconds", stats.publish_s},
                   {"mix_seconds", stats.mix_s}});
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

/// On this worker's part of the test set; the worker's own weights are put back.
Evaluation Training::evaluate_mean_model() {
  const ParameterLayout& layout = worker_->layout();
  const AlignedBuffer own(layout.size_bytes()), mean(layout.size_bytes());
  layout.gather(own.data());
  worker_->mean_model({mean.data(), mean.size_bytes()});
  layout.scatter(mean.data());
  const Evaluation result = evaluate(slice_of(data_.test, group_.rank(), group_.size()));
  layout.scatter(own.data());
  return result;
}

Summary Training::summarize() {
  const WorkerStats stats = worker_->stats();
  const double test_samples = static_cast<double>(data_.test.size());
  Report mine{};
  mine.loop_s = loop_s_;
  mine.wait_s = stats.wait_s + reduce_s_;
  mine.publish_s = stats.publish_s;
  mine.mix_s = stats.mix_s;
  mine.bytes = stats.bytes_sent;
  mine.reads = static_cast<double>(stats.reads);
  mine.fresh = static_cast<double>(stats.fresh_reads);
  mine.samples = samples_;
  mine.rounds = static_cast<double>(stats.rounds);
  if (reducer_) {
    mine.bytes = 2.0 * static_cast<double>(worker_->layout().size_bytes()) * (group_.size() - 1) /
                 group_.size() * mine.rounds;
  }
  mine.replica_accuracy = static_cast<double>(evaluate(data_.test).correct) / test_samples;
  mine.mean_model_correct = static_cast<double>(evaluate_mean_model().correct);
  Summary summary;
  summary.consensus_distance = worker_->consensus_distance();

  const AlignedBuffer mean(worker_->layout().size_bytes());
  worker_->mean_model({mean.data(), mean.size_bytes()});
  worker_->layout().scatter(mean.data());
  if (options_.out && group_.rank() == 0) {
    save_safetensors(*options_.out / "mean-model.safetensors", backend_.parameters());
  }

  const auto all =
      group_.all_gather({reinterpret_cast<const char*>(&mine), sizeof mine},
                        Deadline(options_.worker.deadline), "Trainer: gathering results");
  Report sum{};
  double longest_s = 0, worst = 1;
  for (const std::string& bytes : all) {
    Report report{};
    std::memcpy(&report, bytes.data(), sizeof report);
    longest_s = std::max(longest_s, report.loop_s);
    worst = std::min(worst, report.replica_accuracy);
    sum.wait_s += report.wait_s / report.loop_s;
    sum.publish_s += report.publish_s / report.loop_s;
    sum.mix_s += report.mix_s / report.loop_s;
    sum.bytes += report.bytes / report.rounds;
    sum.reads += report.reads;
    sum.fresh += report.fresh;
    sum.samples += report.samples;
    sum.mean_model_correct += report.mean_model_correct;
  }
  const double workers = group_.size();
  summary.test_accuracy_mean_model = sum.mean_model_correct / test_samples;
  summary.test_accuracy_worst_worker = worst;
  summary.samples_per_second = sum.samples / longest_s;
  summary.wait_fraction = sum.wait_s / workers;
  summary.publish_fraction = sum.publish_s / workers;
  summary.mix_fraction = sum.mix_s / workers;
  summary.fresh_fraction = sum.reads > 0 ? sum.fresh / sum.reads : 0;
  summary.bytes_sent_per_worker_per_round = sum.bytes / workers;
  summary.rounds = static_cast<std::uint64_t>(stats.rounds);
  summary.epochs = static_cast<std::uint64_t>(options_.epochs);
  summary.workers = group_.size();
  summary.topology = overview_.topology;
  summary.spectral_gap = overview_.spectrum.gap;
  summary.exchange = overview_.exchange;
  summary.algorithm = overview_.algorithm;
  summary.codec = overview_.codec;
  summary.staleness = overview_.staleness;
  summary.seconds = longest_s;
  return summary;
}

}  // namespace

Summary train(const Group& group, const TopologyRule& rule, Backend& backend,
              const data::Splits& data, const TrainerOptions& options) {
  return Training(group, rule, backend, data, options).run();
}

}  // namespace fast::train
