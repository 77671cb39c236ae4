// What the links between the hosts of a run can do, by measurement.
#pragma once

#include <fast/core/deadline.hpp>
#include <fast/mpi/communicator.hpp>

#include <string>
#include <vector>

namespace fast {

/// Two hosts. Rates are in bytes per second.
struct HostPairFigures {
  std::string first, second;  ///< names of the hosts
  double latency_s = 0;       ///< one way: half of the time of an empty message there and back
  double bandwidth = 0;       ///< in each direction, while all their ranks send
};

/// Medians over the measured pairs of hosts. A single host has the figures of two of its ranks.
struct MeasuredLinks {
  double latency_s = 0;         ///< one way
  double lone_bandwidth = 0;    ///< of one rank of a host that sends while the others do not
  double bandwidth = 0;         ///< of a host in each direction, while all its ranks send
  double jitter = 0;            ///< standard deviation of the logarithm of the time of a message
  double memory_bandwidth = 0;  ///< of messages within a host; 0: no host has two ranks
  double seconds = 0;           ///< that the measurement took
  std::vector<HostPairFigures> pairs;  ///< on rank 0
};

struct LinkMeasureOptions {
  /// No further measurement begins after this time. A round is not cut short: the total may be some
  /// times longer on links that are slow for it.
  Seconds budget{10};
  /// The longest time of one round of messages. A host that takes longer is named in the error.
  Seconds answer_within{5};
};

/// Collective. Measures latency, bandwidth and jitter by messages: between pairs of hosts (all
/// pairs, or a sample of them on more than 8 hosts), first with one rank of each, then with all
/// ranks of all hosts at once. Disjoint pairs are measured at the same time. `hosts` is
/// Group::hosts(). The same figures on every rank. Throws Error(deadline) on every rank when a host
/// does not answer; rank 0 reports it, with the host's name. Throws Error(argument) for one rank.
MeasuredLinks measure_links(const mpi::Communicator& ranks, const std::vector<int>& hosts,
                            const LinkMeasureOptions& options = {});

}  // namespace fast
