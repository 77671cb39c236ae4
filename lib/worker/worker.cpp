#include <exception>
#include <fast/worker/worker.hpp>
#include <thread>

#include "worker/engine.hpp"
#include "worker/startup.hpp"

namespace fast {

struct Worker::Impl {
  worker::Engine engine;
};

Worker::Worker(Group group, const TopologyRule& rule, std::vector<TensorView> parameters,
               WorkerOptions options) {
  if (!options.algorithm) options.algorithm = algorithm::awc();
  const Deadline deadline(options.deadline);
  ParameterLayout layout;
  std::unique_ptr<Schedule> schedule;
  std::string notice;
  agree(group, deadline, "Worker: starting up", [&] {
    worker::check_options(options, options.algorithm->declaration());
    schedule = std::make_unique<Schedule>(rule.make(group.size()));
    const worker::Weights weights =
        worker::fitting_weights(*schedule, options, options.algorithm->declaration());
    options.weights = weights.rule;
    options.lazy_weights = weights.lazy;
    notice = weights.notice;
    mixing_row(schedule->at(0), group.rank(), options.weights, options.lazy_weights);
    const Device device = options.accelerator ? options.accelerator->device() : Device{};
    layout = ParameterLayout(worker::participating(std::move(parameters), options), device);
    if (options.accelerator) worker::check_for_device(layout, options);
  });
  worker::require_agreement(
      group, worker::fingerprint(layout, options.algorithm->declaration(), *schedule, options),
      deadline);
  if (!notice.empty() && group.rank() == 0 && options.log) options.log(LogLevel::warning, notice);
  impl_ = std::make_unique<Impl>(Impl{worker::Engine(std::move(group), std::move(*schedule),
                                                     std::move(layout), std::move(options))});
}

Worker::Worker(Worker&&) noexcept = default;

Worker::~Worker() {
  if (!impl_) return;
  if (std::uncaught_exceptions() > 0) {
    abandon();
    return;
  }
  try {
    finish();
  } catch (const std::exception&) {
    abandon();
  }
}

void Worker::begin_round() { impl_->engine.begin_round(); }
void Worker::end_round(const StepOptions& options) { impl_->engine.end_round(options); }

template <class T>
void Worker::end_round(const PartUpdate<T>& update) {
  impl_->engine.require_rotating(dtype_of<T>);
  impl_->engine.end_round(&update);
}
template void Worker::end_round(const PartUpdate<float>&);
template void Worker::end_round(const PartUpdate<double>&);

template <class T>
const T* Worker::weights() const {
  impl_->engine.require_rotating(dtype_of<T>);
  return reinterpret_cast<const T*>(impl_->engine.weights());
}
template const float* Worker::weights() const;
template const double* Worker::weights() const;

std::int64_t Worker::round() const { return impl_->engine.round(); }
int Worker::rank() const { return impl_->engine.group().rank(); }
int Worker::size() const { return impl_->engine.group().size(); }
WorkerStats Worker::stats() const { return impl_->engine.stats(); }
const Schedule& Worker::schedule() const { return impl_->engine.schedule(); }
const ParameterLayout& Worker::layout() const { return impl_->engine.layout(); }
const algorithm::Declaration& Worker::algorithm() const { return impl_->engine.declaration(); }

void Worker::mean_model(std::span<std::byte> packed) const { impl_->engine.mean_model(packed); }

void Worker::mean_model(const std::vector<TensorView>& out) const { impl_->engine.mean_model(out); }

double Worker::consensus_distance() const { return impl_->engine.consensus_distance(); }
void Worker::republish() { impl_->engine.republish(); }
void Worker::rebind(std::vector<TensorView> parameters) {
  impl_->engine.rebind(std::move(parameters));
}
void Worker::set_schedule(const TopologyRule& rule) { impl_->engine.set_schedule(rule); }
std::vector<TensorView> Worker::state() { return impl_->engine.state(); }
void Worker::restore(const std::vector<TensorView>& saved) { impl_->engine.restore(saved); }
void Worker::finish() { impl_->engine.finish(); }
void Worker::await_finish() { impl_->engine.await_finish(); }
const std::vector<int>& Worker::lost() const { return impl_->engine.lost(); }
bool Worker::has_finished(int worker) const { return impl_->engine.has_finished(worker); }
bool Worker::abandon() noexcept { return impl_->engine.abandon(); }

void Worker::rethrow_as_failed() {
  const bool first = abandon();
  try {
    throw;
  } catch (const Error& error) {
    if (first || error.kind() == ErrorKind::peer_failed) throw;
    throw Error(ErrorKind::peer_failed, error.what());
  }
}

void Worker::check_loss(double loss) {
  if (std::isfinite(loss) || impl_->engine.will_heal()) return;
  fail(ErrorKind::numeric,
       "Worker: the loss of worker {} in round {} is {}; its weights were not published. Try a "
       "smaller "
       "learning rate, lazy weights or the algorithm atc",
       rank(), round(), std::isnan(loss) ? std::abs(loss) : loss);  // no "-nan"
}

}  // namespace fast
