#include "train/record/run_log.hpp"

#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <limits>
#include <set>
#include <utility>

#include "core/host.hpp"
#include "core/message.hpp"

namespace fast::train {
namespace {

Metric staleness_of(const WorkerOptions& options) {
  if (options.staleness == unbounded_staleness) return {"staleness", "inf"};
  return {"staleness", options.staleness};
}

/// An all-reduce and replicas that nobody reads have no spectrum.
double gap_of(const RunPlan& plan) {
  const bool averages =
      plan.options.worker.algorithm.traits().topology.scope == algorithm::Scope::neighbors;
  if (plan.all_reduces() || !averages) return std::numeric_limits<double>::quiet_NaN();
  return plan.overview.in_use().gap;
}

}  // namespace

std::vector<int> neighbors_of(const Schedule& schedule, int worker) {
  std::set<int> found;
  for (std::int64_t round = 0; round < std::max<std::int64_t>(1, schedule.period()); ++round) {
    const std::vector<int> read = schedule.at(round).in_neighbors(worker);
    found.insert(read.begin(), read.end());
  }
  return {found.begin(), found.end()};
}

std::vector<Metric> start_facts(const RunPlan& plan, const Replica& replica,
                                const MadeBefore& before) {
  const Overview& overview = plan.overview;
  const TrainerOptions& options = plan.options;
  std::vector<Metric> facts = {
      {"workers", overview.workers},
      {"topology", overview.topology},
      {"algorithm", overview.algorithm},
      staleness_of(options.worker),
      {"codec", overview.codec},
      {"exchange", overview.exchange},
      {"spectral_gap", gap_of(plan)},
      {"neighbors", neighbors_of(plan.schedule, plan.group.rank())},
      {"samples", plan.data.train.size()},
      {"parameters", replica.layout().parameter_count()},
      {"batch", options.batch_size},
      {"learning_rate", options.learning_rate.base},
      {"seed", options.seed},
      {"validation", validation_text(plan)},
      {"host", host_name()},
  };
  for (const auto& [name, text] : {std::pair{"data", &options.names.data},
                                   {"model", &options.names.model},
                                   {"optimizer", &options.names.optimizer}}) {
    if (!text->empty()) facts.emplace_back(name, *text);
  }
  if (options.clock_offset_s) facts.emplace_back("clock_offset", *options.clock_offset_s);
  if (before.by_run > 0) facts.emplace_back("resumed_from", before.by_run);
  if (before.by_worker > 0) facts.emplace_back("resumed_step", before.by_worker);
  return facts;
}

namespace {
constexpr auto between_scalars = std::chrono::milliseconds(200);
constexpr double unknown = std::numeric_limits<double>::quiet_NaN();
}  // namespace

RunLog::RunLog(const RunPlan& plan, Replica& replica, Evaluator& evaluator,
               const TrainingCursor& position, std::shared_ptr<RunMetrics> metrics,
               std::shared_ptr<LogFile> file)
    : plan_(plan),
      replica_(replica),
      evaluator_(evaluator),
      position_(position),
      metrics_(std::move(metrics)),
      file_(std::move(file)),
      events_(plan) {}

void RunLog::start(Beginning how) {
  if (metrics_ && how == Beginning::on_seat) metrics_->join(round());
  if (metrics_ && how != Beginning::on_seat) {
    const bool joins = how == Beginning::joins;
    metrics_->start(start_facts(plan_, replica_, {position_.resumed_from(), joins ? 0 : round()}),
                    round());
    if (joins) metrics_->event("joined", round(), plan_.group.rank());
  }
  note(fmt::format("training begins in round {}{}: process {} on {}, {} workers, {}, {}", round(),
                   how == Beginning::on_seat ? ", on the seat of a lost worker"
                   : how == Beginning::joins ? ", as one worker more"
                                             : "",
                   getpid(), host_name(), plan_.group.size(), plan_.overview.topology,
                   plan_.overview.algorithm));
  warn_of_incomplete_samples();
  if (!plan_.options.progress || plan_.group.rank() != 0) return;
  say("{}", plan_.overview.to_table());
  progress_.emplace(stderr, plan_.options.progress_style);
}

/// All workers see the same ones.
void RunLog::warn_of_incomplete_samples() const {
  for (const data::Dataset* part : {&plan_.data.train, &plan_.data.test}) {
    const data::SampleSource* source = part->source();
    if (source == nullptr || source->left_out() == 0 || plan_.group.rank() != 0) continue;
    plan_.log(LogLevel::warning, fmt::format("{} samples are left out; the first: {}",
                                             source->left_out(), source->why_left_out()));
  }
}

void RunLog::begin_epoch() {
  epoch_began_ = Clock::now();
  if (metrics_) metrics_->begin_epoch();
}

void RunLog::show(ProgressState state, double rate, double samples) {
  const auto epoch = static_cast<int>(state.epoch);
  state.accuracy = accuracy_;
  if (accuracy_ && measured_in_ != epoch) {
    std::string& note = state.accuracy->note;
    note += fmt::format("{}epoch {}", note.empty() ? "" : ", ", measured_in_ + 1);
  }
  if (state.round == state.rounds) {
    closing_ = state;
  } else if (progress_) {
    progress_->update(state);
  }
  const RunFigures figures{round(), epoch + 1, samples, replica_.step().reduce_s()};
  if (metrics_ && metrics_->after_round(figures)) note(progress_line(state), LogLevel::debug);
  if (!events_.wanted() || Clock::now() - told_ < between_scalars) return;
  told_ = Clock::now();
  if (state.loss) events_.scalar("train/loss", *state.loss, round());
  events_.scalar("train/learning_rate", rate, round());
  events_.scalar("train/samples_per_second", samples / state.elapsed_s, round());
}

/// The sink of worker 0 writes to its file, too.
void RunLog::lower_rate(double from, double to) {
  const std::string text =
      fmt::format("learning rate {:g} -> {:g} from round {} on: the validation loss falls no more",
                  from, to, round());
  if (metrics_) metrics_->event("rate lowered", round(), -1, text);
  if (plan_.group.rank() != 0) return note(text);
  finish();
  plan_.log(LogLevel::info, text);
}

void RunLog::finish() {
  if (progress_) progress_->finish();
}

void RunLog::note(const std::string& text, LogLevel level) const {
  if (file_) file_->write(level, text);
}

/// On this worker's part of the test samples.
Score RunLog::test(const AlignedBuffer& mean_model, int epoch) {
  const data::Dataset part = part_of(plan_.data.test, plan_.group.rank(), plan_.schedule.workers());
  const Score mean = score_of(evaluator_.of(mean_model, part), part.size());
  if (mean.samples == 0) return mean;
  ProgressState::Accuracy shown = mean.shown("test");
  if (part.size() < plan_.data.test.size())
    shown.note = fmt::format("worker {}'s part", plan_.group.rank());
  note_accuracy(std::move(shown), epoch);
  return mean;
}

void RunLog::note_accuracy(ProgressState::Accuracy accuracy, int epoch) {
  accuracy_ = std::move(accuracy);
  measured_in_ = epoch;
}

/// The epoch's last round, with what was measured after it.
void RunLog::close_epoch() {
  if (closing_ && progress_) {
    closing_->accuracy = accuracy_;
    progress_->update(*closing_);
  }
  closing_.reset();
}

void RunLog::evaluate(const Trained& trained) {
  if (is_silent()) return;
  std::vector<Metric> line = report_results(trained, test(replica_.current_model(), trained.epoch));
  if (metrics_) metrics_->add("evaluation", std::move(line));
}

void RunLog::end_rounds() {
  if (metrics_) metrics_->end_rounds();
}

void RunLog::end_epoch(const Trained& trained, const std::optional<Score>& validated) {
  if (is_silent()) return;
  const AlignedBuffer mean_model = replica_.current_model();
  const Score mean = test(mean_model, trained.epoch);
  std::vector<Metric> line = report_results(trained, mean);
  if (validated) {
    note_accuracy(validated->shown("validation"), trained.epoch);
    for (const auto& [name, value] : validated->results())
      events_.scalar("validation/mean_model_" + name, value, round());
  }
  close_epoch();
  note(fmt::format("epoch {} ended in round {}: loss {}, {}", trained.epoch + 1, round(),
                   trained.loss ? fmt::format("{:.4f}", *trained.loss) : "-", result_text()));
  if (metrics_) {
    const bool held_out = plan_.data.validation.size() > 0;
    if (const std::optional<Score> score = held_out ? validated : mean) {
      line.emplace_back("validation_loss", score->loss);
      for (const auto& [name, value] : score->results())
        line.emplace_back("validation_" + name, value);
      line.emplace_back("validation_samples", score->samples);
      line.emplace_back("validated", "mean model");
    }
    metrics_->end_epoch(std::move(line));
  }
  events_.milestone(MilestoneEvent::Kind::epoch_ended, "", trained.epoch, round(), epoch_began_);
  report_values(mean_model, trained.epoch);
}

/// The latest accuracy, or another measure.
std::string RunLog::result_text() const {
  if (!accuracy_) return "no test samples on this worker";
  return fmt::format("{} {} {}", accuracy_->samples,
                     accuracy_->name.empty() ? "accuracy" : accuracy_->name,
                     measure_text(accuracy_->form, accuracy_->part));
}

/// The worker's own weights; worker 0 also tells those of the mean model.
void RunLog::report_values(const AlignedBuffer& mean_model, int epoch) const {
  if (!events_.wants_values()) return;
  replica_.home().download();
  const ParameterLayout& layout = replica_.layout();
  events_.values("weights/", layout.views(), epoch, round());
  if (plan_.group.rank() != 0) return;
  std::vector<TensorView> packed = layout.views();
  const std::vector<Segment> places = layout.tensors();
  for (std::size_t i = 0; i < packed.size(); ++i) {
    packed[i].data = mean_model.data() + places[i].offset_bytes;
  }
  events_.values("mean_model_weights/", packed, epoch, round());
}

/// As a line of metrics; the observer is told them, too. Reads the weights of all workers.
std::vector<Metric> RunLog::report_results(const Trained& trained, const Score& mean) const {
  if (!metrics_ && !events_.wanted()) return {};
  const double distance = plan_.all_reduces() ? 0 : replica_.worker().consensus_distance();
  if (trained.loss) events_.scalar("train/epoch_loss", *trained.loss, round());
  for (const auto& [name, value] : mean.results())
    events_.scalar("test/mean_model_" + name, value, round());
  events_.scalar("test/mean_model_loss", mean.loss, round());
  if (!plan_.all_reduces()) events_.scalar("consensus_distance", distance, round());
  std::vector<Metric> line = {{"epoch", trained.epoch + 1},
                              {"step", round()},
                              {"loss", trained.loss.value_or(unknown)},
                              {"test_loss", mean.loss}};
  for (const auto& [name, value] : mean.results()) line.emplace_back("test_" + name, value);
  for (const Metric& metric :
       std::initializer_list<Metric>{{"test_samples", mean.samples},
                                     {"learning_rate", trained.learning_rate},
                                     {"consensus_distance", distance},
                                     {"seconds_training", trained.loop_s}})
    line.push_back(metric);
  if (plan_.data.train.is_streamed())
    line.emplace_back("skipped_samples", static_cast<std::int64_t>(trained.skipped));
  for (const auto& [name, value] : {std::pair("accuracy", trained.accuracy),
                                    std::pair("gradient_norm", trained.gradient_norm)}) {
    if (!value) continue;
    line.emplace_back(name, *value);
    events_.scalar(fmt::format("train/{}", name), *value, round());
  }
  return line;
}

void RunLog::leave(double loop_s) {
  note(fmt::format("leaves in round {}, as it was asked to", round()));
  if (!metrics_) return;
  metrics_->event("left", round(), plan_.group.rank());
  metrics_->end(round(), "left", {{"seconds_training", loop_s}});
}

void RunLog::end(const Summary& summary, double loop_s) {
  const auto step = static_cast<std::int64_t>(summary.rounds);
  note(fmt::format(
      "training ended after {} rounds{}{}", step, summary.stopped ? ", as was asked for" : "",
      summary.lost.empty() ? ""
                           : fmt::format(", without workers {}", fmt::join(summary.lost, ", "))));
  if (!metrics_) return;
  if (summary.stopped) metrics_->event("stopped", step);
  std::vector<Metric> line = {
      {"test_loss", summary.evaluated ? summary.test_loss_mean_model : unknown}};
  for (const TestMeasure& measure : summary.results())
    line.emplace_back("test_" + measure.name, summary.evaluated ? measure.mean_model : unknown);
  line.emplace_back("seconds_training", loop_s);
  line.emplace_back("lost", summary.lost);
  metrics_->end(step, summary.stopped ? "stopped" : "finished", std::move(line));
}

}  // namespace fast::train
