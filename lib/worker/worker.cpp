#include <cmath>
#include <exception>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/worker/requirements.hpp>
#include <fast/worker/worker.hpp>
#include <thread>

#include "combine/device_mixer.hpp"
#include "combine/host_mixer.hpp"
#include "mpi/launcher.hpp"
#include "worker/device_link.hpp"
#include "worker/impl.hpp"
#include "worker/startup.hpp"

namespace fast {
namespace worker {
namespace {

std::unique_ptr<combine::Mixer> make_mixer(ParameterLayout layout, const WorkerOptions& options,
                                           int rank) {
  codec::Options codec = options.codec;
  codec.seed = mix_seed(codec.seed, static_cast<std::uint64_t>(rank));
  if (options.accelerator) {
    return std::make_unique<combine::DeviceMixer>(std::move(layout), options.algorithm.make(),
                                                  codec, options.accelerator);
  }
  return std::make_unique<combine::HostMixer>(std::move(layout), options.algorithm.make(), codec,
                                              sends_sums(options.algorithm.declaration(), options));
}

PayloadShape shape_of(const combine::Mixer& mixer, const WorkerOptions& options) {
  const algorithm::Declaration& declared = options.algorithm.declaration();
  const bool weights_apart =
      declared.publishes_weights_apart || options.codec.kind != codec::Kind::identity;
  return {mixer.coded().size_bytes(), declared.payload_vectors, mixer.scalar_count(),
          weights_apart ? mixer.layout().size_bytes() : 0};
}

ExchangeOptions exchange_options(const WorkerOptions& options) {
  ExchangeOptions exchange;
  exchange.staleness = options.staleness;
  exchange.deadline = options.deadline;
  exchange.suspect_after = options.suspect_after;
  exchange.remote_path = options.remote_path;
  exchange.remote_bytes_per_s = options.remote_bytes_per_s;
  exchange.log = options.log;
  return exchange;
}

std::unique_ptr<Reducer> open_reducer(const Setting& setting, const std::shared_ptr<Peers>& peers,
                                      std::size_t size_bytes) {
  ExchangeOptions options = exchange_options(setting.options);
  options.activity = [peers, self = setting.group.rank()] { return peers->peer(self).activity; };
  return setting.group.open_reducer(size_bytes, options);
}

}  // namespace
}  // namespace worker

Worker::Impl::Impl(Group group, Schedule schedule, ParameterLayout layout, WorkerOptions options)
    : mixer(worker::make_mixer(std::move(layout), options, group.rank())),
      setting{group, options, options.algorithm.declaration(), worker::shape_of(*mixer, options)},
      plan(std::make_shared<worker::RoundPlan>(std::move(schedule), group.rank(), options.weights,
                                               options.lazy_weights, setting.passes_mass())),
      link(open_link()),
      context{setting, progress, *link.exchange, *mixer},
      publisher(context),
      reader(*link.exchange, link.peers, *mixer, setting.shape),
      lag(context, *link.peers, *plan),
      round(context, *plan, lag, publisher),
      recovery(context, *link.peers, *plan, reader),
      survivors(setting, link.peers, *plan),
      state(context),
      mean(context, reader) {
  const algorithm::Declaration& declared = setting.declared;
  if (declared.scope == algorithm::Scope::everybody || declared.average_every > 0) {
    average.emplace(context,
                    worker::open_reducer(setting, link.peers, mixer->layout().size_bytes()));
  }
  const bool equal = setting.options.initial == Initial::broadcast;
  if (equal) adopt_initial();
  mixer->start(equal);
  publisher.begin(0);
  link.peers->announce(WorkerStatus::running);
  barrier("Worker: first publication");
  mpi::tell_launcher_training_began();
}

Link Worker::Impl::open_link() const {
  const WorkerOptions& options = setting.options;
  // Other threads ask, too.
  EdgePlan edges = [shared = plan, declared = setting.declared](std::int64_t combination) {
    return worker::reads_neighbors(declared, combination) ? shared->at(combination)->edges
                                                          : RoundEdges{};
  };
  return worker::open_link(setting.group, setting.shape,
                           options.codec.kind == codec::Kind::identity, std::move(edges),
                           worker::exchange_options(options), options.accelerator);
}

/// All workers take worker 0's weights.
void Worker::Impl::adopt_initial() {
  const bool is_first = context.rank() == 0;
  if (is_first) publisher.publish_weights();
  barrier("Worker: adopting worker 0's weights");
  if (!is_first) {
    const AlignedBuffer packed(mixer->layout().size_bytes());
    require(reader.read(0, packed), ErrorKind::internal,
            "Worker: worker 0's initial weights could not be read");
    mixer->copy_weights_from(packed.data());
  }
  barrier("Worker: adopting worker 0's weights");
}

void Worker::Impl::begin_round() {
  require(!left, ErrorKind::argument, "Worker: begin_round after finish()");
  step_began = Clock::now();
  if (combines_next() && worker::reads_neighbors(setting.declared, progress.combinations))
    round.begin();
}

void Worker::Impl::end_round(const StepOptions& options) {
  progress.stats.step_s += Seconds(Clock::now() - step_began).count();
  require(!setting.declared.needs_learning_rate || options.learning_rate > 0, ErrorKind::argument,
          "Worker: algorithm {} divides by the learning rate, which was given as {}; pass it with "
          "step(train, {{.learning_rate = rate}})",
          setting.declared.name, options.learning_rate);
  if (setting.options.not_finite == NotFinite::heal && !rotates) recovery.heal();
  if (combines_next()) {
    combine({.round = progress.combinations,
             .asynchronous = !setting.exact(),
             .learning_rate = options.learning_rate});
    ++progress.combinations;
  }
  ++progress.stats.rounds;
  link.peers->note_progress();
  survivors.look();
  if (setting.options.on_round) setting.options.on_round(progress.stats.rounds);
}

void Worker::Impl::combine(const algorithm::RoundInfo& info) {
  if (worker::averages_all(setting.declared, info.round)) {
    average->average(publisher);
  } else if (setting.declared.scope == algorithm::Scope::everybody) {
    average->combine(info, publisher);
  } else if (setting.declared.scope == algorithm::Scope::neighbors) {
    if (!round.run(info)) recovery.rejoin(publisher, lag.furthest_neighbor());
  }
}

void Worker::Impl::republish() {
  // What was published for the coming round may be on its way to readers, who must not take it.
  if (setting.exact() && setting.before_step()) link.exchange->complete(++progress.combinations);
  publisher.restart(progress.combinations);
}

void Worker::Impl::set_schedule(const TopologyRule& rule) {
  require(!setting.sends_sums(), ErrorKind::argument,
          "Worker: set_schedule with algorithm {} at staleness {}, whose messages are running sums "
          "over edges that stay; make a new Worker",
          setting.declared.name, setting.options.staleness);
  const Schedule schedule = rule.make(setting.group.size());
  const FittingWeights weights =
      fitting_weights(schedule, setting.declared, setting.options.weights,
                      setting.options.lazy_weights, setting.options.staleness);
  plan->change(schedule, progress.combinations, weights.rule, weights.lazy);
}

void Worker::Impl::restore(const std::vector<TensorView>& saved) {
  require(!left, ErrorKind::argument, "Worker: restore after finish()");
  state.restore(saved, publisher);
  barrier("Worker: resuming");
}

/// The final weights may differ from the last publication: by steps since the last combination, or
/// where the rule publishes after the step.
void Worker::Impl::finish() {
  if (left) return;
  if (rotates) mixer->copy_weights_from(link.exchange->published().data);
  publisher.publish_weights();
  link.peers->announce(WorkerStatus::finished);
  left = true;
}

bool Worker::Impl::abandon() noexcept {
  if (left) return false;
  left = true;
  return link.peers->announce(WorkerStatus::failed);
}

Worker::Worker(Group group, const TopologyRule& rule, std::vector<TensorView> parameters,
               WorkerOptions options) {
  const Deadline deadline(options.deadline);
  ParameterLayout layout;
  std::unique_ptr<Schedule> schedule;
  std::string notice;
  agree(group, deadline, "Worker: starting up", [&] {
    worker::check_options(options, options.algorithm.declaration());
    schedule = std::make_unique<Schedule>(rule.make(group.size()));
    const FittingWeights weights =
        fitting_weights(*schedule, options.algorithm.declaration(), options.weights,
                        options.lazy_weights, options.staleness);
    options.weights = weights.rule;
    options.lazy_weights = weights.lazy;
    notice = weights.notice;
    mixing_row(schedule->at(0), group.rank(), options.weights, options.lazy_weights);
    const Device device = options.accelerator ? options.accelerator->device() : Device{};
    layout = ParameterLayout(worker::participating(std::move(parameters), options), device);
    if (options.accelerator) worker::check_for_device(layout, options);
  });
  worker::require_agreement(
      group, worker::fingerprint(layout, options.algorithm.declaration(), *schedule, options),
      deadline);
  if (!notice.empty() && group.rank() == 0 && options.log) options.log(LogLevel::warning, notice);
  impl_ = std::make_unique<Impl>(std::move(group), std::move(*schedule), std::move(layout),
                                 std::move(options));
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

void Worker::begin_round() { impl_->begin_round(); }
void Worker::end_round(const StepOptions& options) { impl_->end_round(options); }
void Worker::end_round(double loss, const StepOptions& options) {
  check_loss(loss);
  end_round(options);
}

std::int64_t Worker::round() const { return impl_->progress.stats.rounds; }
int Worker::rank() const { return impl_->setting.group.rank(); }
int Worker::size() const { return impl_->setting.group.size(); }
WorkerStats Worker::stats() const { return impl_->progress.stats; }
const Schedule& Worker::schedule() const { return impl_->plan->schedule(); }
const ParameterLayout& Worker::layout() const { return impl_->mixer->layout(); }
const algorithm::Declaration& Worker::algorithm() const { return impl_->setting.declared; }

void Worker::mean_model(std::span<std::byte> packed) const {
  impl_->mean.read(impl_->own_part(), packed);
}
void Worker::mean_model(const std::vector<TensorView>& out) const {
  impl_->mean.read(impl_->own_part(), out);
}
double Worker::consensus_distance() const {
  return impl_->reader.distance_among(impl_->own_part());
}

void Worker::republish() { impl_->republish(); }
void Worker::rebind(std::vector<TensorView> parameters) {
  impl_->mixer->rebind(
      layout().rebound(worker::participating(std::move(parameters), impl_->setting.options)));
}
void Worker::set_schedule(const TopologyRule& rule) { impl_->set_schedule(rule); }

std::vector<TensorView> Worker::state() { return impl_->state.views(); }
void Worker::restore(const std::vector<TensorView>& saved) { impl_->restore(saved); }

void Worker::finish() { impl_->finish(); }
void Worker::await_finish() {
  finish();
  impl_->survivors.await_finish();
}
const std::vector<int>& Worker::lost() const { return impl_->survivors.lost(); }
bool Worker::has_finished(int worker) const {
  return impl_->link.peers->peer(worker).status == WorkerStatus::finished;
}
bool Worker::abandon() noexcept { return impl_->abandon(); }

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
  if (std::isfinite(loss)) return;
  if (impl_->setting.options.not_finite == NotFinite::heal) return impl_->recovery.note_bad_loss();
  fail(ErrorKind::numeric,
       "Worker: the loss of worker {} in round {} is {}; its weights were not published. Try a "
       "smaller "
       "learning rate, lazy weights or the algorithm atc",
       rank(), round(), std::isnan(loss) ? std::abs(loss) : loss);  // no "-nan"
}

}  // namespace fast
