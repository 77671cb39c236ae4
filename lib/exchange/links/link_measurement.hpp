// Finds the figures of links by trials: messages whose times tell what a link can do.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "exchange/links/measured_links.hpp"

namespace fast::exchange {

/// A message, and an empty one back. At most one flow has the same two ranks in this order.
struct Flow {
  std::int32_t from = 0, to = 0;
  std::uint64_t size_bytes = 1;
};

struct TrialTimes {
  /// By flow: seconds from the beginning of each message to its answer.
  std::vector<std::vector<double>> seconds;
  double total_s = 0;  ///< of the trial
};

class LinkTrials {
 public:
  virtual ~LinkTrials() = default;
  /// All flows at the same time; each `count` times, one message after the other. Throws
  /// Error(deadline) that names those who do not answer.
  virtual TrialTimes run(const std::vector<Flow>& flows, int count) = 0;
};

using HostPairs = std::vector<std::pair<int, int>>;

/// At most so many rounds of pairs of hosts. The pairs of a round are disjoint, and no pair is in
/// two rounds. If there are enough rounds, each two hosts are a pair (circle method of
/// tournaments); else the rounds are spread evenly over the tournament.
std::vector<HostPairs> host_pairs(int hosts, int most_rounds);

/// Used once. Decides by the times of the trials only.
class LinkMeasurement {
 public:
  /// By rank: the lowest rank of its host, and the name of its host. `trials` must outlive this.
  LinkMeasurement(LinkTrials& trials, const std::vector<int>& host_of_rank,
                  const std::vector<std::string>& name_of_rank, const LinkMeasureOptions& options);

  MeasuredLinks measure();

 private:
  struct Pair {
    int first = 0, second = 0;  ///< indices of hosts
    double latency_s = 0, bandwidth = 0;
    double rough_rate = 0;  ///< of a short message
  };

  std::vector<std::vector<double>> run(const std::vector<Flow>& flows, int count);
  bool has_time(double share) const;
  void measure_memory();
  void measure_latencies();
  void measure_latencies_of(const HostPairs& pairs, int pings);
  void find_message_size();
  void measure_bandwidths();
  std::vector<Flow> first_ranks(const HostPairs& pairs, std::size_t size_bytes) const;
  std::size_t size_for(const Pair& pair) const;
  std::vector<Flow> all_ranks(const HostPairs& pairs);
  void add_bandwidths(const HostPairs& pairs, const std::vector<Flow>& flows,
                      const std::vector<std::vector<double>>& seconds);
  Pair& pair_of(int first, int second);
  const std::string& name(int host) const;
  MeasuredLinks figures() const;

  LinkTrials& trials_;
  LinkMeasureOptions options_;
  std::vector<std::vector<int>> ranks_;  ///< by host
  std::vector<std::string> names_;       ///< by rank
  std::vector<int> host_;                ///< index, by rank
  std::vector<HostPairs> rounds_;
  std::vector<Pair> pairs_;
  MeasuredLinks found_;
  std::size_t size_bytes_ = 0;      ///< of one rank's message that takes `target_s`
  std::vector<double> deviations_;  ///< of the logarithm of times from their flow's median
  double target_s_ = 0;             ///< of the longest messages
  double spent_s_ = 0;
};

}  // namespace fast::exchange
