#include "worker/start/startup_config.hpp"

#define XXH_INLINE_ALL
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <cstring>
#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <fast/worker/worker.hpp>
#include <optional>
#include <set>
#include <string_view>
#include <utility>
#include <vector>

#include "combine/accelerator.hpp"
#include "core/contains.hpp"
#include "exchange/collective/host_broadcast.hpp"
#include "exchange/group_impl.hpp"
#include "topology/hosts.hpp"
#include "worker/site_exchange.hpp"
#include "worker/start/link_builder.hpp"
#include "worker/start/robust_start.hpp"
#include "worker/start/startup.hpp"

namespace fast::worker {
namespace {

// Tensors of a model that take part in no round. Those that the program lists as frozen become
// equal on all workers, or must be. Others may differ: the log names those that do.

using Hashes = std::vector<std::uint64_t>;
using HashesOfRanks = std::vector<Hashes>;

constexpr auto comparing = "Worker: comparing tensors that take no part in rounds";
constexpr auto sending = "Worker: sending worker 0's frozen tensors";
constexpr std::size_t most_named = 5;

bool is_here(const TensorView& view, const WorkerOptions& options) {
  const bool on_device = options.accelerator && view.device == options.accelerator->device();
  return view.device == Device{} || on_device;
}

bool is_readable(const TensorView& view, const WorkerOptions& options) {
  return view.data != nullptr && view.is_contiguous() && is_here(view, options);
}

/// The bytes of a tensor, in memory of the host: its own, or a copy of those of a device.
class HostCopy {
 public:
  HostCopy(const TensorView& view, const WorkerOptions& options)
      : data_(static_cast<std::byte*>(view.data)), size_(view.size_bytes()) {
    if (view.device == Device{}) return;
    work_ = options.accelerator->work();
    copy_ = AlignedBuffer(size_);
    work_->copy(copy_.data(), data_, size_);
    work_->settle();
  }
  std::span<std::byte> bytes() const { return {work_ ? copy_.data() : data_, size_}; }
  /// Bytes that were written become the tensor's.
  void write_back() {
    if (!work_) return;
    work_->copy(data_, copy_.data(), size_);
    work_->settle();
  }

 private:
  std::byte* data_;
  std::size_t size_;
  std::shared_ptr<DeviceWork> work_;  ///< null: the tensor is in host memory
  AlignedBuffer copy_;
};

std::uint64_t hash_of(const TensorView& view, const WorkerOptions& options) {
  const std::string text = describe(view);
  const std::uint64_t of_form = XXH3_64bits(text.data(), text.size());
  if (!is_readable(view, options) || view.size_bytes() == 0) return of_form;
  const HostCopy copy(view, options);
  return XXH3_64bits_withSeed(copy.bytes().data(), copy.bytes().size(), of_form);
}

Hashes hashes_of(const std::vector<TensorView>& views, const WorkerOptions& options) {
  Hashes hashes;
  for (const TensorView& view : views) hashes.push_back(hash_of(view, options));
  return hashes;
}

std::string bytes_of(const Hashes& hashes) {
  return {reinterpret_cast<const char*>(hashes.data()), hashes.size() * sizeof(std::uint64_t)};
}

Hashes hashes_in(const std::string& bytes) {
  Hashes hashes(bytes.size() / sizeof(std::uint64_t));
  if (!bytes.empty()) std::memcpy(hashes.data(), bytes.data(), bytes.size());
  return hashes;
}

/// Collective. By rank; empty if all ranks have the same.
HashesOfRanks differing(const Group& everyone, const Hashes& own, Seconds deadline) {
  const std::string bytes = bytes_of(own);
  const Hashes digest{XXH3_64bits(bytes.data(), bytes.size())};
  const auto digests = everyone.all_gather(bytes_of(digest), Deadline(deadline), comparing);
  if (std::ranges::count(digests, digests.front()) == everyone.size()) return {};
  HashesOfRanks all;
  for (const auto& one : everyone.all_gather(bytes, Deadline(deadline), comparing))
    all.push_back(hashes_in(one));
  return all;
}

/// The first rank whose tensor is another one than worker 0's; -1: there is none.
int first_other(const HashesOfRanks& all, std::size_t tensor) {
  const auto of = [tensor](const Hashes& hashes) {
    return tensor < hashes.size() ? std::optional(hashes[tensor]) : std::nullopt;
  };
  const auto other = std::ranges::find_if(
      all, [&](const Hashes& hashes) { return of(hashes) != of(all.front()); });
  return other == all.end() ? -1 : static_cast<int>(other - all.begin());
}

std::vector<std::size_t> tensors_that_differ(const HashesOfRanks& all, std::size_t count) {
  std::vector<std::size_t> tensors;
  for (std::size_t t = 0; t < count; ++t) {
    if (first_other(all, t) >= 0) tensors.push_back(t);
  }
  return tensors;
}

/// "fc1.weight" [120x400] f32 (worker 2), "fc1.bias" [120] f32 (worker 2) and 7 more
std::string names_of(const std::vector<TensorView>& views, const std::vector<std::size_t>& tensors,
                     const HashesOfRanks& all) {
  std::vector<std::string> names;
  for (const std::size_t t : tensors) {
    if (names.size() < most_named)
      names.push_back(fmt::format("{} (worker {})", describe(views[t]), first_other(all, t)));
  }
  const std::size_t more = tensors.size() - names.size();
  return fmt::format("{}{}", fmt::join(names, ", "),
                     more > 0 ? fmt::format(" and {} more", more) : std::string());
}

/// Collective.
void send_to_all(const Group& everyone, const WorkerOptions& options, const TensorView& view) {
  HostCopy copy(view, options);
  exchange::HostBroadcast broadcast(everyone,
                                    {options.deadline, options.remote_bytes_per_s, sending});
  broadcast.to_all(copy.bytes());
  if (everyone.rank() != 0) copy.write_back();
}

void make_equal(const Group& everyone, const WorkerOptions& options, const HashesOfRanks& all) {
  const std::vector<TensorView>& frozen = options.frozen;
  const std::vector<std::size_t> tensors = tensors_that_differ(all, frozen.size());
  const std::string names = names_of(frozen, tensors, all);
  if (options.initial != Initial::broadcast)
    throw Error(ErrorKind::mismatch,
                fmt::format("Worker: frozen tensors differ from worker 0's: {}; load the same "
                            "weights on all workers, choose the initial weights broadcast, or "
                            "leave these tensors out of WorkerOptions::frozen",
                            names),
                true);
  for (const std::size_t t : tensors) send_to_all(everyone, options, frozen[t]);
  if (everyone.rank() == 0 && options.log)
    options.log(
        LogLevel::info,
        fmt::format("frozen tensors differed from worker 0's, and are worker 0's now: {}", names));
}

void warn_of(const WorkerOptions& options, const std::vector<TensorView>& left_out,
             const HashesOfRanks& all) {
  const std::vector<std::size_t> tensors = tensors_that_differ(all, left_out.size());
  if (!options.log) return;
  options.log(LogLevel::warning,
              fmt::format("tensors that take no part in rounds differ from worker 0's and stay as "
                          "they are: {}; list them in WorkerOptions::frozen to have worker 0's on "
                          "all workers, or leave it so if they differ on purpose",
                          tensors.empty() ? "other tensors" : names_of(left_out, tensors, all)));
}

/// Throws Error(argument) if a tensor of WorkerOptions::frozen cannot be read here, or is one of
/// `layout`, whose tensors take part.
void check_frozen(const WorkerOptions& options, const ParameterLayout& layout) {
  std::set<const void*> taking_part;
  for (const TensorView& view : layout.views()) taking_part.insert(view.data);
  for (const TensorView& view : options.frozen) {
    require(is_readable(view, options), ErrorKind::argument,
            "Worker: frozen tensor {} in {} cannot be compared; contiguous memory of the host, or "
            "of the accelerator's device, is required",
            describe(view), describe(view.device));
    require(!taking_part.contains(view.data), ErrorKind::argument,
            "Worker: tensor {} is listed in WorkerOptions::frozen and takes part in rounds; take "
            "it out of the list, or out of the parameters by WorkerOptions::participates",
            describe(view));
  }
}

/// Those of `parameters` that neither take part nor are listed as frozen.
std::vector<TensorView> left_out(const std::vector<TensorView>& parameters,
                                 const WorkerOptions& options) {
  std::set<const void*> listed;
  for (const TensorView& view : options.frozen) listed.insert(view.data);
  std::vector<TensorView> others;
  for (const TensorView& view : parameters) {
    const bool takes_part =
        is_floating(view.dtype) && (!options.participates || options.participates(view));
    if (!takes_part && !listed.contains(view.data)) others.push_back(view);
  }
  return others;
}

/// Collective, spares included. Compares the tensors of all ranks by hashes of their bytes. Frozen
/// ones become equal, or are an error, as WorkerOptions::frozen says. Worker 0 logs one warning
/// that names those of `left_out` that differ.
void compare_unexchanged(const Group& everyone, const WorkerOptions& options,
                         const std::vector<TensorView>& left_out) {
  Hashes frozen, others;
  agree(everyone, Deadline(options.deadline), comparing, [&] {
    frozen = hashes_of(options.frozen, options);
    others = hashes_of(left_out, options);
  });
  const HashesOfRanks of_frozen = differing(everyone, frozen, options.deadline);
  if (!of_frozen.empty()) make_equal(everyone, options, of_frozen);
  const HashesOfRanks of_others = differing(everyone, others, options.deadline);
  if (!of_others.empty() && everyone.rank() == 0) warn_of(options, left_out, of_others);
}

/// The sums over all workers are of f32 and f64. What 16 bits take of a message that travels on is
/// missing at the end.
void check_for_halves(const ParameterLayout& layout, const algorithm::RuleTraits& algorithm) {
  const bool averages_all =
      algorithm.topology.scope == algorithm::Scope::everybody || algorithm.timing.average_every > 0;
  for (const TensorView& view : layout.views()) {
    require(
        !algorithm.messages.by_edge || size_bytes(view.dtype) >= sizeof(float), ErrorKind::argument,
        "Worker: algorithm {} passes messages of f32 and f64 weights on, not {}; choose another "
        "algorithm, or hand over f32 copies that the optimizer changes",
        algorithm.name, describe(view));
    require(!averages_all || size_bytes(view.dtype) >= sizeof(float), ErrorKind::argument,
            "Worker: algorithm {} averages f32 and f64 weights over all workers, not {}; choose "
            "another algorithm, or hand over f32 copies that the optimizer changes",
            algorithm.name, describe(view));
  }
}

/// Of the tensors that take part. Throws if they or the options do not fit their device or each
/// other.
ParameterLayout layout_of(std::vector<TensorView> parameters, const WorkerOptions& options) {
  const Device device = options.accelerator ? options.accelerator->device() : Device{};
  ParameterLayout layout(participating(std::move(parameters), options), device);
  if (options.accelerator) check_for_device(layout, options);
  check_for_halves(layout, options.algorithm.traits());
  return layout;
}

/// A rule that takes what is added to the weights once.
void check_rule_of_site(const WorkerOptions& options) {
  constexpr std::string_view known[] = {"none",  "awc",        "atc",      "pairwise",
                                        "local", "gossip_pga", "allreduce"};
  const std::string_view rule = options.algorithm.traits().name;
  require(contains(known, rule), ErrorKind::argument,
          "Worker: algorithm {} in a site: it would take what other sites have added for a step, "
          "and add it again; take one of {}",
          rule, fmt::join(known, ", "));
}

void check_for_sites(const Group& group, const WorkerOptions& options) {
  if (!options.site) return;
  require(
      group.spares() == 0, ErrorKind::argument,
      "Worker: a site with {} spares, and its ranks exchange with each other by calls of all of "
      "them; start no spares",
      group.spares());
  check_rule_of_site(options);
  require(options.staleness == 0 || group.size() == 1, ErrorKind::argument,
          "Worker: staleness {} in a site of several ranks, which make exchanges together; take "
          "staleness 0",
          options.staleness);
  require(!options.accelerator, ErrorKind::argument,
          "Worker: a site whose tensors are on a device; hand over a mirror in host memory");
}

/// Options that need the whole model, which no rank of a replica of several has.
void check_for_parts(const Group& group, const WorkerOptions& options) {
  if (!GroupImpl::of(group).part()) return;
  const auto refuse = [](bool given, std::string_view what, std::string_view reason) {
    require(!given, ErrorKind::argument,
            "Worker: {} with replicas: {}; each rank has a part of the model, so "
            "choose another one",
            what, reason);
  };
  refuse(options.algorithm.traits().name == "event_triggered", "algorithm event_triggered",
         "it compares the distance that the whole model has moved with a threshold");
  refuse(options.not_finite == NotFinite::heal, "on_nonfinite heal",
         "one rank would take back its part of a step, and the others of the replica would keep "
         "theirs");
  refuse(options.robust == Robust::clip, "robust clip",
         "it compares the distances of whole models");
  refuse(options.robust == Robust::trimmed_mean, "robust trimmed_mean",
         "a publication that is not finite is left out as a whole");
  refuse(options.site != nullptr, "a site",
         "each part of the model would join as a site of its own");
}

/// The part of each rank alone. Returns what the user should know.
std::string check_own_part(const Group& group, std::optional<StartupConfig>& agreed,
                           const TopologyRule& rule, std::vector<TensorView> parameters,
                           WorkerOptions options) {
  check_options(options, options.algorithm.traits());
  check_for_robust(options);
  check_for_spares(group, options);
  check_for_parts(group, options);
  require(!options.on_mean.call || group.spares() > 0 || options.on_mean.worker < group.size(),
          ErrorKind::argument, "Worker: on_mean of worker {}, of {} workers",
          options.on_mean.worker, group.size());
  check_for_sites(group, options);
  TopologyConfig wiring{rule, options.weights, options.lazy_weights};
  ResolvedTopology wired = wiring.of(group.size(), options);
  options.weights = wired.weights.rule;
  options.lazy_weights = wired.weights.lazy;
  wired.check_row(group.rank() < group.size() ? group.rank() : 0);
  std::vector<TensorView> unexchanged = left_out(parameters, options);
  ParameterLayout layout = layout_of(std::move(parameters), options);
  check_frozen(options, layout);
  agreed.emplace(StartupConfig{std::move(options), std::move(wiring), std::move(layout),
                               std::move(wired.schedule), std::move(unexchanged)});
  return wired.weights.notice;
}

}  // namespace

void check_shards(const Schedule& schedule, const WorkerOptions& options) {
  if (shards_of(schedule.at(0)) == nullptr) return;
  require(options.codec.kind == codec::Kind::identity, ErrorKind::topology,
          "Worker: codec {} on {}: shards travel as they are; choose the codec identity, or "
          "hierarchical_one_peer",
          codec::name(options.codec), schedule.name());
  require(options.robust == Robust::none, ErrorKind::topology,
          "Worker: robust averaging on {}: it compares whole models, and shards are parts; choose "
          "hierarchical_one_peer",
          schedule.name());
}

StartupConfig agree_on_start(const Group& group, const TopologyRule& rule,
                             std::vector<TensorView> parameters, WorkerOptions options) {
  const Deadline deadline(options.deadline);
  const Group everyone = group.everyone();
  std::optional<StartupConfig> agreed;
  std::string notice, of_robust;
  agree(everyone, deadline, "Worker: starting up", [&] {
    notice = check_own_part(group, agreed, rule, std::move(parameters), std::move(options));
  });
  const WorkerOptions& checked = agreed->options;
  require_agreement(
      everyone, fingerprint(agreed->layout, checked.algorithm.traits(), agreed->schedule, checked),
      deadline);
  if (checked.robust != Robust::none) {
    agree(everyone, deadline, "Worker: starting up",
          [&] { of_robust = robust_notice(agreed->schedule, checked.robust); });
  }
  compare_unexchanged(everyone, checked, agreed->unexchanged);
  for (const std::string& line : {notice, of_robust}) {
    if (!line.empty() && group.rank() == 0 && checked.log) checked.log(LogLevel::warning, line);
  }
  return std::move(*agreed);
}

}  // namespace fast::worker
