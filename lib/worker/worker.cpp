#include <algorithm>
#include <cmath>
#include <exception>
#include <fast/core/error.hpp>
#include <fast/worker/requirements.hpp>
#include <fast/worker/worker.hpp>
#include <limits>
#include <thread>
#include <utility>

#include "combine/accelerator.hpp"
#include "exchange/group_impl.hpp"
#include "mpi/launcher.hpp"
#include "worker/impl.hpp"
#include "worker/start/startup.hpp"

namespace fast {
namespace worker {
namespace {

constexpr auto resuming = "Worker: resuming";

std::unique_ptr<Reducer> open_reducer(const Setting& setting, const std::shared_ptr<Peers>& peers,
                                      std::size_t size_bytes) {
  ExchangeOptions options = exchange_options(setting.options);
  options.activity = [peers, self = setting.group.rank()] { return peers->peer(self).activity; };
  return setting.group.open_reducer(size_bytes, options);
}

/// Throws Error(argument) in a spare that was not needed.
template <class Impl>
Impl& needed(const std::unique_ptr<Impl>& impl) {
  require(impl != nullptr, ErrorKind::argument,
          "Worker: this spare was not needed and has no model; ask Group::has_seat() first");
  return *impl;
}

/// False in a spare that was not needed, in a worker that a spare has replaced, and in one that has
/// left.
template <class Impl>
bool sits(const std::unique_ptr<Impl>& impl) {
  return impl && !impl->replaced && !impl->departed;
}

void tell_step(const Context& worker, Clock::time_point began) {
  const Clock::time_point now = Clock::now();
  worker.progress.stats.step_s += Seconds(now - began).count();
  if (!worker.options().observer) return;
  worker.options().observer->on_phase(
      {Phase::step, worker.rank(), worker.progress.combinations, -1, began, now});
}

/// A spare that finds no weights does not end the others' training.
void leave_empty(const Group& group, const WorkerOptions& options, const Error& error) {
  if (options.log) options.log(LogLevel::warning, error.what());
  GroupImpl::of(group).seats()->release();
  group.give_up();
}

}  // namespace

void rethrow_as_failed(bool first) {
  try {
    throw;
  } catch (const Error& error) {
    if (first || error.kind() == ErrorKind::peer_failed) throw;
    throw Error(ErrorKind::peer_failed, error.what());
  }
}

}  // namespace worker

Worker::Impl::Impl(const Group& group, const worker::Wiring& wiring, WorkerOptions options,
                   worker::Place place)
    : mixer(std::move(place.mixer)),
      setting{group, options, options.algorithm.declaration(), place.shape},
      plan(std::move(place.plan)),
      link(std::move(place.link)),
      seats(GroupImpl::of(group).seats()),
      context{setting, progress, *link.exchange, *mixer},
      publisher(context),
      reader(*link.exchange, link.peers, *mixer, setting.shape),
      lag(context, *link.peers, *plan),
      round(context, *plan, lag, publisher),
      recovery(context, *link.peers, *plan, reader),
      survivors(setting, link.peers, *plan),
      growth(context, wiring, *plan, seats),
      state(context, *plan),
      mean(context, reader) {
  place.offer ? sit_down(*place.offer) : start();
}

void Worker::Impl::start() {
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
  setting.barrier("Worker: first publication");
  if (seats) seats->note_status(WorkerStatus::running);
  mpi::notify_launcher(mpi::LauncherNote::training_began);
}

void Worker::Impl::sit_down(const exchange::SeatOffer& offer) {
  mixer->start(false);
  const bool joins = offer.growth > seats->growth().begun();
  joins ? join(offer) : begin_on_seat(offer);
}

/// Nobody may begin the growth's rounds without a spare on the seat, so it takes the seat first.
/// Its neighbors wait for what it publishes for that round.
void Worker::Impl::join(const exchange::SeatOffer& offer) {
  seated = seats->take();
  if (!seated) return;
  const std::optional<std::int64_t> round = seats->growth().wait_for(offer.growth);
  needed = round.has_value();
  if (!needed) return;
  recovery.join(publisher, offer, *round, [this](std::int64_t rounds) { return come_to(rounds); });
  link.peers->announce(WorkerStatus::running);
  seats->note_status(WorkerStatus::running);
  mpi::notify_launcher(mpi::LauncherNote::joined);
  if (!setting.options.log) return;
  setting.options.log(LogLevel::info,
                      fmt::format("worker {}: joins in round {}; the workers are {} now",
                                  offer.seat, progress.stats.rounds, setting.group.size()));
}

/// The run may have grown since this spare was offered its seat.
int Worker::Impl::come_to(std::int64_t rounds) {
  const int growths = growth.begin(rounds);
  survivors.grow();
  return growths;
}

/// The others read this spare's publications when it has taken the seat: it publishes before.
void Worker::Impl::begin_on_seat(const exchange::SeatOffer& offer) {
  recovery.take_seat(publisher, offer, [this](std::int64_t rounds) { return come_to(rounds); });
  link.peers->announce(WorkerStatus::running);
  seats->note_status(WorkerStatus::running);
  seated = seats->take();
  if (!seated) return;
  mpi::notify_launcher(mpi::LauncherNote::took_seat);
  context.warn(fmt::format(
      "worker {}: a spare has taken this seat in round {}; the worker before had made {} rounds",
      offer.seat, progress.stats.rounds, progress.stats.predecessor_rounds));
}

bool Worker::Impl::keeps_seat() {
  if (departed) return false;
  if (!seats || left || seats->table().has_seat()) return !replaced;
  context.warn(fmt::format(
      "worker {}: a spare has taken its seat while it showed no sign of life; it leaves",
      setting.group.rank()));
  replaced = left = true;
  mpi::notify_launcher(mpi::LauncherNote::lost_seat);
  link.peers->announce(WorkerStatus::finished);
  return false;
}

/// All workers take worker 0's weights.
void Worker::Impl::adopt_initial() {
  const bool is_first = context.rank() == 0;
  if (is_first) publisher.publish_weights();
  setting.barrier("Worker: adopting worker 0's weights");
  if (!is_first) {
    const AlignedBuffer packed(mixer->layout().size_bytes());
    require(reader.read(0, packed), ErrorKind::internal,
            "Worker: worker 0's initial weights could not be read");
    mixer->memory().copy_weights_from(packed.data());
  }
  setting.barrier("Worker: adopting worker 0's weights");
}

void Worker::Impl::begin_round() {
  if (!keeps_seat()) return;
  require(!left, ErrorKind::argument, "Worker: begin_round after finish()");
  step_began = Clock::now();
  if (setting.combines_in(progress.stats.rounds) &&
      worker::reads_neighbors(setting.declared, progress.combinations))
    round.begin();
}

void Worker::Impl::check_loss(double loss) {
  if (std::isfinite(loss) || replaced || departed) return;
  if (setting.options.not_finite == NotFinite::heal) return recovery.note_bad_loss();
  fail(ErrorKind::numeric,
       "Worker: the loss of worker {} in round {} is {}; its weights were not published. Try a "
       "smaller learning rate, lazy weights or the algorithm atc",
       context.rank(), progress.stats.rounds,
       std::isnan(loss) ? std::abs(loss) : loss);  // no "-nan"
}

void Worker::Impl::end_round(const StepOptions& options) {
  if (!keeps_seat()) return;
  worker::tell_step(context, step_began);
  require(!setting.declared.needs_learning_rate || options.learning_rate > 0, ErrorKind::argument,
          "Worker: algorithm {} divides by the learning rate, which was given as {}; pass it with "
          "step(train, {{.learning_rate = rate}})",
          setting.declared.name, options.learning_rate);
  if (setting.options.not_finite == NotFinite::heal && !rotates) recovery.heal();
  const algorithm::RoundInfo info{.round = progress.combinations,
                                  .asynchronous = !setting.exact(),
                                  .workers = setting.group.size(),
                                  .learning_rate = options.learning_rate,
                                  .largest_rate = options.largest_rate};
  if (setting.publishes_early_in(progress.stats.rounds)) round.publish_early(info);
  if (setting.combines_in(progress.stats.rounds)) {
    combine(info);
    ++progress.combinations;
  }
  ++progress.stats.rounds;
  link.peers->note_progress();
  survivors.look();
  if (growth.look()) grow();
  if (setting.options.on_round) setting.options.on_round(progress.stats.rounds);
}

void Worker::Impl::grow() {
  survivors.grow();
  if (!setting.declared.remembers_neighbors) return;
  round.begin_epoch(worker::epoch_of_growth(seats->growth().entered()));
}

void Worker::Impl::combine(const algorithm::RoundInfo& info) {
  if (worker::averages_all(setting.declared, info.round)) {
    average->average(publisher);
  } else if (setting.declared.scope == algorithm::Scope::everybody) {
    average->combine(info, publisher);
  } else if (setting.declared.scope == algorithm::Scope::neighbors) {
    if (!round.run(info) && keeps_seat()) rejoin();
  }
}

/// It may have left out the round of a growth.
void Worker::Impl::rejoin() {
  recovery.rejoin(publisher, lag.furthest_neighbor(), [this](std::int64_t rounds) {
    growth.prepare(rounds);
    return seats ? seats->growth().entered() : 0;
  });
}

void Worker::Impl::republish() {
  // What was published for the coming round may be on its way to readers, who must not take it.
  const bool early = std::exchange(progress.published_early, false);
  if (setting.exact() && (setting.before_step() || early))
    link.exchange->complete(++progress.combinations);
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
  growth.set_rule(rule);
  begin_for_other_weights();
}

/// On all workers between the same rounds. What they hold of each other is a sum with the weights
/// of before.
void Worker::Impl::begin_for_other_weights() {
  if (setting.remembers_weights()) round.begin_epoch(mixer->scalars().epoch() + 1);
}

void Worker::Impl::restore(const std::vector<TensorView>& saved) {
  require(!left, ErrorKind::argument, "Worker: restore after finish()");
  state.restore(saved, publisher);
  const bool fits = state.is_of_these_weights(saved);
  const auto others = setting.group.all_gather(
      fits ? "" : "other weights", Deadline(setting.options.deadline), worker::resuming);
  const bool all_fit = std::all_of(others.begin(), others.end(),
                                   [](const std::string& other) { return other.empty(); });
  if (all_fit) return;
  if (context.rank() == 0) {
    context.warn(
        fmt::format("algorithm {}: the topology, its weights or the places of the workers in it "
                    "are not those of the saved state; the rule restarts without its saved state",
                    setting.declared.name));
  }
  begin_for_other_weights();
}

/// The final weights may differ from the last publication: by steps since the last combination, or
/// where the rule publishes after the step.
void Worker::Impl::finish() {
  if (left) return;
  if (rotates) mixer->memory().copy_weights_from(link.exchange->published().data);
  publisher.publish_weights();
  link.peers->announce(WorkerStatus::finished);
  left = true;
}

void Worker::Impl::leave() {
  require(
      setting.declared.scope != algorithm::Scope::everybody && setting.declared.average_every == 0,
      ErrorKind::argument,
      "Worker: worker {} cannot leave: algorithm {} averages over all workers; stop the run "
      "and resume it with fewer",
      context.rank(), setting.declared.name);
  if (left) return;
  link.exchange->flush();
  link.peers->announce(WorkerStatus::left);
  mpi::notify_launcher(mpi::LauncherNote::lost_seat);
  left = departed = true;
  if (seats) seats->spread_news();
}

bool Worker::Impl::abandon() noexcept {
  if (departed) return true;  // nobody waits for this worker any more; it reports its own errors
  if (left) return false;
  left = true;
  if (seats && seats->table().is_spare(seats->table().rank())) {
    vacate();
    return true;
  }
  return link.peers->announce(WorkerStatus::failed);
}

/// The others go on as if they had no such spare.
void Worker::Impl::vacate() noexcept {
  seats->release();
  setting.group.give_up();
  mpi::notify_launcher(mpi::LauncherNote::lost_seat);
}

Worker::Worker(Group group, const TopologyRule& rule, std::vector<TensorView> parameters,
               WorkerOptions options) {
  const Deadline deadline(options.deadline);
  const Group everyone = group.everyone();
  const worker::Wiring wiring{rule, options.weights, options.lazy_weights};
  ParameterLayout layout;
  std::unique_ptr<Schedule> schedule;
  std::string notice;
  agree(everyone, deadline, "Worker: starting up", [&] {
    worker::check_options(options, options.algorithm.declaration());
    worker::check_for_spares(group, options);
    schedule = std::make_unique<Schedule>(rule.make(group.size()));
    const FittingWeights weights =
        fitting_weights(*schedule, options.algorithm.declaration(), options.weights,
                        options.lazy_weights, options.staleness);
    options.weights = weights.rule;
    options.lazy_weights = weights.lazy;
    notice = weights.notice;
    const int seat = group.rank() < group.size() ? group.rank() : 0;
    mixing_row(schedule->at(0), seat, options.weights, options.lazy_weights);
    const Device device = options.accelerator ? options.accelerator->device() : Device{};
    layout = ParameterLayout(worker::participating(std::move(parameters), options), device);
    if (options.accelerator) worker::check_for_device(layout, options);
  });
  worker::require_agreement(
      everyone, worker::fingerprint(layout, options.algorithm.declaration(), *schedule, options),
      deadline);
  if (!notice.empty() && group.rank() == 0 && options.log) options.log(LogLevel::warning, notice);
  worker::PlaceTaker places(group, *schedule, wiring, layout, options);
  auto place = places.take();
  const bool is_spare = !place || place->offer.has_value();
  try {
    while (place && !impl_) {
      impl_ = std::make_unique<Impl>(group, wiring, options, std::move(*place));
      if (!impl_->needed) {
        impl_.reset();
        places.leave();
        break;
      }
      if (impl_->seated) break;
      Link link = std::move(impl_->link);
      impl_.reset();
      place = places.take_another(std::move(link));
    }
  } catch (const Error& error) {
    if (!is_spare || error.kind() == ErrorKind::peer_failed) throw;
    worker::leave_empty(group, options, error);
  }
  if (!impl_) unneeded_.emplace(std::move(group));
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

void Worker::begin_round() {
  if (impl_) impl_->begin_round();
}
void Worker::end_round(const StepOptions& options) {
  if (impl_) impl_->end_round(options);
}
void Worker::end_round(double loss, const StepOptions& options) {
  if (impl_) impl_->check_loss(loss);
  end_round(options);
}

std::int64_t Worker::round() const {
  return worker::sits(impl_) ? impl_->progress.stats.rounds
                             : std::numeric_limits<std::int64_t>::max();
}
int Worker::rank() const { return unneeded_ ? unneeded_->rank() : impl_->setting.group.rank(); }
int Worker::size() const { return unneeded_ ? unneeded_->size() : impl_->setting.group.size(); }
WorkerStats Worker::stats() const { return impl_ ? impl_->progress.stats : WorkerStats{}; }
const ParameterLayout& Worker::layout() const { return worker::needed(impl_).mixer->layout(); }

void Worker::mean_model(std::span<std::byte> packed) const {
  worker::needed(impl_).mean.read(impl_->survivors.own_part(impl_->left), packed);
}
void Worker::mean_model(const std::vector<TensorView>& out) const {
  worker::needed(impl_).mean.read(impl_->survivors.own_part(impl_->left), out);
}
double Worker::consensus_distance() const {
  return worker::needed(impl_).reader.distance_among(impl_->survivors.own_part(impl_->left));
}

void Worker::republish() {
  if (worker::sits(impl_)) impl_->republish();
}
void Worker::rebind(std::vector<TensorView> parameters) {
  worker::needed(impl_).mixer->rebind(
      layout().rebound(worker::participating(std::move(parameters), impl_->setting.options)));
}
void Worker::allow_growth(const GrowthRounds& rounds) {
  if (worker::sits(impl_)) impl_->growth.allow(rounds);
}
void Worker::set_schedule(const TopologyRule& rule) { worker::needed(impl_).set_schedule(rule); }

std::vector<TensorView> Worker::state() { return worker::needed(impl_).state.views(); }
void Worker::restore(const std::vector<TensorView>& saved) { worker::needed(impl_).restore(saved); }

void Worker::finish() {
  if (impl_) impl_->finish();
}
void Worker::leave() {
  if (worker::sits(impl_)) impl_->leave();
}
void Worker::await_finish() {
  finish();
  if (!worker::sits(impl_)) return;
  impl_->survivors.await_finish();
  if (impl_->seats) impl_->seats->await_end();
}
Departures Worker::departed(const std::vector<int>& ask) const {
  return worker::needed(impl_).survivors.departed(ask);
}
bool Worker::abandon() noexcept { return impl_ && impl_->abandon(); }

}  // namespace fast
