#include <algorithm>
#include <cmath>
#include <exception>
#include <fast/core/error.hpp>
#include <fast/worker/worker.hpp>
#include <iterator>
#include <limits>
#include <utility>

#include "combine/accelerator.hpp"
#include "core/ended_by_check.hpp"
#include "core/message.hpp"
#include "exchange/group_impl.hpp"
#include "exchange/open_coordinator.hpp"
#include "topology/hosts.hpp"
#include "worker/impl.hpp"
#include "worker/site_exchange.hpp"
#include "worker/start/requirements.hpp"
#include "worker/start/robust_start.hpp"
#include "worker/start/startup.hpp"

namespace fast {
namespace worker {
namespace {

constexpr auto resuming = "Worker: resuming";

bool is_on_one_host(const Group& group) { return HostSizes(group.hosts()).hosts == 1; }

/// A device copies what is read, as another host does.
std::size_t block_elements(const Group& group, const WorkerOptions& options) {
  const bool in_place = is_on_one_host(group) && !options.accelerator;
  return in_place ? ModelReader::on_host : ModelReader::between_hosts;
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
bool is_active(const std::unique_ptr<Impl>& impl) {
  return impl && impl->participation.is_active();
}

void report_step(const Context& worker, Clock::time_point began) {
  const Clock::time_point now = Clock::now();
  worker.progress.stats.step_s += Seconds(now - began).count();
  if (!worker.options().observer) return;
  worker.options().observer->on_phase(
      {Phase::step, worker.rank(), worker.progress.stats.rounds, -1, began, now});
}

/// Nobody else reports it. Does not throw.
void report_failed_end(const WorkerOptions& options, const std::exception& failure) noexcept {
  try {
    if (options.log) options.log(LogLevel::error, message_of(failure));
  } catch (const std::exception&) {  // the program's log function
  }
}

/// A spare that cannot begin does not end the others' training. Rethrows that another worker has
/// failed, and what a WaitCheck has thrown.
void leave_empty(const Group& group, const WorkerOptions& options) {
  const auto leave = [&] {
    exchange::members_of(group)->release();
    group.disable_collectives();
  };
  try {
    throw;
  } catch (const std::exception& error) {
    const auto* known = dynamic_cast<const Error*>(&error);
    if (known != nullptr && known->kind() == ErrorKind::peer_failed) throw;
    leave();
    if (ended_by_check()) throw;
    if (options.log) options.log(LogLevel::warning, message_of(error));
  } catch (...) {
    leave();
    throw;
  }
}

}  // namespace

void rethrow_as_failed(bool first) {
  try {
    throw;
  } catch (const Error& error) {
    if (first || error.everywhere() || error.kind() == ErrorKind::peer_failed) throw;
    throw Error(ErrorKind::peer_failed, error.what());
  }
}

}  // namespace worker

Worker::Impl::Impl(const Group& group, const worker::StartupConfig& agreed,
                   worker::WorkerParts ready)
    : mixer(std::move(ready.mixer)),
      setting{group, agreed.options, agreed.options.algorithm.traits(), ready.shape,
              exchange::members_of(group)},
      wiring(agreed.wiring),
      plan(std::move(ready.plan)),
      link(std::move(ready.link)),
      events(std::move(ready.events)),
      context{setting, progress, *link.exchange, *mixer},
      publisher(context),
      reader(*link.exchange, link.peers, *mixer, setting.shape, group.rank(),
             worker::block_elements(group, setting.options), setting.options.mixing_threads),
      lag(context, *link.peers, *plan),
      round(context, *plan, lag, publisher),
      recovery(context, *link.peers, *plan, reader),
      survivors(setting, link.peers, *plan),
      growth(context, wiring, *plan, setting.members),
      state(context, *plan),
      mean(context, reader, link.peers),
      reduction(context, link.peers, reader),
      participation(context, link.peers, setting.members) {
  if (const auto& part = GroupImpl::of(group).part())
    part->set_patience(setting.options.suspect_after);
  enter(ready.offer);
}

Worker::Impl::~Impl() {
  if (setting.options.site) setting.options.site->abandon();
}

std::unique_ptr<Worker::Impl> Worker::Impl::make(const Group& group,
                                                 const worker::StartupConfig& agreed) {
  worker::LinkBuilder builder(group, agreed);
  std::optional<worker::WorkerParts> ready = builder.make();
  const bool is_spare = !ready || ready->offer.has_value();
  try {
    return try_seats(group, agreed, builder, std::move(ready));
  } catch (...) {
    if (!is_spare) throw;
    worker::leave_empty(group, agreed.options);
  }
  return nullptr;
}

std::unique_ptr<Worker::Impl> Worker::Impl::try_seats(const Group& group,
                                                      const worker::StartupConfig& agreed,
                                                      worker::LinkBuilder& builder,
                                                      std::optional<worker::WorkerParts> ready) {
  while (ready) {
    if (ready->offer) builder.fill(*ready);
    auto impl = std::make_unique<Impl>(group, agreed, std::move(*ready));
    if (impl->entered == worker::Entered::trains) return impl;
    if (impl->entered == worker::Entered::not_needed) {
      impl.reset();
      builder.leave();
      return nullptr;
    }
    Link link = std::move(impl->link);
    impl.reset();
    ready = builder.make_again(std::move(link));
  }
  return nullptr;
}

void Worker::Impl::enter(const std::optional<membership::SeatOffer>& offer) {
  worker::WorkerStart entry(context, *link.peers, setting.members, publisher, reader, recovery);
  if (!offer) {
    open_average();
    try {
      entry.begin();
    } catch (...) {
      worker::rethrow_as_failed(participation.abandon());
    }
    if (setting.options.site) join_sites();
    return;
  }
  // The run may have grown since this spare was offered its seat.
  entered = entry.take_seat(*offer, [this](std::int64_t rounds) { return growth.begin(rounds); });
  if (entry.replaces()) round.combiner().memory().leave_out_rounds();
}

/// The weights may be those of another site now, and so many rounds count as made.
void Worker::Impl::join_sites() {
  std::int64_t rounds = 0;
  try {
    rounds = setting.options.site->begin(setting.group, mixer->layout(), setting.options.log);
  } catch (...) {
    worker::rethrow_as_failed(participation.abandon());
  }
  progress.stats.rounds = progress.stats.joined_at = rounds;
  progress.combinations = setting.combinations_of(rounds);
  mixer->start(true);
  publish_anew();
}

/// Collective, if the rule averages over all workers.
void Worker::Impl::open_average() {
  const algorithm::RuleTraits& traits = setting.traits;
  if (traits.topology.scope != algorithm::Scope::everybody && traits.timing.average_every == 0)
    return;
  ExchangeOptions options = worker::exchange_options(setting.options);
  options.observer = events;
  auto reducer = setting.group.open_reducer(mixer->layout().size_bytes(), options);
  agree(setting.group, Deadline(options.deadline), "Worker: memory for averages over all workers",
        [&] { average.emplace(context, std::move(reducer)); });
}

void Worker::Impl::begin_round() {
  if (!participation.keeps_seat()) return;
  require_in_training("begin_round");
  step_began = Clock::now();
  note_round();
  if (setting.combines_in(progress.stats.rounds) &&
      worker::reads_neighbors(setting.traits, progress.combinations))
    round.begin();
}

/// For events of the link.
void Worker::Impl::note_round() {
  if (events) events->begin(progress.stats.rounds);
}

void Worker::Impl::check_loss(double loss) {
  if (std::isfinite(loss) || !participation.is_active()) return;
  if (setting.options.not_finite == NotFinite::heal) return recovery.note_bad_loss();
  fail(ErrorKind::numeric,
       "Worker: the loss of worker {} in round {} is {}; its weights were not published. Try a "
       "smaller learning rate or lazy weights{}{}",
       context.rank(), progress.stats.rounds,
       std::isnan(loss) ? std::abs(loss) : loss,  // no "-nan"
       setting.traits.step.stable_rates.empty() ? "" : "; ", setting.traits.step.stable_rates);
}

void Worker::Impl::exchange_with_sites() {
  SiteExchange& site = *setting.options.site;
  site.end_step(progress.stats.rounds + 1);
  if (Observer* observer = setting.options.observer.get())
    site.tell(*observer, setting.group.rank(), progress.stats.rounds);
}

void Worker::Impl::end_round(const StepOptions& options) {
  if (!participation.keeps_seat()) return;
  require_in_training("end_round");
  if (const auto began = std::exchange(step_began, std::nullopt))
    worker::report_step(context, *began);
  require(!setting.traits.step.needs_learning_rate || options.learning_rate > 0,
          ErrorKind::argument,
          "Worker: algorithm {} divides by the learning rate, which is {} in round {}; give each "
          "round its rate, and begin a warm-up above 0",
          setting.traits.name, options.learning_rate, progress.stats.rounds);
  const auto& accelerator = setting.options.accelerator;
  if (accelerator && options.queue) accelerator->order(Accelerator::Order::after, *options.queue);
  progress.settles = accelerator && !options.queue && setting.exact();
  if (setting.options.not_finite == NotFinite::heal && !rotates) recovery.heal();
  if (setting.options.site) exchange_with_sites();
  algorithm::RoundInfo info{.round = progress.combinations,
                            .asynchronous = !setting.exact(),
                            .workers = setting.group.size(),
                            .learning_rate = options.learning_rate,
                            .largest_rate = options.largest_rate};
  if (setting.publishes_early_in(progress.stats.rounds)) round.publish_early(info);
  try {
    if (setting.combines_in(progress.stats.rounds)) combine_in(info);
  } catch (...) {  // also if its wait was ended, and the program goes on
    try {
      mixer->take_back();
      hand_back(options);
    } catch (const std::exception&) {  // what failed first counts
    }
    throw;
  }
  hand_back(options);
  ++progress.stats.rounds;
  note_round();
  link.peers->note_progress();
  survivors.look();
  if (growth.look()) grow();
  watch_mean();
  if (setting.options.on_round) setting.options.on_round(progress.stats.rounds);
}

void Worker::Impl::watch_mean() {
  const MeanWatch& watch = setting.options.on_mean;
  if (!watch.call || watch.worker != context.rank()) return;
  if (progress.stats.rounds % watch.every != 0 || !participation.keeps_seat()) return;
  if (watched.size_bytes() == 0) watched = AlignedBuffer(mixer->layout().size_bytes());
  const std::span<std::byte> packed(watched.data(), watched.size_bytes());
  const std::vector<MeanPart> parts = mean.read(own_part(), packed);
  watch.call(progress.stats.rounds, packed, parts);
}

/// What the program does to the tensors from now on follows what the round has done to them.
void Worker::Impl::hand_back(const StepOptions& options) {
  const auto& accelerator = setting.options.accelerator;
  if (!accelerator) return;
  if (options.queue) return accelerator->order(Accelerator::Order::before, *options.queue);
  accelerator->work()->settle();
}

void Worker::Impl::grow() {
  if (!setting.traits.memory.remembers_neighbors) return;
  const int growths = progress.earlier_growths + setting.members->map().entered();
  round.combiner().begin_epoch(worker::epoch_of_growth(growths));
}

void Worker::Impl::combine(const algorithm::RoundInfo& info) {
  if (worker::averages_all(setting.traits, info.round)) {
    average->average(info, publisher);
  } else if (setting.traits.topology.scope == algorithm::Scope::everybody) {
    average->combine(info, publisher);
  } else if (setting.traits.topology.scope == algorithm::Scope::neighbors) {
    if (!round.run(info) && participation.keeps_seat()) rejoin();
  }
}

/// A worker that has come back, or is new, makes what is left of the round that the others are in.
void Worker::Impl::combine_in(algorithm::RoundInfo info) {
  do {
    info.round = progress.combinations;
    combine(info);
    ++progress.combinations;
  } while ((progress.combinations - progress.republished) % setting.options.mix_times != 0 &&
           !participation.has_ended());
}

/// It may have left out the round of a growth.
void Worker::Impl::rejoin() {
  recovery.rejoin(publisher, lag.furthest_neighbor(), [this](std::int64_t rounds) {
    growth.prepare(rounds);
    return setting.members ? setting.members->map().entered() : 0;
  });
  round.combiner().memory().leave_out_rounds();
  if (const auto& part = GroupImpl::of(setting.group).part()) part->note_rejoin();
}

void Worker::Impl::republish() {
  require_in_training("republish");
  if (setting.options.site && progress.stats.rounds == progress.stats.joined_at) take_part_anew();
  publish_anew();
}

/// The program has given the model other weights before the first round. If other sites are
/// further, theirs count.
void Worker::Impl::take_part_anew() {
  if (progress.stats.joined_at > 0)
    setting.options.site->put_back();
  else
    setting.options.site->restored(progress.stats.rounds, {});
}

void Worker::Impl::publish_anew() {
  // What was published for the coming round may be on its way to readers, who must not take it.
  const bool early = std::exchange(progress.published_early, false);
  if (setting.exact() && (setting.before_step() || early)) {
    link.exchange->flush();  // what was completed before counts without this one
    ++progress.combinations;
    plan->skip_to(progress.combinations);
    count_republished();
    link.exchange->complete(progress.combinations);
  }
  publisher.restart(progress.combinations);
}

/// Between rounds. Spares and growth tell rounds by combinations.
void Worker::Impl::count_republished() {
  progress.republished = progress.combinations - setting.combinations_of(progress.stats.rounds);
  if (setting.members) setting.members->map().records().set_republished(progress.republished);
}

void Worker::Impl::set_schedule(const TopologyRule& rule) {
  require_in_training("set_schedule");
  require(!setting.members, ErrorKind::argument,
          "Worker: set_schedule over a group with spares, which begin with the topology that the "
          "Worker was made with; start no spares, or make a new Worker");
  require(!setting.sends_sums(), ErrorKind::argument,
          "Worker: set_schedule with algorithm {} at staleness {}, whose messages are running sums "
          "over edges that stay; make a new Worker",
          setting.traits.name, setting.options.staleness);
  require(
      !setting.traits.messages.by_edge, ErrorKind::argument,
      "Worker: set_schedule with algorithm {}, which keeps what came over each edge; make a new "
      "Worker",
      setting.traits.name);
  const bool is_whole = shards_of(plan->schedule().at(0)) == nullptr;
  require(
      is_whole || worker::is_on_one_host(setting.group), ErrorKind::argument,
      "Worker: set_schedule on {}, whose messages to other hosts are shards and may be on their "
      "way; make a new Worker",
      plan->schedule().name());
  const worker::TopologyConfig wanted{rule, wiring.weights, wiring.lazy};
  const worker::ResolvedTopology wired = wanted.of(setting.group.size(), setting.options);
  wired.check_row(context.rank());
  const std::string of_robust = worker::robust_notice(wired.schedule, setting.options.robust);
  plan->change(wired.schedule, progress.combinations, wired.weights.rule, wired.weights.lazy);
  for (const std::string& line : {wired.weights.notice, of_robust}) {
    if (!line.empty() && context.rank() == 0) context.warn(line);
  }
  reset_rule_state();
}

/// On all workers between the same rounds. What they hold of each other is a sum with the weights
/// of before.
void Worker::Impl::reset_rule_state() {
  if (setting.remembers_weights()) round.combiner().begin_epoch(mixer->scalars().epoch() + 1);
}

void Worker::Impl::restore(const std::vector<TensorView>& saved) {
  require_in_training("restore");
  if (setting.options.site && progress.stats.joined_at > 0) {  // other sites are further
    setting.options.site->put_back();
    return publisher.restart(progress.combinations);
  }
  state.restore(saved, publisher);
  count_republished();
  link.exchange->complete(progress.combinations);  // once more, with those that no round has made
  link.exchange->flush();
  if (setting.options.site) setting.options.site->restored(progress.stats.rounds, saved);
  const bool fits = state.is_of_these_weights(saved);
  const auto others = setting.group.all_gather(
      fits ? "" : "other weights", Deadline(setting.options.deadline), worker::resuming);
  const bool all_fit =
      std::ranges::all_of(others, [](const std::string& other) { return other.empty(); });
  if (all_fit) return;
  if (context.rank() == 0) {
    context.warn(
        fmt::format("algorithm {}: the topology, its weights or the places of the workers in it "
                    "are not those of the saved state; the rule restarts without its saved state",
                    setting.traits.name));
  }
  reset_rule_state();
}

void Worker::Impl::require_in_training(std::string_view call) const {
  require(!participation.has_ended(), ErrorKind::argument,
          "Worker: {}() was called after finish(); make a new Worker to continue", call);
}

void Worker::Impl::finish() {
  if (participation.has_ended()) return;
  if (rotates) mixer->memory().copy_weights_from(link.exchange->published().data);
  if (setting.options.site) setting.options.site->finish();
  participation.finish(publisher);
  recovery.note_restored();
}

Worker::Worker(Group group, const TopologyRule& rule, std::vector<TensorView> parameters,
               WorkerOptions options)
    : impl_(Impl::make(
          group, worker::agree_on_start(group, rule, std::move(parameters), std::move(options)))) {
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
  } catch (const std::exception& error) {
    if (abandon()) worker::report_failed_end(impl_->setting.options, error);
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
  return worker::is_active(impl_) ? impl_->progress.stats.rounds
                                  : std::numeric_limits<std::int64_t>::max();
}
int Worker::rank() const { return unneeded_ ? unneeded_->rank() : impl_->setting.group.rank(); }
int Worker::size() const { return unneeded_ ? unneeded_->size() : impl_->setting.group.size(); }
WorkerStats Worker::stats() const {
  if (!impl_) return {};
  WorkerStats stats = impl_->progress.stats;
  stats.model_bytes_read = impl_->reader.bytes_read();
  stats.lazy_weights = impl_->plan->has_lazy_weights();
  if (const auto& accelerator = impl_->setting.options.accelerator)
    stats.device_bytes = static_cast<double>(accelerator->work()->held());
  return stats;
}
const ParameterLayout& Worker::layout() const { return worker::needed(impl_).mixer->layout(); }

std::vector<MeanPart> Worker::mean_model(std::span<std::byte> packed) const {
  return worker::needed(impl_).mean.read(impl_->own_part(), packed);
}
std::vector<MeanPart> Worker::mean_model(const std::vector<TensorView>& out) const {
  return worker::needed(impl_).mean.read(impl_->own_part(), out);
}
double Worker::consensus_distance() const {
  return worker::needed(impl_).reader.distance_among(impl_->own_part());
}
double Worker::reduce_models(std::span<std::byte> packed) {
  return worker::needed(impl_).mean.reduce(impl_->reduction, impl_->own_part(), packed);
}
void Worker::trim() {
  auto* results = impl_ ? impl_->link.peers->results() : nullptr;
  if (results != nullptr && layout().device() == Device{}) results->trim();
}

void Worker::republish() {
  if (worker::is_active(impl_)) impl_->republish();
}
void Worker::rebind(std::vector<TensorView> parameters) {
  worker::needed(impl_).mixer->rebind(
      layout().rebound(worker::participating(std::move(parameters), impl_->setting.options)));
  if (const auto& site = impl_->setting.options.site) site->rebind(layout());
}
void Worker::allow_growth(const GrowthRounds& rounds) {
  if (worker::is_active(impl_)) impl_->growth.allow(rounds);
}
void Worker::set_schedule(const TopologyRule& rule) {
  if (impl_) impl_->set_schedule(rule);
}

std::vector<TensorView> Worker::state() {
  std::vector<TensorView> views = worker::needed(impl_).state.views();
  if (const auto& site = impl_->setting.options.site)
    std::ranges::move(site->state(), std::back_inserter(views));
  return views;
}
void Worker::restore(const std::vector<TensorView>& saved) { worker::needed(impl_).restore(saved); }

void Worker::finish() {
  if (impl_) impl_->finish();
}
void Worker::leave() {
  if (!worker::is_active(impl_)) return;
  const auto& site = impl_->setting.options.site;
  require(
      !site || impl_->setting.group.size() == 1, ErrorKind::argument,
      "Worker: leave() of a worker of a site, whose {} ranks make exchanges together; end all of "
      "them",
      impl_->setting.group.size());
  impl_->participation.leave();
  if (site) site->finish();
  impl_->recovery.note_restored();
}
void Worker::await_finish() {
  finish();
  if (!worker::is_active(impl_)) return;
  impl_->survivors.await_finish();
  if (const auto& members = impl_->setting.members) members->await_end();
}
Departures Worker::departed(const std::vector<int>& ask) const {
  return impl_ ? impl_->survivors.departed(ask) : Departures{};
}
bool Worker::abandon() noexcept {
  if (impl_ && impl_->setting.options.site) impl_->setting.options.site->abandon();
  return impl_ && impl_->participation.abandon();
}

}  // namespace fast
