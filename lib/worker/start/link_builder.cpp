#include "worker/start/link_builder.hpp"

#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/mpi/environment.hpp>

#include "combine/device_mixer.hpp"
#include "combine/host_mixer.hpp"
#include "exchange/open_coordinator.hpp"
#include "exchange/seats/seated_link.hpp"
#include "mpi/launcher.hpp"
#include "worker/start/device_link.hpp"
#include "worker/start/seat_plan.hpp"
#include "worker/start/startup.hpp"

namespace fast::worker {
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
                                              sends_sums(options.algorithm.traits(), options));
}

PayloadShape shape_of(combine::Mixer& mixer, const WorkerOptions& options) {
  const algorithm::RuleTraits& traits = options.algorithm.traits();
  const bool weights_apart =
      traits.messages.weights_apart || options.codec.kind != codec::Kind::identity;
  return {mixer.coded().size_bytes(), traits.messages.vectors, mixer.scalars().count(),
          weights_apart ? mixer.layout().size_bytes() : 0};
}

}  // namespace

LinkBuilder::LinkBuilder(const Group& group, const StartupConfig& agreed)
    : group_(group),
      agreed_(agreed),
      options_(agreed.options),
      members_(exchange::members_of(group)),
      edges_(std::make_shared<SeatPlan>(options_.algorithm.traits(), members_)),
      events_(options_.observer ? std::make_shared<RoundEvents>(options_.observer) : nullptr) {}

std::optional<WorkerParts> LinkBuilder::make() {
  WorkerParts ready;
  ready.events = events_;
  const bool waits = group_.rank() >= group_.size();
  if (!waits) fill(ready);
  ready.shape = waits ? shape_of(*make_mixer(agreed_.layout, options_, 0), options_)
                      : shape_of(*ready.mixer, options_);
  ready.link = open(ready.shape);
  if (!waits) return ready;
  return wait(std::move(ready));
}

std::optional<WorkerParts> LinkBuilder::make_again(Link link) {
  WorkerParts ready;
  ready.events = events_;
  ready.shape = shape_of(*make_mixer(agreed_.layout, options_, 0), options_);
  ready.link = std::move(link);
  return wait(std::move(ready));
}

std::optional<WorkerParts> LinkBuilder::wait(WorkerParts ready) {
  ready.offer =
      members_->wait_for_seat([] { mpi::notify_launcher(mpi::LauncherNote::training_began); });
  if (ready.offer) return ready;
  leave();
  return std::nullopt;
}

void LinkBuilder::leave() {
  const bool leaves = mpi::asked_to_leave();
  if (leaves || group_.some_are_gone() || members_->some_are_missing())
    group_.disable_collectives();
}

/// A run that has not grown keeps the schedule that all have agreed on.
ResolvedTopology LinkBuilder::wired() const {
  if (!members_ || members_->map().entered() == 0)
    return {agreed_.schedule, {options_.weights, options_.lazy_weights, {}}};
  return agreed_.wiring.of(members_->map().seats(), options_);
}

int LinkBuilder::seat(const WorkerParts& ready) const {
  return ready.offer ? ready.offer->seat : group_.rank();
}

void LinkBuilder::fill(WorkerParts& ready) {
  ready.mixer = make_mixer(agreed_.layout, options_, seat(ready));
  const bool passes_mass = options_.algorithm.traits().topology.divides();
  if (ready.offer) members_->enter(std::max(ready.offer->growth, members_->map().past_growths()));
  const ResolvedTopology wired = this->wired();
  ready.plan = std::make_shared<RoundPlan>(wired.schedule, seat(ready), wired.weights.rule,
                                           wired.weights.lazy, passes_mass);
  edges_->set(ready.plan);
}

Link LinkBuilder::open(const PayloadShape& shape) {
  ExchangeOptions exchange = exchange_options(options_);
  exchange.observer = events_;
  if (members_) {
    members_->watch(options_.suspect_after.value_or(suspect_after_at_first),
                    rounds_per_combination(options_));
    exchange.is_replaced = [members = members_](int rank) {
      return members->map().is_replaced(rank);
    };
    exchange.number_of = [members = members_](int rank) { return members->map().number_of(rank); };
  }
  const bool plain = options_.codec.kind == codec::Kind::identity;
  Link link = open_link(group_.everyone(), shape, plain, edges_of(edges_), std::move(exchange),
                        options_.accelerator);
  return members_ ? exchange::seated(std::move(link), members_) : std::move(link);
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

void check_for_spares(const Group& group, const WorkerOptions& options) {
  if (group.spares() == 0) return;
  const algorithm::RuleTraits& traits = options.algorithm.traits();
  require(traits.topology.scope != algorithm::Scope::everybody && traits.timing.average_every == 0,
          ErrorKind::argument,
          "Worker: {} spares with algorithm {}, which averages over all workers and ends when one "
          "is lost; leave the spares out or take a rule that averages with neighbors",
          group.spares(), traits.name);
  require(!options.accelerator, ErrorKind::argument,
          "Worker: {} spares with tensors on a device; spares are for tensors in host memory, "
          "leave them out",
          group.spares());
}

}  // namespace fast::worker
