#include <fast/core/error.hpp>
#include <fast/mixing/check.hpp>
#include <fast/worker/closing.hpp>
#include <fast/worker/rotating_arena.hpp>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <thread>

#include "train/training_run.hpp"

namespace fast::train {
namespace {

WorkerOptions worker_options(const TrainerOptions& options) {
  WorkerOptions worker = options.worker;
  worker.must_agree +=
      fmt::format("epochs {}\nbatch size {}\nseed {}\nshards {}\nall-reduce {}\nplacement {}\n",
                  options.epochs, options.batch_size, options.seed, options.shards.text(),
                  options.all_reduce, options.placement);
  const LearningRate& rate = options.learning_rate;
  worker.must_agree +=
      fmt::format("arena {}\n", options.arena == Arena::fixed ? "fixed" : "rotating");
  worker.must_agree += fmt::format("learning rate {}\nschedule {}\nwarm-up epochs {}\n", rate.base,
                                   static_cast<int>(rate.schedule), rate.warmup_epochs);
  worker.must_agree += fmt::format("closing rounds {}\nvalidation {}\npatience {}\nEMA decay {}\n",
                                   options.closing_rounds.value_or(-1), options.validation,
                                   options.patience, options.ema_decay);
  const CheckpointOptions& checkpoints = options.checkpoints;
  worker.must_agree += fmt::format("checkpoints every {} rounds or {} s\nresumes {}\n",
                                   checkpoints.every_rounds, checkpoints.every_s,
                                   checkpoints.resume ? checkpoints.resume->string() : "nothing");
  if (options.all_reduce) {
    worker.algorithm = algorithm::none();
    worker.initial = Initial::broadcast;
  }
  return worker;
}

void check_pace(const Pace& pace, int workers) {
  require(std::isfinite(pace.step_s) && pace.step_s >= 0, ErrorKind::argument,
          "Trainer: steps of {} s; 0 or more are required", pace.step_s);
  require(std::isfinite(pace.slow_factor) && pace.slow_factor >= 1, ErrorKind::argument,
          "Trainer: a worker {} times slower; 1 or more is required", pace.slow_factor);
  require(pace.slow_worker < workers, ErrorKind::argument,
          "Trainer: worker {} shall be slow, this run has {} (0..{})", pace.slow_worker, workers,
          workers - 1);
}

void check_averages(const TrainerOptions& options) {
  require(options.validation >= 0 && options.validation < 1, ErrorKind::argument,
          "Trainer: a validation share of {}; a number in [0, 1) is required", options.validation);
  require(options.ema_decay >= 0 && options.ema_decay < 1, ErrorKind::argument,
          "Trainer: an EMA decay of {}; a number in [0, 1) is required", options.ema_decay);
  require(options.validation == 0 || options.ema_decay == 0, ErrorKind::argument,
          "Trainer: validation keeps the best weights, EMA their average; choose one of them");
  const algorithm::Declaration& declared = options.worker.algorithm.declaration();
  const bool together = options.all_reduce || declared.average_every > 0 ||
                        declared.scope == algorithm::Scope::everybody;
  require(options.patience >= 0 && (options.patience == 0 || options.validation > 0),
          ErrorKind::argument,
          "Trainer: a patience of {} epochs with a validation share of {}; stopping early needs "
          "samples to validate on",
          options.patience, options.validation);
  require(options.patience == 0 || !together, ErrorKind::argument,
          "Trainer: stopping early lets workers end in different rounds, where an average over all "
          "workers would wait; leave patience out or choose another algorithm");
}

void check_arena(const TrainerOptions& options, Backend& backend) {
  if (options.arena == Arena::fixed) return;
  require(
      !options.all_reduce && options.ema_decay == 0 &&
          options.worker.not_finite == NotFinite::abort,
      ErrorKind::argument,
      "Trainer: a rotating arena with the all-reduce, an EMA or healing, which need the weights "
      "in the model's memory; leave those out or take the fixed arena");
  require(backend.in_slots() != nullptr, ErrorKind::argument,
          "Trainer: a rotating arena with a model of backend {} that cannot compute on weights "
          "elsewhere (buffers, as batch normalization has them, cannot move); take the fixed arena",
          backend.name());
}

}  // namespace

Training::Training(const Group& group, const TopologyRule& rule, Backend& backend,
                   const data::Splits& data, const TrainerOptions& options)
    : group_(group), backend_(backend), data_(data), options_(options) {
  const Deadline deadline(options_.worker.deadline);
  std::optional<Schedule> schedule;
  agree(group_, deadline, "Trainer: starting up", [&] {
    require(options_.epochs >= 1, ErrorKind::argument, "Trainer: {} epochs; at least 1 is needed",
            options_.epochs);
    const LearningRate& rate = options_.learning_rate;
    require(std::isfinite(rate.base) && rate.base > 0, ErrorKind::argument,
            "Trainer: learning rate {}; a positive number is required", rate.base);
    require(std::isfinite(rate.warmup_epochs) && rate.warmup_epochs >= 0, ErrorKind::argument,
            "Trainer: {} epochs of warm-up; 0 or more are required", rate.warmup_epochs);
    check_pace(options_.pace, group_.size());
    require(options_.closing_rounds.value_or(0) >= 0, ErrorKind::argument,
            "Trainer: {} closing rounds; 0 or more are required", *options_.closing_rounds);
    check_averages(options_);
    check_arena(options_, backend_);
    const auto held_out = static_cast<std::size_t>(
        std::ceil(options_.validation * static_cast<double>(data_.train.size())));
    train_ = data_.train.slice(0, data_.train.size() - held_out);
    validation_ = data_.train.slice(train_.size(), held_out);
    loader_.emplace(make_loader(), options_.prefetch);
    schedule = rule.make(group_.size());
    check_checkpoints();
    const bool may_move = options_.placement && !options_.all_reduce;
    schedule_ = lay_out(*schedule, group_.hosts(), may_move, overview_);
    if (is_first_of_host()) require_free(places());
  });
  take_places();
  open_control();
  WorkerOptions options_of_worker = worker_options(options_);
  options_of_worker.on_healed = [this] { clean_optimizer(); };
  options_of_worker.on_suspect = [this](int worker) {
    missed_[worker] = worker_->round();
    if (options_.worker.on_suspect) options_.worker.on_suspect(worker);
  };
  choose_device(options_of_worker);
  worker_.emplace(group_, *schedule_, worker_tensors(), on_device(std::move(options_of_worker)));
  layout_ = host_layout();
  download();
  if (options_.all_reduce) {
    ExchangeOptions exchange;
    exchange.deadline = options_.worker.deadline;
    exchange.suspect_after = options_.worker.suspect_after;
    reducer_ = group_.open_reducer(layout_.size_bytes(), exchange);
  }
  begin_ema();
  resume();
  take_devices();
  look_over(*schedule);
  if (options_.progress && group_.rank() == 0) {
    std::fputs(overview_.to_table().c_str(), stderr);
    progress_.emplace();
  }
}

Training::~Training() {
  if (device_ == nullptr) return;
  try {
    worker_.reset();
    device_->keep_mirror();
  } catch (const std::exception&) {
    return;  // the mirror stays as old as it is
  }
}

/// Of skewed shards.
std::vector<std::vector<std::size_t>> Training::all_shards() const {
  return data::dirichlet_shards(train_.labels(), train_.classes(), group_.size(),
                                *options_.shards.dirichlet_alpha, options_.seed);
}

/// Empty with even shards.
std::vector<std::size_t> Training::own_samples() const {
  if (!options_.shards.dirichlet_alpha) return {};
  return all_shards()[static_cast<std::size_t>(group_.rank())];
}

data::Loader Training::make_loader() const {
  data::Loader loader(train_, data_.normalization, group_.size(), group_.rank(),
                      options_.batch_size, options_.seed, own_samples());
  if (options_.augmentation) loader.augment(*options_.augmentation, options_.seed);
  loader.threads(options_.loader_threads);
  return loader;
}

/// Collective.
void Training::take_devices() {
  std::vector<std::string> devices =
      group_.all_gather(options_.device, Deadline(options_.worker.deadline), "Trainer: devices");
  const bool all_on_cpu = std::all_of(devices.begin(), devices.end(),
                                      [](const std::string& device) { return device.empty(); });
  if (all_on_cpu) return;
  std::replace(devices.begin(), devices.end(), std::string(), std::string("cpu"));
  overview_.devices = std::move(devices);
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
  look_for_parts(schedule);
  overview_.momentum = options_.momentum.value_or(0);
  const Spectrum& found = overview_.spectrum;
  if (overview_.algorithm == "awc" && found.converged && found.smallest_eigenvalue &&
      options_.momentum) {
    overview_.awc_stability = awc_stability_factor(*found.smallest_eigenvalue, *options_.momentum);
  }
}

/// Where neighbors average, workers that do not reach each other end with models of their own.
void Training::look_for_parts(const Schedule& schedule) {
  if (options_.all_reduce || worker_->algorithm().scope != algorithm::Scope::neighbors) return;
  const WorkerOptions& worker = options_.worker;
  const MixingCheck found = check_mixing(schedule, worker.weights, worker.lazy_weights);
  if (found.connected) return;
  overview_.unconnected = found.unconnected;
  if (group_.rank() != 0 || !worker.log) return;
  worker.log(LogLevel::warning,
             fmt::format("topology {} is not connected: {}; without it workers end with different "
                         "models",
                         schedule.name(), found.unconnected));
}

/// What is not finite in the optimizer's state would come back with the next step.
void Training::clean_optimizer() {
  const auto clean = []<class T>(const TensorView& view, T) {
    for (T& value : std::span(static_cast<T*>(view.data), view.element_count())) {
      if (!std::isfinite(value)) value = 0;
    }
  };
  for (const TensorView& view : backend_.optimizer_state()) {
    if (view.dtype == DType::f32) clean(view, float{});
    if (view.dtype == DType::f64) clean(view, double{});
  }
}

Summary Training::run() {
  began_ = Clock::now();
  while (next_.epoch < options_.epochs) {
    const int index = next_.epoch;
    epoch(index);
    if (stopped_ || stops(index)) break;
  }
  if (progress_) progress_->finish();
  control_->end(stopped_ ? Stage::stopped : Stage::done, rounds_);
  if (ema_) {
    layout_.scatter(ema_->packed().data());
    upload();
  }
  worker_->await_finish();
  stats_ = worker_->stats();
  lost_ = worker_->lost();
  cut_ = control_->conclude(lost_);
  if (cut_ && checkpoints_) return leave();
  if (!lost_.empty()) return summarize_alone(mean_model());
  // Until the last call that all take part in, someone may still go.
  AlignedBuffer fallback = group_.size() > 1 ? mean_model() : AlignedBuffer();
  try {
    close();
    return summarize();
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::deadline || !group_.some_are_gone()) throw;
    lost_ = group_.died();
    return summarize_alone(std::move(fallback));
  }
}

/// Where workers never meet, or never differ, there is nothing to bring together.
void Training::close() {
  const bool meet = worker_->algorithm().scope == algorithm::Scope::neighbors;
  if (options_.all_reduce || !meet) return;
  closing_rounds_ =
      options_.closing_rounds.value_or(fast::closing_rounds(*schedule_, overview_.spectrum));
  if (closing_rounds_ == 0) return;
  group_.barrier(Deadline(options_.worker.deadline), "Trainer: closing rounds");
  worker_.reset();
  worker_.emplace(close_training(group_, *schedule_, overview_.spectrum, worker_tensors(),
                                 closing_rounds_, on_device(worker_options(options_))));
}

void Training::epoch(int index) {
  take_over_samples();
  const auto rounds = loader_->rounds();
#ifndef NDEBUG
  worker_->layout().require_in_place(worker_tensors());
#endif
  double loss_sum = 0;
  std::size_t steps = 0;
  while (next_.epoch == index && may_go_on()) {
    const std::size_t r = next_.round;
    const std::int64_t before = worker_->round();
    const auto start = Clock::now();
    const Batch& batch = loader_->batch(static_cast<std::size_t>(index), r);
    const double rate = options_.learning_rate.at(
        index + (static_cast<double>(r) + 0.5) / static_cast<double>(rounds), options_.epochs);
    backend_.set_learning_rate(rate);
    const double loss = train_round(batch, rate);
    if (ema_) ema_->update(worker_->layout());
    loop_s_ += Seconds(Clock::now() - start).count();
    samples_ += static_cast<double>(batch.count());
    loss_sum += loss;
    const double mean_loss = loss_sum / static_cast<double>(++steps);
    if (progress_) {
      progress_->update({static_cast<std::size_t>(index), static_cast<std::size_t>(options_.epochs),
                         r + 1, rounds, mean_loss, samples_ * group_.size() / loop_s_, loop_s_});
    }
    const bool between = options_.evaluate_every > 0 && (r + 1) % options_.evaluate_every == 0;
    advance(worker_->round() - before);
    const bool over = next_.epoch > index;
    const bool unread = worker_->algorithm().scope == algorithm::Scope::nobody;
    if ((over || between) && unread && !options_.all_reduce) worker_->republish();
    if (over || between) log(index + 1, mean_loss);
    if (over) validate(index);
    after_round();
  }
}

/// More than one round where the worker was stopped and the others went on.
void Training::advance(std::int64_t rounds_made) {
  rounds_ += rounds_made;
  rounds_here_ += rounds_made;
  const std::size_t rounds = next_.round + static_cast<std::size_t>(rounds_made);
  next_.epoch += static_cast<int>(rounds / loader_->rounds());
  next_.round = rounds % loader_->rounds();
}

double Training::train_round(const Batch& batch, double rate) {
  if (options_.arena == Arena::fixed) {
    return worker_->step([&] { return train_one(batch); }, {.learning_rate = rate});
  }
  const bool is_double = layout_.segments().front().dtype == DType::f64;
  return is_double ? train_in_slots<double>(batch) : train_in_slots<float>(batch);
}

template <class T>
double Training::train_in_slots(const Batch& batch) {
  SlotStep& step = *backend_.in_slots();
  const auto find_gradients = [&](const T* weights) {
    const auto began = Clock::now();
    const double loss = step.find_gradients(weights, batch);
    await_pace(began, reduce_s_);
    return loss;
  };
  const PartUpdate<T> update = [&step](std::size_t first, std::span<T> weights) {
    step.add_step(first, weights.data(), weights.size());
  };
  return RotatingArena<T>(*worker_).step(find_gradients, update);
}

/// Into the model's memory, for those who look there.
void Training::bring_weights_home() {
  if (options_.arena == Arena::fixed) return;
  const bool is_double = layout_.segments().front().dtype == DType::f64;
  const void* weights = nullptr;
  if (is_double) {
    weights = RotatingArena<double>(*worker_).weights();
  } else {
    weights = RotatingArena<float>(*worker_).weights();
  }
  layout_.scatter(static_cast<const std::byte*>(weights));
}

double Training::train_one(const Batch& batch) {
  const auto began = Clock::now();
  const double reduce_s = reduce_s_;
  const double loss =
      reducer_ ? backend_.train(batch, [&](const auto& gradients) { average(gradients); })
               : backend_.train(batch);
  await_pace(began, reduce_s);
  return loss;
}

/// The time waited for other workers does not count.
void Training::await_pace(Clock::time_point began, double reduce_s_before) const {
  const Pace& pace = options_.pace;
  const double factor = group_.rank() == pace.slow_worker ? pace.slow_factor : 1;
  const double took_s = Seconds(Clock::now() - began).count() - (reduce_s_ - reduce_s_before);
  const double rest_s = std::max(took_s, pace.step_s) * factor - took_s;
  if (rest_s > 0) std::this_thread::sleep_for(Seconds(rest_s));
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

Summary train(const Group& group, const TopologyRule& rule, Backend& backend,
              const data::Splits& data, const TrainerOptions& options) {
  return Training(group, rule, backend, data, options).run();
}

}  // namespace fast::train
