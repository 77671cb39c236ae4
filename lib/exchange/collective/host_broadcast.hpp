// Worker 0's bytes for all others, in parts. Each host gets them once. Every part has a deadline of
// its own: a slow link that makes progress ends no start.
#pragma once

#include <fast/exchange/group.hpp>

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace fast::exchange {

struct BroadcastOptions {
  Seconds deadline{300};   ///< of a part
  double bytes_per_s = 0;  ///< limit of what worker 0 sends to other hosts; 0: none
  std::string_view purpose = "sending worker 0's bytes";  ///< for the texts of errors
};

class HostBroadcast {
 public:
  /// Collective over `group`, which has no spares.
  HostBroadcast(Group group, BroadcastOptions options);

  bool has_several_hosts() const { return hosts_of_leaders_.has_value(); }
  /// The lowest rank of this worker's host.
  int leader() const { return leader_; }
  bool leads() const { return leader_ == group_.rank(); }

  /// Collective. Worker 0's bytes become those of the leader of each host. The other workers wait
  /// and give no bytes. Throws Error(mismatch) if a leader's bytes are not as many as worker 0's.
  void to_leaders(std::span<std::byte> bytes) { send(bytes, false); }
  /// Collective. They become those of every worker.
  void to_all(std::span<std::byte> bytes) { send(bytes, true); }

 private:
  struct Part {
    std::string bytes;  ///< on workers that get them
    bool is_last = false;
  };

  void send(std::span<std::byte> bytes, bool everyone);
  std::string_view next_of_first(std::span<const std::byte> bytes, std::size_t done);
  Part exchange(std::string_view mine, bool everyone);
  void pace(std::size_t bytes, Clock::time_point began);

  Group group_;
  BroadcastOptions options_;
  int leader_;
  std::optional<Group> hosts_of_leaders_;  ///< the leaders; none on one host alone
  std::optional<Group> own_host_;          ///< the same
  std::size_t part_bytes_;                 ///< of worker 0's next part
};

}  // namespace fast::exchange
