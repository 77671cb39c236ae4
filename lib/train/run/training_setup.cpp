#include "train/run/training_setup.hpp"

#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/mixing/check.hpp>
#include <fast/worker/rotating_arena.hpp>

#include "data/files/split.hpp"
#include "exchange/open_coordinator.hpp"
#include "train/options/rows.hpp"
#include "worker/start/requirements.hpp"

namespace fast::train {
namespace {

void check_numbers(const TrainerOptions& options) {
  require(options.epochs >= 1, ErrorKind::argument, "Trainer: {} epochs; at least 1 is needed",
          options.epochs);
  const LearningRate& rate = options.learning_rate;
  require(std::isfinite(rate.base) && rate.base > 0, ErrorKind::argument,
          "Trainer: learning rate {}; a positive number is required", rate.base);
  require(std::isfinite(rate.warmup_epochs) && rate.warmup_epochs >= 0, ErrorKind::argument,
          "Trainer: {} epochs of warm-up; 0 or more are required", rate.warmup_epochs);
  require(rate.plateau_factor > 0 && rate.plateau_factor < 1 && rate.plateau_patience >= 0 &&
              rate.plateau_threshold >= 0 && rate.plateau_threshold < 1,
          ErrorKind::argument,
          "Trainer: a plateau's factor {}, patience {} and threshold {}; (0, 1), 0 or more, and "
          "[0, 1) are required",
          rate.plateau_factor, rate.plateau_patience, rate.plateau_threshold);
  require(options.closing_rounds.value_or(0) >= 0, ErrorKind::argument,
          "Trainer: {} closing rounds; 0 or more are required", options.closing_rounds.value_or(0));
}

void check_pace(const Pace& pace, int workers) {
  require(std::isfinite(pace.step_s) && pace.step_s >= 0, ErrorKind::argument,
          "Trainer: steps of {} s; 0 or more are required", pace.step_s);
  for (const auto& [worker, factor] : pace.slow) {
    require(std::isfinite(factor) && factor >= 1, ErrorKind::argument,
            "Trainer: a worker {} times slower; 1 or more is required", factor);
    require(worker >= 0 && worker < workers, ErrorKind::argument,
            "Trainer: worker {} shall be slow, but workers are 0 to {}", worker, workers - 1);
  }
}

/// Whether some rounds average over all workers.
bool averages_everybody(const TrainerOptions& options) {
  const algorithm::RuleTraits& traits = options.worker.algorithm.traits();
  return options.all_reduce || traits.timing.average_every > 0 ||
         traits.topology.scope == algorithm::Scope::everybody;
}

void check_averages(const TrainerOptions& options) {
  require(options.validation >= 0 && options.validation < 1, ErrorKind::argument,
          "Trainer: a validation share of {}; a number in [0, 1) is required", options.validation);
  require(options.ema_decay >= 0 && options.ema_decay < 1, ErrorKind::argument,
          "Trainer: an EMA decay of {}; a number in [0, 1) is required", options.ema_decay);
  require(options.validation == 0 || options.ema_decay == 0, ErrorKind::argument,
          "Trainer: validation keeps the best weights, EMA their average; choose one of them");
  require(options.patience >= 0 && (options.patience == 0 || options.validation > 0),
          ErrorKind::argument,
          "Trainer: a patience of {} epochs with a validation share of {}; stopping early needs "
          "samples to validate on (--validation)",
          options.patience, options.validation);
  require(
      options.learning_rate.schedule != LearningRate::Schedule::plateau || options.validation > 0,
      ErrorKind::argument,
      "Trainer: the schedule plateau needs samples to validate on (--validation)");
  require(options.patience == 0 || !averages_everybody(options), ErrorKind::argument,
          "Trainer: stopping early lets workers end in different rounds, where an average over all "
          "workers would wait; leave patience out or choose another algorithm");
  require(options.patience == 0 || !options.worker.site, ErrorKind::argument,
          "Trainer: stopping early in a job that is a site, whose workers make exchanges together; "
          "leave patience out");
  require(
      options.learning_rate.schedule != LearningRate::Schedule::plateau || !options.worker.site,
      ErrorKind::argument,
      "Trainer: the schedule plateau in a job that is a site: each site would lower the rate by "
      "itself; choose another schedule");
  require(options.worker.robust == Robust::none || !options.all_reduce, ErrorKind::argument,
          "Trainer: robust averaging with an all-reduce, whose sum shows no worker apart; leave "
          "robust out or choose an exchange with neighbors");
}

void check_arena(const TrainerOptions& options, Backend& backend) {
  if (options.arena == Arena::fixed) return;
  require(
      !options.all_reduce && options.ema_decay == 0 &&
          options.worker.not_finite == NotFinite::abort,
      ErrorKind::argument,
      "Trainer: a rotating arena with the all-reduce, an EMA or healing, which need the weights "
      "in the model's memory; leave those out or take the fixed arena");
  check_for_rotation(options.worker);
  require(backend.in_slots() != nullptr, ErrorKind::argument,
          "Trainer: a rotating arena with a model of backend {} that cannot compute on weights "
          "elsewhere (buffers, as batch normalization has them, cannot move); take the fixed arena",
          backend.name());
}

RunData divide(const data::Splits& data, const TrainerOptions& options, int workers) {
  if (options.validation == 0)
    return {data.train, data.train.slice(0, 0), data.test,        data.normalization,
            data.notes, data.features,          data.class_names, data.target};
  const data::HeldOut parts = data::hold_out(data.train, options.validation, options.seed);
  const std::size_t of_round = options.batch_size * static_cast<std::size_t>(workers);
  require(parts.rest.size() >= of_round || data.train.size() < of_round, ErrorKind::argument,
          "Trainer: a validation share of {} (--validation) leaves {} of {} training samples, and "
          "a round of {} workers takes {}; take a smaller share or a smaller batch",
          options.validation, parts.rest.size(), data.train.size(), workers, of_round);
  return {parts.rest, parts.held_out, data.test,        data.normalization,
          data.notes, data.features,  data.class_names, data.target};
}

/// Shards are skewed by the one label of a sample.
void check_sharding(const TrainerOptions& options, const data::Dataset& train) {
  if (!options.shards.dirichlet_alpha) return;
  require(train.has_one_label(), ErrorKind::argument,
          "Trainer: sharding {} of data \"{}\", whose samples have no single class label; choose "
          "even sharding",
          options.shards.text(), train.name());
  require(!options.window && !train.is_streamed(), ErrorKind::argument,
          "Trainer: sharding {} of data \"{}\" that is shuffled by windows: a worker owns shards "
          "there, not labels; choose even sharding",
          options.shards.text(), train.name());
}

void check_mixup(const TrainerOptions& options, const Backend& backend,
                 const data::Dataset& train) {
  require(std::isfinite(options.mixup) && options.mixup >= 0, ErrorKind::argument,
          "Trainer: mixup {}; 0 or more is required", options.mixup);
  if (options.mixup == 0) return;
  require(
      train.has_one_label(), ErrorKind::argument,
      "Trainer: mixup (--mixup) of data \"{}\", whose samples have no single class label; leave it "
      "out",
      train.name());
  require(
      backend.takes_mixed_labels(), ErrorKind::argument,
      "Trainer: mixup (--mixup) with backend {} and its loss, which take one label a sample; leave "
      "it out, or take the loss cross_entropy of nn or torch",
      backend.name());
  require(options.batch_size >= 2, ErrorKind::argument,
          "Trainer: mixup (--mixup) of batches of one sample, which has no other one to be mixed "
          "with; leave it out, or take larger batches");
}

bool averages_nobody(const TrainerOptions& options) {
  return !options.all_reduce &&
         options.worker.algorithm.traits().topology.scope == algorithm::Scope::nobody;
}

void check_balance(const TrainerOptions& options, const Group& group) {
  const Balance& balance = options.balance;
  if (balance.is_even()) return;
  const auto workers = static_cast<std::size_t>(group.size());
  const std::string name = balance.text();
  require(options.batch_size > 0, ErrorKind::argument,
          "Trainer: balance {} with a batch size of 0; it must be at least 1", name);
  require(balance.kind == Balance::Kind::measured || balance.speeds.size() == workers,
          ErrorKind::argument,
          "Trainer: balance {} has {} numbers, this run has {} workers; give "
          "one for each worker",
          name, balance.speeds.size(), workers);
  require(std::ranges::all_of(balance.speeds,
                              [](double speed) { return std::isfinite(speed) && speed > 0; }),
          ErrorKind::argument, "Trainer: balance {}; positive numbers are required", name);
  require(!options.shards.dirichlet_alpha, ErrorKind::argument,
          "Trainer: balance {} with sharding {}, where each worker keeps its own samples; choose "
          "even sharding or even balance",
          name, options.shards.text());
  require(group.spares() == 0, ErrorKind::argument,
          "Trainer: balance {} with {} spares: a spare does not know the shares of the run; start "
          "no spares or choose even balance",
          name, group.spares());
  require(!averages_nobody(options), ErrorKind::argument,
          "Trainer: balance {} with the algorithm none: workers that train alone need equal steps; "
          "choose an algorithm that averages or even balance",
          name);
}

/// Gradients are averaged before each step, and steps of another number have no average.
void check_step_samples(const TrainerOptions& options) {
  if (options.step_samples == 0) return;
  const algorithm::RuleTraits& rule = options.worker.algorithm.traits();
  const auto refuse = [&](bool chosen, std::string_view what, const char* instead) {
    require(!chosen, ErrorKind::argument, "Trainer: steps of {} samples with {}; {}",
            options.step_samples, what, instead);
  };
  refuse(options.all_reduce, "the all-reduce, which averages gradients in every step",
         "choose a rule that averages weights");
  refuse(options.arena == Arena::rotating, "a rotating arena, where a round has one step",
         "take the fixed arena");
  refuse(rule.step.own_momentum,
         fmt::format("algorithm {}, whose own momentum takes one step in a round", rule.name),
         "choose a rule that averages weights");
  refuse(averages_nobody(options), "the algorithm none: workers that train alone need equal steps",
         "choose an algorithm that averages");
}

/// What needs all samples at once, or another number of workers than the order of the stream.
void check_stream(const TrainerOptions& options, const Group& group) {
  if (!options.stream) return;
  const std::string& name = options.stream->name();
  const auto refuse = [&name](bool chosen, const char* what, const char* instead) {
    require(!chosen, ErrorKind::argument, "Trainer: {} with samples of the stream {}; {}", what,
            name, instead);
  };
  refuse(options.shards.dirichlet_alpha.has_value(), "skewed shards", "choose even sharding");
  refuse(!options.balance.is_even(), "a balance by speeds", "choose even balance");
  refuse(options.validation > 0, "a validation share", "test on the test part");
  refuse(options.window.has_value(), "a window",
         "samples come in the order of the stream: publish them shuffled");
  refuse(group.spares() > 0, "spares",
         "start no spares: a run on a stream continues without the "
         "workers that it loses");
  refuse(options.all_reduce, "an all-reduce", "choose a rule that averages with neighbors");
  refuse(options.arena == Arena::rotating, "a rotating arena", "take the fixed arena");
}

Shares first_shares(const TrainerOptions& options, int workers) {
  if (options.balance.kind != Balance::Kind::given)
    return Shares::even(workers, options.batch_size);
  return Shares::in_proportion(options.balance.speeds, options.batch_size);
}

/// "even" batches need no word.
std::string division_of(const Balance& balance) {
  if (balance.is_even()) return {};
  if (balance.kind == Balance::Kind::measured) return "in proportion to measured speeds";
  return "in proportion to " + balance.text();
}

/// What the devices are; empty when all workers compute on the CPU.
std::vector<std::string> devices_of(const RunPlan& plan) {
  std::vector<std::string> devices =
      plan.group.all_gather(plan.options.device, plan.deadline(), "Trainer: devices");
  const bool all_on_cpu =
      std::ranges::all_of(devices, [](const std::string& device) { return device.empty(); });
  if (all_on_cpu) return {};
  std::ranges::replace(devices, std::string(), std::string("cpu"));
  return devices;
}

/// Where neighbors average, workers that do not reach each other end with different models.
void look_for_parts(RunPlan& plan) {
  const WorkerOptions& worker = plan.options.worker;
  const MixingCheck found = check_mixing(plan.given, worker.weights, worker.lazy_weights);
  if (found.connected) return;
  plan.overview.unconnected = found.unconnected;
  if (plan.group.rank() != 0) return;
  plan.log(LogLevel::warning,
           fmt::format("topology {} is not connected: {}; without it workers end with different "
                       "models",
                       plan.given.name(), found.unconnected));
}

/// The algorithm needs them in place of the weights that the options ask for. False if none fit:
/// the Worker then refuses to start.
bool runs_with_lazy_weights(const RunPlan& plan) try {
  const WorkerOptions& worker = plan.options.worker;
  const algorithm::RuleTraits& rule = worker.algorithm.traits();
  if (worker.lazy_weights || rule.topology.mixing != algorithm::MixingRequirement::positive)
    return false;
  return fitting_weights(plan.given, rule, worker.weights, false, worker.staleness).lazy;
} catch (const Error&) {
  return false;
}

/// The spectrum of the given schedule may have a closed form. That of the schedule with the ranks
/// in their places is the same.
void look_at_stability(RunPlan& plan) {
  Overview& overview = plan.overview;
  const TrainerOptions& options = plan.options;
  const WorkerOptions& worker = options.worker;
  overview.spectrum = spectrum(plan.given, worker.weights, worker.lazy_weights);
  if (runs_with_lazy_weights(plan))
    overview.lazy_spectrum = spectrum(plan.given, worker.weights, true);
  overview.momentum = options.momentum.value_or(0);
  overview.stability.reset();
  const Spectrum& found = overview.spectrum;  // of a changing schedule: that of a period's product
  if (!plan.given.is_static() || !found.converged || !found.smallest_eigenvalue) return;
  if (!options.momentum) return;
  const double smallest = *found.smallest_eigenvalue;
  if (overview.algorithm == "awc")
    overview.stability = awc_stability_factor(smallest, *options.momentum);
  if (overview.algorithm == "atc")
    overview.stability = atc_stability_factor(smallest, *options.momentum);
}

}  // namespace

bool RunPlan::is_first_of_host() const {
  if (group.rank() >= group.size()) return false;
  return group.hosts()[static_cast<std::size_t>(group.rank())] == group.rank();
}

void RunPlan::log(LogLevel level, std::string_view text) const {
  if (options.worker.log) options.worker.log(level, text);
}

RunPlan plan_run(const Group& group, const TopologyRule& rule, Backend& backend,
                 const data::Splits& data, const TrainerOptions& options) {
  check_numbers(options);
  check_pace(options.pace, group.size());
  check_averages(options);
  check_balance(options, group);
  check_step_samples(options);
  check_arena(options, backend);
  check_sharding(options, data.train);
  check_mixup(options, backend, data.train);
  check_stream(options, group);
  require(group.spares() == 0 || !options.all_reduce, ErrorKind::argument,
          "Trainer: {} spares with the all-reduce, which ends when a worker is lost; leave the "
          "spares out or average with neighbors",
          group.spares());
  const Schedule given = rule.make(group.size());
  // What came over an edge is kept by the edge's number, which follows from those of the workers.
  const bool by_edge = options.worker.algorithm.traits().messages.by_edge;
  const bool may_move = options.placement && !options.all_reduce && !by_edge;
  Overview overview;
  Schedule schedule = lay_out(given, group.hosts(), may_move, overview);
  return {.group = group,
          .options = options,
          .data = divide(data, options, group.size()),
          .given = given,
          .schedule = std::move(schedule),
          .shares = first_shares(options, group.size()),
          .overview = std::move(overview),
          .rule = rule,
          .members = exchange::members_of(group),
          .coordinator = nullptr};
}

void open_coordinator(RunPlan& plan) {
  const bool divides = plan.options.balance.kind == Balance::Kind::measured;
  plan.coordinator = exchange::coordinator_of_run(
      plan.group, membership::record_format(divides ? plan.group.size() : 0), plan.deadline());
}

TopologyRule worker_rule(const RunPlan& plan) {
  return {plan.schedule.name(), [rule = plan.rule, planned = plan.schedule](int workers) {
            return workers == planned.workers() ? planned : rule.make(workers);
          }};
}

void grow(RunPlan& plan) {
  plan.given = plan.schedule = plan.rule.make(plan.group.size());
  plan.shares = first_shares(plan.options, plan.group.size());
  plan.overview.workers = plan.group.size();
  plan.overview.topology = plan.given.name();
  look_at_stability(plan);
}

ModelMetadata note_of(const RunPlan& plan) {
  const data::Dataset& samples = plan.data.train;
  return {plan.options.names.model,      plan.options.names.data,
          samples.sample_shape(),        samples.classes(),
          plan.data.normalization,       plan.options.names.layers,
          plan.options.names.loss,       plan.data.features,
          plan.data.class_names,         plan.data.target,
          plan.options.names.huber_delta};
}

std::string validation_text(const RunPlan& plan) {
  const std::size_t held_out = plan.data.validation.size();
  if (held_out > 0) {
    return fmt::format("{} samples of the training part, drawn by the seed{}", held_out,
                       plan.data.train.has_one_label() ? ", the same share of each class" : "");
  }
  return fmt::format("the {} test samples, a part on each worker", plan.data.test.size());
}

WorkerOptions worker_options(const TrainerOptions& options) {
  WorkerOptions worker = options.worker;
  TrainerOptions rows = options;
  options::OptionTable table;
  add_rows(table, rows);
  worker.must_agree += table.agreement();
  worker.must_agree += fmt::format("batch size {}\nlearning rate {}\nall-reduce {}\nplacement {}\n",
                                   options.batch_size, options.learning_rate.base,
                                   options.all_reduce, options.placement);
  if (options.all_reduce) {
    worker.algorithm = algorithm::none();
    worker.initial = Initial::broadcast;
  }
  return worker;
}

void look_at_training(RunPlan& plan, std::size_t parameters, std::size_t epoch_rounds) {
  const TrainerOptions& options = plan.options;
  plan.overview.training = {.data = options.names.data,
                            .model = options.names.model,
                            .optimizer = options.names.optimizer,
                            .learning_rate = describe(options.learning_rate, options.epochs),
                            .validation = validation_text(plan),
                            .samples = plan.data.train.size(),
                            .parameters = parameters,
                            .batch_size = options.batch_size,
                            .balance = division_of(options.balance),
                            .epoch_rounds = epoch_rounds,
                            .epochs = options.epochs,
                            .seed = options.seed,
                            .notes = plan.data.notes};
}

void complete_overview(RunPlan& plan, const algorithm::RuleTraits& algorithm, bool alone) {
  if (!alone) plan.overview.devices = devices_of(plan);
  Overview& overview = plan.overview;
  const WorkerOptions& worker = plan.options.worker;
  overview.workers = plan.group.size();
  overview.topology = plan.given.name();
  overview.exchange = plan.all_reduces() ? "allreduce" : plan.group.name();
  overview.algorithm = plan.all_reduces() ? "allreduce" : std::string(algorithm.name);
  overview.codec = codec::name(worker.codec);
  overview.staleness =
      worker.staleness == unbounded_staleness ? "inf" : std::to_string(worker.staleness);
  look_at_stability(plan);
  const bool neighbors_average =
      !plan.all_reduces() && algorithm.topology.scope == algorithm::Scope::neighbors;
  if (neighbors_average) look_for_parts(plan);
}

}  // namespace fast::train
