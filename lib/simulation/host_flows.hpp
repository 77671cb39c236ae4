// How many messages share the links of hosts; worker w is on host w / workers_per_host.
#pragma once

#include <algorithm>
#include <cstdint>
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
  void add(int from, int to) {
    if (host(from) == host(to)) return;
    ++leaving_[host(from)];
    ++entering_[host(to)];
  }
  /// That leave the source's host, or enter the reader's if those are more.
  int between(int from, int to) const {
    return std::max(leaving_[host(from)], entering_[host(to)]);
  }

 private:
  std::size_t host(int worker) const {
    return static_cast<std::size_t>(worker / workers_per_host_);
  }

  int workers_per_host_;
  std::vector<int> leaving_, entering_;
};

/// Of the rounds of a schedule.
class RoundFlows {
 public:
  RoundFlows(const Schedule& schedule, int workers_per_host)
      : reads_(schedule), workers_per_host_(workers_per_host), flows_(1, 1) {}

  int between(std::int64_t round, int from, int to) {
    if (round != round_) count(round);
    return flows_.between(from, to);
  }

 private:
  void count(std::int64_t round) {
    round_ = round;
    const std::shared_ptr<const ReadLists> lists = reads_.at(round);
    if (lists == counted_) return;
    counted_ = lists;
    const int workers = reads_.schedule().workers();
    flows_ = HostFlows(workers, workers_per_host_);
    for (int i = 0; i < workers; ++i) {
      for (const int j : lists->of(i)) flows_.add(j, i);
    }
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

  int between(int from, int to) {
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
