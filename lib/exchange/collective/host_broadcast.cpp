#include "exchange/collective/host_broadcast.hpp"

#include <algorithm>
#include <cstring>
#include <fast/core/error.hpp>
#include <utility>
#include <vector>

#include "core/numbers.hpp"
#include "exchange/group_impl.hpp"

namespace fast::exchange {
namespace {

constexpr std::size_t least_part_bytes = 1024, first_part_bytes = std::size_t{64} << 10,
                      most_part_bytes = std::size_t{8} << 20;
/// A part takes about so long, and a small share of the deadline at most.
constexpr Seconds usual_part_time{0.25};
constexpr double share_of_deadline = 0.05;

Seconds part_time(const BroadcastOptions& options) {
  return std::min(usual_part_time, share_of_deadline * options.deadline);
}

std::size_t first_part(const BroadcastOptions& options) {
  if (options.bytes_per_s <= 0) return first_part_bytes;
  const double bytes = options.bytes_per_s * part_time(options).count();
  return std::clamp(saturate<std::size_t>(bytes), least_part_bytes, first_part_bytes);
}

Group part_of(const Group& group, int color, const Deadline& deadline) {
  return GroupImpl::group(GroupImpl::of(group).subgroup(color, deadline));
}

}  // namespace

HostBroadcast::HostBroadcast(Group group, BroadcastOptions options)
    : group_(std::move(group)), options_(options), part_bytes_(first_part(options)) {
  const std::vector<int> hosts = group_.hosts();
  leader_ = hosts[static_cast<std::size_t>(group_.rank())];
  const auto here = std::ranges::count(hosts, hosts.front());
  if (here == group_.size()) return;
  const Deadline deadline(options_.deadline);
  hosts_of_leaders_ = part_of(group_, leads() ? 0 : 1, deadline);
  own_host_ = part_of(group_, leader_, deadline);
}

void HostBroadcast::send(std::span<std::byte> bytes, bool everyone) {
  if (!everyone && !has_several_hosts()) return;
  const bool receives = group_.rank() != 0 && (everyone || leads());
  std::size_t done = 0;
  for (bool more = true; more;) {
    const Clock::time_point began = Clock::now();
    const std::string_view mine = next_of_first(bytes, done);
    const Part part = exchange(mine, everyone);
    more = !part.is_last;
    const std::size_t count = group_.rank() == 0 ? mine.size() : part.bytes.size();
    require(!receives || count <= bytes.size() - done, ErrorKind::mismatch,
            "{}: worker 0 sends more than the {} bytes of worker {}; give as many on all workers",
            options_.purpose, bytes.size(), group_.rank());
    if (receives && count > 0) std::memcpy(bytes.data() + done, part.bytes.data(), count);
    done += count;
    if (group_.rank() == 0 && more) pace(count, began);
  }
  require(!receives || done == bytes.size(), ErrorKind::mismatch,
          "{}: worker 0 sends {} bytes, worker {} has {}; give as many on all workers",
          options_.purpose, done, group_.rank(), bytes.size());
}

/// Empty at the end, and on all workers but the first.
std::string_view HostBroadcast::next_of_first(std::span<const std::byte> bytes, std::size_t done) {
  if (group_.rank() != 0) return {};
  const std::size_t count = std::min(part_bytes_, bytes.size() - done);
  return {reinterpret_cast<const char*>(bytes.data()) + done, count};
}

/// Leaders first, then the workers of each host. An empty part is the end.
HostBroadcast::Part HostBroadcast::exchange(std::string_view mine, bool everyone) {
  const Deadline deadline(options_.deadline);
  const auto first_of = [&](const Group& group, std::string_view given) {
    return std::move(group.all_gather(given, deadline, options_.purpose).front());
  };
  if (!has_several_hosts()) {
    Part part{first_of(group_, mine)};
    part.is_last = part.bytes.empty();
    return part;
  }
  Part part;
  if (leads()) part.bytes = first_of(*hosts_of_leaders_, mine);
  const std::string_view sign = part.bytes.empty() ? "" : "+";
  std::string told = first_of(*own_host_, everyone ? std::string_view(part.bytes) : sign);
  part.is_last = told.empty();
  if (!leads() && everyone) part.bytes = std::move(told);
  return part;
}

/// Within the limit of the rate. Then chooses the size of the next part.
void HostBroadcast::pace(std::size_t bytes, Clock::time_point began) {
  const double passed_s = Seconds(Clock::now() - began).count();
  double took_s = passed_s;
  if (options_.bytes_per_s > 0 && has_several_hosts()) {
    took_s = std::max(took_s, static_cast<double>(bytes) / options_.bytes_per_s);
    sleep_saturated(Seconds(took_s - passed_s));
  }
  const double wanted_s = part_time(options_).count();
  if (took_s < wanted_s / 2) part_bytes_ *= 2;
  if (took_s > wanted_s) part_bytes_ /= 2;
  part_bytes_ = std::clamp(part_bytes_, least_part_bytes, most_part_bytes);
}

}  // namespace fast::exchange
