#include "simgrid/collective_run.hpp"
#include <fast/core/error.hpp>

namespace fast::simgrid {
namespace {

constexpr double most_messages = 2e7;

}  // namespace

using simulation::CollectiveStep;
using simulation::Pattern;

CollectiveRun::CollectiveRun(const simulation::Workload& load, Stage& stage)
    : load_(load),
      stage_(stage),
      collective_(load.pattern, load.schedule.workers(), load.payload_bytes),
      steps_(load.pattern == Pattern::nobody ? 0 : collective_.steps()),
      workers_(static_cast<std::size_t>(load.schedule.workers())),
      tally_(load.rounds) {
  const double messages = 1.0 * load.schedule.workers() * steps_ * static_cast<double>(load.rounds);
  require(messages <= most_messages, ErrorKind::argument,
          "simulation: {} messages of all-reduces are too many, {} are simulated; take fewer "
          "workers or rounds, or the recurrence",
          messages, most_messages);
}

void CollectiveRun::start() {
  for (int i = 0; i < load_.schedule.workers(); ++i) step(i);
}

int CollectiveRun::step_of(const Worker& worker) const {
  return static_cast<int>(worker.reached - first_of(worker.round));
}

void CollectiveRun::step(int worker) {
  const Worker& self = at(worker);
  double step_s = load_.work.of(worker, self.round);
  const double share = load_.failures.fails_after(worker, self.round, step_s);
  if (share >= 0) {
    tally_.failure();
    step_s = share * step_s + load_.failures.absent_s;
  }
  stage_.after(step_s, [this, worker] {
    at(worker).end_s = stage_.now();
    reach(worker, first_of(at(worker).round));
  });
}

// What the worker can send now, its readers may be waiting for.
void CollectiveRun::reach(int worker, std::int64_t place) {
  Worker& self = at(worker);
  self.reached = place;
  if (step_of(self) == steps_) return end_round(worker);
  const CollectiveStep step = collective_.at(worker, step_of(self));
  if (step.to != simulation::nobody && at(step.to).reached == place) receive(step.to);
  if (self.reached != place) return;  // a step of no time
  if (step.from == simulation::nobody) return reach(worker, place + 1);
  receive(worker);
}

// A message starts when both ends have finished the step before.
void CollectiveRun::receive(int worker) {
  Worker& self = at(worker);
  const CollectiveStep step = collective_.at(worker, step_of(self));
  if (self.receives || step.from == simulation::nobody || at(step.from).reached < self.reached) {
    return;
  }
  self.receives = true;
  stage_.send(step.from, worker, step.size_bytes, [this, worker] {
    at(worker).receives = false;
    reach(worker, at(worker).reached + 1);
  });
}

void CollectiveRun::end_round(int worker) {
  Worker& self = at(worker);
  tally_.round(self.begin_s, stage_.now(), stage_.now() - self.end_s);
  self.begin_s = stage_.now();
  if (++self.round < load_.rounds) return step(worker);
  if (--running_ == 0) stage_.finish();
}

}  // namespace fast::simgrid
