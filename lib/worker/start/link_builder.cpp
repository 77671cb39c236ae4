#include "worker/start/link_builder.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/mpi/environment.hpp>
#include <fast/worker/worker.hpp>

#include "combine/accelerator.hpp"
#include "combine/device_mixer.hpp"
#include "combine/host_mixer.hpp"
#include "core/leak_until_exit.hpp"
#include "exchange/group_impl.hpp"
#include "exchange/open_coordinator.hpp"
#include "exchange/seats/seated_link.hpp"
#include "membership/peer_state.hpp"
#include "mpi/launcher.hpp"
#include "worker/start/startup.hpp"

namespace fast::worker {

// How workers reach each other some or all of whose tensors are on devices.

namespace {

constexpr std::size_t short_proof = 256, long_proof = std::size_t{4} << 20;
constexpr Seconds longest_proof{20};

std::byte proof_value(int rank, std::size_t pass, std::size_t place) {
  return static_cast<std::byte>((static_cast<std::size_t>(rank) * 31 + pass * 7 + place) % 251);
}

/// The first worker after `rank` on another host.
int partner_of(int rank, const std::vector<int>& hosts) {
  const auto size = static_cast<int>(hosts.size());
  int partner = rank;
  do {
    partner = (partner + 1) % size;
  } while (hosts[static_cast<std::size_t>(partner)] == hosts[static_cast<std::size_t>(rank)]);
  return partner;
}

class DeviceLink {
 public:
  DeviceLink(const Group& group, std::size_t part_bytes, const ExchangeOptions& exchange,
             Accelerator& accelerator)
      : group_(group),
        hosts_(group.hosts()),
        exchange_(exchange),
        accelerator_(accelerator),
        deadline_(exchange.deadline),
        region_(accelerator.share(group, part_bytes, deadline_)) {}

  DeviceRegion run(bool plain) {
    if (!shared()) return {};
    log_unmapped();
    const bool maps_all = all_are(maps_host());
    if (several_hosts()) read_by_mpi(plain, maps_all);
    region_.mapped = maps_all && !several_hosts();
    region_.everywhere = region_.mapped || (plain && maps_all && region_.reads);
    return std::move(region_);
  }

 private:
  bool is_here(std::size_t worker) const {
    return hosts_[worker] == hosts_[static_cast<std::size_t>(group_.rank())];
  }
  bool several_hosts() const {
    return std::ranges::any_of(hosts_, [&](int host) { return host != hosts_[0]; });
  }
  bool shared() const { return all_are(!region_.parts.empty()); }
  bool all_are(bool mine) const {
    const auto all = group_.all_gather(mine ? "yes" : "no", deadline_, "Worker: device memory");
    return std::ranges::count(all, "yes") == group_.size();
  }
  bool maps_host() const {
    for (std::size_t w = 0; w < region_.parts.size(); ++w) {
      if (region_.parts[w] == nullptr && is_here(w)) return false;
    }
    return true;
  }
  void log(const std::string& text) const {
    if (exchange_.log) exchange_.log(LogLevel::info, text);
  }

  void log_unmapped() const {
    for (std::size_t w = 0; w < region_.why_not.size(); ++w) {
      if (region_.why_not[w].empty() || !is_here(w)) continue;
      log(fmt::format("worker {}: weights of worker {} come by the host: {}", group_.rank(), w,
                      region_.why_not[w]));
    }
  }

  void read_by_mpi(bool plain, bool maps_all) {
    std::string why_not = plain ? "" : "messages are coded";
    if (!maps_all) why_not = "not all workers of a host read each other's device memory";
    why_not = common(why_not.empty() ? why_not_asked() : why_not);
    if (why_not.empty()) {
      region_.reads =
          GroupImpl::of(group_).expose(region_.parts[static_cast<std::size_t>(group_.rank())].get(),
                                       region_.part_bytes, region_.owner, deadline_);
      why_not = common(region_.reads ? why_not_proved() : "this group has no such reads");
    }
    if (!why_not.empty()) region_.reads.reset();
    if (group_.rank() != 0) return;
    log(why_not.empty()
            ? "weights go from device to device between hosts (MPI)"
            : fmt::format("weights go through the hosts' memory between hosts: {}", why_not));
  }

  /// The first worker's reason, on all of them.
  std::string common(const std::string& mine) const {
    const auto all = group_.all_gather(mine, deadline_, "Worker: device memory by MPI");
    const auto first = std::ranges::find_if(all, [](const auto& why) { return !why.empty(); });
    return first == all.end() ? "" : *first;
  }

  std::string why_not_asked() const {
    if (exchange_.remote_path == RemotePathChoice::two_sided) return "messages were asked for";
    if (exchange_.staleness > 0)
      return "at staleness above 0 slots are written while they are read";
    if (exchange_.remote_bytes_per_s > 0) return "a cap on bytes to other hosts was asked for";
    return accelerator_.why_not_by_mpi();
  }

  /// A worker of another host is read twice, what it wrote each time.
  std::string why_not_proved() const {
    std::string why_not;
    for (const std::size_t pass : {std::size_t{0}, std::size_t{1}}) {
      const std::size_t bytes = std::min(pass == 0 ? short_proof : long_proof, region_.part_bytes);
      try {
        write(pass, bytes);
      } catch (const Error& error) {
        why_not = error.what();
      }
      group_.barrier(deadline_, "Worker: writing a proof to device memory");
      try {
        if (why_not.empty()) why_not = check(pass, bytes);
      } catch (const Error& error) {
        why_not = error.what();
      }
      group_.barrier(deadline_, "Worker: proving reads of device memory by MPI");
    }
    return why_not;
  }

  void write(std::size_t pass, std::size_t bytes) const {
    std::vector<std::byte> proof(bytes);
    for (std::size_t i = 0; i < bytes; ++i) proof[i] = proof_value(group_.rank(), pass, i);
    DeviceWork& work = *accelerator_.work();
    work.copy(region_.parts[static_cast<std::size_t>(group_.rank())].get(), proof.data(), bytes);
    work.settle();
  }

  std::string check(std::size_t pass, std::size_t bytes) const {
    const int partner = partner_of(group_.rank(), hosts_);
    DeviceWork& work = *accelerator_.work();
    auto room = work.allocate(bytes);
    const Deadline patience(longest_proof);
    if (!region_.reads->read(partner, 0, room.get(), bytes, [&] { return !patience.expired(); })) {
      leak_until_exit(std::pair(std::move(room), region_.reads));  // MPI may still write to it
      return fmt::format("worker {}'s memory was not read in {:.0f} s", partner,
                         longest_proof.count());
    }
    std::vector<std::byte> found(bytes);
    work.copy(found.data(), room.get(), bytes);
    work.settle();
    for (std::size_t i = 0; i < bytes; ++i) {
      if (found[i] == proof_value(partner, pass, i)) continue;
      return fmt::format("byte {} read from worker {}'s device is {}, {} was written", i, partner,
                         std::to_integer<int>(found[i]),
                         std::to_integer<int>(proof_value(partner, pass, i)));
    }
    return {};
  }

  const Group& group_;
  std::vector<int> hosts_;
  const ExchangeOptions& exchange_;
  Accelerator& accelerator_;
  Deadline deadline_;
  DeviceRegion region_;
};

constexpr auto memory_of_worker = "Worker: memory for its state and messages";

/// Collective. As Group::open() for payloads of that shape. `plain`: messages are not coded. Where
/// all workers are on devices, messages stay there as far as they read each other's: on one host as
/// their accelerators say, between hosts by an MPI that says it can, which is proved first.
/// `message`, `completed`: see Staging.
Link open_link(const Group& group, const PayloadShape& shape, bool plain, Staging::Weights weights,
               EdgePlan plan, ExchangeOptions exchange,
               const std::shared_ptr<Accelerator>& accelerator,
               std::shared_ptr<codec::HostMessage> message,
               std::function<void(std::int64_t)> completed) {
  const auto devices = group.all_gather(accelerator ? "device" : "host",
                                        Deadline(exchange.deadline), "Worker: comparing devices");
  const auto on_devices = std::ranges::count(devices, "device");
  const auto together = [&](const std::function<void()>& part) {
    agree(group, Deadline(exchange.deadline), memory_of_worker, part);
  };
  if (!accelerator) {
    Link link = group.open(shape, std::move(plan), exchange);
    if (on_devices > 0) together([] {});
    return link;
  }
  Staging staging{.shape = shape,
                  .work = accelerator->work(),
                  .deadline = exchange.deadline,
                  .exact = exchange.staleness == 0,
                  .weights = weights,
                  .message = std::move(message),
                  .plan = plan,
                  .completed = std::move(completed),
                  .is_gone = [group, is_replaced = exchange.is_replaced](int worker) {
                    return (is_replaced && is_replaced(worker)) ||
                           std::ranges::count(group.died(), worker) > 0;
                  }};
  if (staging.message) staging.shape.vector_bytes = staging.message->packed_bytes;
  if (on_devices == group.size()) {
    DeviceRegion& region = staging.region;
    region = DeviceLink(group, staged_bytes(staging), exchange, *accelerator).run(plain);
    DeviceWork& work = *accelerator->work();
    for (std::shared_ptr<std::byte>& part : region.parts)
      if (part) part = std::static_pointer_cast<std::byte>(work.hold(std::move(part), 0));
    if (region.owner) region.owner = work.hold(std::move(region.owner), region.part_bytes);
  }
  staging.stop = std::stop_source();
  exchange.stop = staging.stop.get_token();
  exchange.payloads = 2;
  Link link = group.open(host_shape(shape, staging.region), std::move(plan), exchange);
  together([&] {
    if (staging.region.mapped) link.peers = mapped_peers(std::move(link.peers), staging);
    link.exchange = staged_exchange(std::move(link.exchange), std::move(staging));
  });
  return link;
}

std::unique_ptr<combine::Mixer> make_mixer(ParameterLayout layout, const WorkerOptions& options,
                                           int rank, std::shared_ptr<codec::HostMessage> message) {
  codec::Options codec = options.codec;
  codec.seed = mix_seed(codec.seed, static_cast<std::uint64_t>(rank));
  if (options.accelerator) {
    return std::make_unique<combine::DeviceMixer>(std::move(layout), options.algorithm.make(),
                                                  codec, options.accelerator, std::move(message));
  }
  return std::make_unique<combine::HostMixer>(std::move(layout), options.algorithm.make(), codec,
                                              sends_sums(options.algorithm.traits(), options),
                                              options.mixing_threads);
}

PayloadShape shape_of(combine::Mixer& mixer, const WorkerOptions& options) {
  const algorithm::RuleTraits& traits = options.algorithm.traits();
  const bool weights_apart =
      traits.messages.weights_apart || options.codec.kind != codec::Kind::identity;
  return {mixer.coded().size_bytes(), traits.messages.vectors, mixer.scalars().count(),
          weights_apart ? mixer.layout().size_bytes() : 0};
}

/// Null: nobody codes messages, or the device does.
std::shared_ptr<codec::HostMessage> host_message(const ParameterLayout& layout,
                                                 const WorkerOptions& options) {
  if (!options.accelerator || !is_coded_on_host(layout, options)) return nullptr;
  const codec::CodedLayout coded(layout, options.codec.kind);
  const PayloadShape shape{coded.size_bytes(), options.algorithm.traits().messages.vectors};
  return std::make_shared<codec::HostMessage>(codec::HostMessage{
      coded, layout.size_bytes(), shape.stride_bytes(), AlignedBuffer(shape.vectors_bytes())});
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
  agree(group_.everyone(), Deadline(options_.deadline), memory_of_worker, [&] {
    message_ = host_message(agreed_.layout, options_);
    if (!waits) fill(ready);
    ready.shape = waits ? shape_of(*make_mixer(agreed_.layout, options_, 0, message_), options_)
                        : shape_of(*ready.mixer, options_);
  });
  ready.link = open(ready.shape);
  log_memory();
  if (!waits) return ready;
  return wait(std::move(ready));
}

/// Neighbors that are not mapped take more, from the first round on.
void LinkBuilder::log_memory() const {
  if (!options_.accelerator || !options_.log || group_.rank() != 0) return;
  const auto held = static_cast<double>(options_.accelerator->work()->held());
  const auto model = static_cast<double>(agreed_.layout.size_bytes());
  options_.log(LogLevel::info,
               fmt::format("worker 0: the exchange holds {:.1f} MB of the device, {:.1f} times the "
                           "model of {:.1f} MB",
                           held / 1e6, held / model, model / 1e6));
}

std::optional<WorkerParts> LinkBuilder::make_again(Link link) {
  WorkerParts ready;
  ready.events = events_;
  ready.shape = shape_of(*make_mixer(agreed_.layout, options_, 0, message_), options_);
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
  ready.mixer = make_mixer(agreed_.layout, options_, seat(ready), message_);
  const algorithm::RuleTraits& traits = options_.algorithm.traits();
  const bool passes_mass = traits.topology.divides();
  if (ready.offer)
    members_->map().enter(std::max(ready.offer->growth, members_->map().past_growths()));
  const ResolvedTopology wired = this->wired();
  ready.plan = std::make_shared<RoundPlan>(
      wired.schedule, seat(ready), wired.weights.rule, wired.weights.lazy, passes_mass,
      ready.mixer->coded().size_bytes(), traits.messages.by_edge ? traits.messages.vectors : 0);
  edges_->set(ready.plan);
}

Link LinkBuilder::open(const PayloadShape& shape) {
  ExchangeOptions exchange = exchange_options(options_);
  exchange.observer = events_;
  if (members_) {
    members_->watch(options_.suspect_after.value_or(suspect_after_at_first),
                    rounds_per_combination(options_), options_.mix_times);
    exchange.is_replaced = [members = members_](int rank) {
      return members->map().is_replaced(rank);
    };
    exchange.number_of = [members = members_](int rank) { return members->map().number_of(rank); };
  }
  const bool plain = options_.codec.kind == codec::Kind::identity;
  const bool beside = options_.algorithm.traits().messages.weights_apart;
  const auto weights = beside  ? Staging::Weights::beside
                       : plain ? Staging::Weights::vector
                               : Staging::Weights::at_the_end;
  const bool on_device = options_.accelerator != nullptr;
  std::function<void(std::int64_t)> completed;
  if (members_ && on_device) {
    completed = [members = members_](std::int64_t rounds) {
      members->map().records().set_progress(rounds);
    };
  }
  Link link = open_link(group_.everyone(), shape, plain, weights, edges_of(edges_),
                        std::move(exchange), options_.accelerator, message_, std::move(completed));
  return members_ ? exchange::seated(std::move(link), members_, !on_device) : std::move(link);
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
}

}  // namespace fast::worker
