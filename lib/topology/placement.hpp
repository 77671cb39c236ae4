// Which rank takes which place in a topology, so that neighbors share hosts where they can.
#pragma once

#include <fast/topology/topology.hpp>

#include <cstdint>
#include <vector>

namespace fast {

struct Placement {
  std::vector<int> worker_of_rank;  ///< the place in the topology that each rank takes
  std::int64_t edges = 0;           ///< over a period, each direction counted
  std::int64_t cut_before = 0;      ///< those between hosts when rank r is worker r
  std::int64_t cut_after = 0;
};

/// Places workers on hosts so that few edges lie between hosts. On a grid it tries every block
/// shape, in rows and to and fro, and fills it host by host. It takes the one that cuts the fewest
/// edges between hosts over a period (64 rounds at most), and rank order when nothing cuts fewer.
/// Other graphs are filled host by host in rank order. Schedules that never repeat keep rank order.
/// host_of_rank[r] is any number that differs between hosts (Group::hosts() has them). The function
/// is pure: every rank computes the same. Throws Error(topology) unless host_of_rank has one host a
/// worker.
Placement place(const Schedule& schedule, const std::vector<int>& host_of_rank);

/// The same schedule with ranks for worker numbers: rank r's neighbors are the ranks that stand
/// where those of worker_of_rank[r] are. Names and weights stay.
Schedule placed(const Schedule& schedule, const std::vector<int>& worker_of_rank);

}  // namespace fast
