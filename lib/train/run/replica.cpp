#include "train/run/replica.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <fast/worker/closing.hpp>
#include <set>
#include <utility>

#include "combine/moving_average.hpp"

namespace fast::train {

void release_pages(const std::vector<TensorView>& tensors) {
  for (const TensorView& tensor : tensors) {
    if (tensor.device != Device{}) continue;
    const auto begin = reinterpret_cast<std::size_t>(tensor.data);
    const std::size_t first = round_up(begin, page_bytes);
    const std::size_t end = (begin + tensor.size_bytes()) / page_bytes * page_bytes;
    if (end > first) madvise(reinterpret_cast<void*>(first), end - first, MADV_DONTNEED);
  }
}

Ema::Ema(const ParameterLayout& layout, double decay, std::shared_ptr<Accelerator> accelerator)
    : decay_(decay), average_(layout.size_bytes()), accelerator_(std::move(accelerator)) {
  if (!accelerator_) {
    layout.gather(average_.data());
    return;
  }
  DeviceWork& work = *accelerator_->work();
  on_device_ = work.allocate(layout.size_bytes());
  for (const Segment& segment : layout.segments()) {
    work.copy(on_device_.get() + segment.offset_bytes, static_cast<const std::byte*>(segment.data),
              segment.size_bytes());
  }
  work.settle();
}

void Ema::transfer(std::byte* to, const std::byte* from) const {
  accelerator_->work()->copy(to, from, average_.size_bytes());
  accelerator_->work()->settle();
}

const AlignedBuffer& Ema::packed() {
  if (on_device_) transfer(average_.data(), on_device_.get());
  return average_;
}

std::vector<TensorView> Ema::state() {
  packed();
  return {view_of("packed", average_.as<std::uint8_t>()), view_of("steps", std::span(&steps_, 1))};
}

void Ema::take_state() {
  if (on_device_) transfer(on_device_.get(), average_.data());
}

void Ema::update(const ParameterLayout& layout) {
  ++steps_;
  const double part = 1 - std::min(decay_, (1 + steps_) / (10 + steps_));
  std::byte* const average = on_device_ ? on_device_.get() : average_.data();
  combine::move_average(average, layout, part, accelerator_.get());
}

namespace {

/// Of the tensors that take part. Those of a device have a mirror in host memory.
ParameterLayout host_layout(const ParameterLayout& averaged, Backend& backend) {
  if (averaged.device() == Device{}) return averaged;
  std::set<std::string> taking_part;
  for (const TensorView& view : averaged.views()) taking_part.insert(view.name);
  std::vector<TensorView> mirror = backend.parameters();
  std::erase_if(mirror, [&](const TensorView& view) { return !taking_part.contains(view.name); });
  return ParameterLayout(std::move(mirror));
}

std::unique_ptr<Reducer> open_reducer(const RunPlan& plan, std::size_t size_bytes) {
  if (!plan.all_reduces()) return nullptr;
  ExchangeOptions exchange;
  exchange.deadline = plan.options.worker.deadline;
  exchange.suspect_after = plan.options.worker.suspect_after;
  return plan.group.open_reducer(size_bytes, exchange);
}

WorkerOptions options_on(WeightStorage& home, WorkerOptions options) {
  if (auto accelerator = home.accelerator()) options.accelerator = std::move(accelerator);
  return options;
}

/// Values that are not finite in the optimizer's state would come back with the next step.
void clean_optimizer(Backend& backend) {
  const auto clean = []<class T>(const TensorView& view, T) {
    for (T& value : std::span(static_cast<T*>(view.data), view.element_count())) {
      if (!std::isfinite(value)) value = 0;
    }
  };
  for (const TensorView& view : backend.optimizer_state()) {
    if (view.dtype == DType::f32) clean(view, float{});
    if (view.dtype == DType::f64) clean(view, double{});
  }
}

}  // namespace

Replica::Replica(const RunPlan& plan, Backend& backend, OnMissed on_missed)
    : plan_(plan), backend_(backend), home_(weights_home(plan.options, backend)) {
  // A spare that takes a seat adopts weights of others.
  if (!plan.group.has_seat() && !plan.options.worker.participates) release_pages(home_->tensors());
  worker_.emplace(plan_.group, worker_rule(plan_), home_->tensors(),
                  training_options(std::move(on_missed)));
  if (!plan.group.has_seat()) return;
  layout_ = host_layout(worker_->layout(), backend_);
  home_->download();
  step_.emplace(backend_, plan_.options.pace, plan_.group.rank(),
                open_reducer(plan_, layout_.size_bytes()), plan_.options.batch_size);
  step_->divide(plan_.options.step_samples);
  restart_ema();
}

WorkerOptions Replica::training_options(OnMissed on_missed) {
  WorkerOptions options = worker_options(plan_.options);
  if (options.observer || plan_.has_observer)
    options.observer = events_ = std::make_shared<CountedRounds>(std::move(options.observer));
  for (TensorView& view : backend_.frozen()) options.frozen.push_back(std::move(view));
  options.on_healed = [this] {
    clean_optimizer(backend_);
    if (plan_.options.worker.on_healed) plan_.options.worker.on_healed();
  };
  options.on_suspect = [this, on_missed = std::move(on_missed)](int neighbor) {
    on_missed(neighbor, worker_->round());
    if (plan_.options.worker.on_suspect) plan_.options.worker.on_suspect(neighbor);
  };
  return options_on(*home_, std::move(options));
}

void Replica::restart_ema() {
  const double decay = plan_.options.ema_decay;
  if (decay > 0) ema_.emplace(worker_->layout(), decay, home_->accelerator());
}

void Replica::count_events_from(std::int64_t rounds) {
  if (events_) events_->set_before(rounds - worker_->round());
}

void Replica::add_observer(std::shared_ptr<Observer> observer) {
  if (events_) events_->add(std::move(observer));
}

void Replica::step_more(const Batch& batch, double rate) {
  step_->set_learning_rate(rate);
  step_->train(batch);
}

double Replica::round(const Batch& batch, double rate, double largest_rate) {
  step_->set_learning_rate(rate);
  const double loss =
      home_->round(*worker_, *step_, batch, {.learning_rate = rate, .largest_rate = largest_rate});
  if (ema_) ema_->update(worker_->layout());
  return loss;
}

void Replica::finish() {
  if (ema_) {
    trained_ = own_model();
    adopt(ema_->packed());
  }
  home_->finish(*worker_);
}

void Replica::take_back_trained() {
  if (trained_.size_bytes() > 0) adopt(trained_);
}

/// Until the second Worker is there, the others may need this one's last publication. What it has
/// to say of the topology at its start, the first one has said.
std::int64_t Replica::close(std::int64_t rounds, const std::function<bool()>& stop) {
  const auto has_begun = std::make_shared<std::atomic<bool>>(false);
  const auto make = [this, has_begun] {
    WorkerOptions options = worker_options(plan_.options);
    options.observer.reset();  // its rounds are those of training
    options.log = [log = options.log, has_begun](LogLevel level, std::string_view text) {
      if (log && *has_begun) log(level, text);
    };
    return closing_worker(plan_.group.founders(), plan_.schedule, plan_.overview.spectrum,
                          home_->tensors(), options_on(*home_, std::move(options)));
  };
  std::optional<Worker> closing;
  if (!may_lose_worker()) {
    worker_->trim();
    try {
      closing.emplace(make());
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::deadline) throw;
      // Nobody has memory for both, unless a worker is lost: then this one is still needed.
      plan_.group.barrier(plan_.deadline(), "Trainer: closing rounds");
    }
  }
  worker_.reset();
  worker_.emplace(closing ? std::move(*closing) : make());
  *has_begun = true;
  return close_training(*worker_, rounds, stop);
}

AlignedBuffer Replica::own_model() const {
  AlignedBuffer model(layout_.size_bytes());
  home_->download();
  layout_.gather(model.data());
  return model;
}

AlignedBuffer Replica::mean_model() const {
  AlignedBuffer mean(layout_.size_bytes());
  worker_->mean_model({mean.data(), mean.size_bytes()});
  return mean;
}

AlignedBuffer Replica::reduced_model(double& distance) {
  AlignedBuffer mean(layout_.size_bytes());
  worker_->finish();
  distance = worker_->reduce_models({mean.data(), mean.size_bytes()});
  return mean;
}

double Replica::reduced_distance() {
  worker_->finish();
  return worker_->reduce_models({});
}

AlignedBuffer Replica::current_model() const {
  return plan_.all_reduces() ? own_model() : mean_model();
}

void Replica::adopt(const AlignedBuffer& model) {
  layout_.scatter(model.data());
  home_->upload();
}

}  // namespace fast::train
