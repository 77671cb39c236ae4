// How many messages share the links of hosts; worker w is on host w / workers_per_host.
#pragma once

#include <algorithm>
#include <cstdint>
#include <fast/mixing/check.hpp>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "simulation/collective.hpp"
#include "simulation/read_lists.hpp"

namespace fast::simulation {

/// Messages that are on their way at the same time.
class HostFlows {
 public:
  HostFlows(int workers, int workers_per_host)
      : workers_per_host_(workers_per_host),
        leaving_(host(workers - 1) + 1, 0),
        entering_(leaving_) {}

  /// A message within a host meets no link.
  void add(int from, int to, double part = 1) {
    if (host(from) == host(to)) return;
    leaving_[host(from)] += part;
    entering_[host(to)] += part;
  }
  /// That leave the source's host, or enter the reader's if those are more.
  double between(int from, int to) const {
    return std::max(leaving_[host(from)], entering_[host(to)]);
  }
  /// In one direction of the link that has most.
  double most() const {
    return std::max(*std::ranges::max_element(leaving_), *std::ranges::max_element(entering_));
  }

 private:
  std::size_t host(int worker) const {
    return static_cast<std::size_t>(worker / workers_per_host_);
  }

  int workers_per_host_;
  std::vector<double> leaving_, entering_;
};

inline void add_flows(const ReadLists& lists, HostFlows& flows, double part = 1) {
  for (int i = 0; i + 1 < static_cast<int>(lists.first.size()); ++i) {
    for (const int j : lists.of(i)) flows.add(j, i, part);
  }
}

/// Calls look(lists) with what is read in each round of the period.
template <class Look>
void for_rounds(const Schedule& schedule, const Look& look) {
  RoundReads reads(schedule);
  const std::int64_t rounds = schedule.period_or(looked_at_of_endless);
  for (std::int64_t t = 0; t < rounds; ++t) look(*reads.at(t));
}

/// Whole messages in a round on the link that has most, in the mean over the period.
inline double busiest_link(const Schedule& schedule, int workers_per_host) {
  HostFlows flows(schedule.workers(), workers_per_host);
  for_rounds(schedule, [&](const ReadLists& lists) { add_flows(lists, flows, lists.part); });
  return flows.most() / static_cast<double>(schedule.period_or(looked_at_of_endless));
}

/// Whole messages on the link that has most, in the round that has most.
inline double most_at_once(const Schedule& schedule, int workers_per_host) {
  double most = 0;
  for_rounds(schedule, [&](const ReadLists& lists) {
    HostFlows flows(schedule.workers(), workers_per_host);
    add_flows(lists, flows, lists.part);
    most = std::max(most, flows.most());
  });
  return most;
}

/// Of the rounds of a schedule.
class RoundFlows {
 public:
  RoundFlows(const Schedule& schedule, int workers_per_host)
      : reads_(schedule), workers_per_host_(workers_per_host), flows_(1, 1) {}

  double between(std::int64_t round, int from, int to) {
    if (round != round_) count(round);
    return flows_.between(from, to);
  }

 private:
  void count(std::int64_t round) {
    round_ = round;
    const std::shared_ptr<const ReadLists> lists = reads_.at(round);
    if (lists == counted_) return;
    counted_ = lists;
    flows_ = HostFlows(reads_.schedule().workers(), workers_per_host_);
    add_flows(*lists, flows_);
  }

  RoundReads reads_;
  int workers_per_host_;
  std::int64_t round_ = -1;
  std::shared_ptr<const ReadLists> counted_;
  HostFlows flows_;
};

/// Of the steps of an all-reduce. Two workers exchange in one step, or in two with equal flows.
class StepFlows {
 public:
  StepFlows(Pattern pattern, int workers, int workers_per_host)
      : collective_(pattern, workers, 0), workers_(workers), workers_per_host_(workers_per_host) {}

  double between(int from, int to) {
    const int step = collective_.step_between(from, to);
    const auto known = flows_.find(step);
    return (known != flows_.end() ? known->second : count(step)).between(from, to);
  }

 private:
  const HostFlows& count(int step) {
    HostFlows flows(workers_, workers_per_host_);
    for (int i = 0; i < workers_; ++i) {
      const int from = collective_.at(i, step).from;
      if (from != nobody) flows.add(from, i);
    }
    return flows_.emplace(step, std::move(flows)).first->second;
  }

  Collective collective_;
  int workers_, workers_per_host_;
  std::map<int, HostFlows> flows_;
};

}  // namespace fast::simulation
