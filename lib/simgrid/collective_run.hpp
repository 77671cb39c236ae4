// Workers that all-reduce, or do not exchange, as events on a stage.
#pragma once

#include <cstdint>
#include <vector>
#include "simgrid/stage.hpp"
#include "simulation/collective.hpp"
#include "simulation/tally.hpp"

namespace fast::simgrid {

class CollectiveRun {
 public:
  /// Throws Error(argument) when there are too many messages to simulate.
  CollectiveRun(const simulation::Workload& load, Stage& stage);
  void start();
  simulation::Tally& tally() { return tally_; }

 private:
  struct Worker {
    std::int64_t round = 0;
    std::int64_t reached = -1;  // steps before it are done, over all rounds
    bool receives = false;
    double begin_s = 0, end_s = 0;
  };

  Worker& at(int worker) { return workers_[static_cast<std::size_t>(worker)]; }
  std::int64_t first_of(std::int64_t round) const { return round * (steps_ + 1); }
  int step_of(const Worker& worker) const;
  void step(int worker);
  void reach(int worker, std::int64_t place);
  void receive(int worker);
  void end_round(int worker);

  const simulation::Workload& load_;
  Stage& stage_;
  simulation::Collective collective_;
  int steps_;
  std::vector<Worker> workers_;
  simulation::Tally tally_;
  int running_ = load_.schedule.workers();
};

}  // namespace fast::simgrid
