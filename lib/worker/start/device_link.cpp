#include "worker/start/device_link.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <fast/core/error.hpp>

#include "combine/accelerator.hpp"
#include "core/leak_until_exit.hpp"
#include "exchange/group_impl.hpp"

namespace fast::worker {
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
  DeviceLink(const Group& group, const PayloadShape& shape, const ExchangeOptions& exchange,
             Accelerator& accelerator)
      : group_(group),
        hosts_(group.hosts()),
        exchange_(exchange),
        accelerator_(accelerator),
        deadline_(exchange.deadline),
        region_(accelerator.share(group, staged_bytes(shape), deadline_)) {}

  DeviceRegion run(bool plain) {
    if (!shared()) return {};
    log_unmapped();
    const bool maps_all = all_are(maps_host());
    if (several_hosts()) read_by_mpi(plain, maps_all);
    region_.everywhere = plain && maps_all && (!several_hosts() || region_.reads);
    return std::move(region_);
  }

 private:
  bool is_here(std::size_t worker) const {
    return hosts_[worker] == hosts_[static_cast<std::size_t>(group_.rank())];
  }
  bool several_hosts() const {
    return std::any_of(hosts_.begin(), hosts_.end(), [&](int host) { return host != hosts_[0]; });
  }
  bool shared() const { return all_are(!region_.parts.empty()); }
  bool all_are(bool mine) const {
    const auto all = group_.all_gather(mine ? "yes" : "no", deadline_, "Worker: device memory");
    return std::count(all.begin(), all.end(), "yes") == group_.size();
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
          GroupImpl::of(group_).expose(region_.parts[static_cast<std::size_t>(group_.rank())],
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
    const auto first =
        std::find_if(all.begin(), all.end(), [](const auto& why) { return !why.empty(); });
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
    work.copy(region_.parts[static_cast<std::size_t>(group_.rank())], proof.data(), bytes);
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

}  // namespace

Link open_link(const Group& group, const PayloadShape& shape, bool plain, EdgePlan plan,
               ExchangeOptions exchange, const std::shared_ptr<Accelerator>& accelerator) {
  const auto devices = group.all_gather(accelerator ? "device" : "host",
                                        Deadline(exchange.deadline), "Worker: comparing devices");
  if (!accelerator) return group.open(shape, std::move(plan), exchange);
  Staging staging{.shape = shape, .work = accelerator->work(), .deadline = exchange.deadline};
  if (std::count(devices.begin(), devices.end(), "device") == group.size()) {
    staging.region = DeviceLink(group, shape, exchange, *accelerator).run(plain);
  }
  staging.stop = std::stop_source();
  exchange.stop = staging.stop.get_token();
  Link link = group.open(host_shape(shape, staging.region), std::move(plan), exchange);
  link.exchange = staged_exchange(std::move(link.exchange), std::move(staging));
  return link;
}

}  // namespace fast::worker
