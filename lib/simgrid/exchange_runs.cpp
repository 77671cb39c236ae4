#include "simgrid/exchange_runs.hpp"

#include <algorithm>
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

namespace {

constexpr std::int64_t slots = 3;

}  // namespace

using simulation::ReadLists;

NeighborRun::NeighborRun(const simulation::Workload& load, Stage& stage)
    : load_(load),
      stage_(stage),
      reads_(load.schedule),
      workers_(static_cast<std::size_t>(load.schedule.workers())),
      links_(workers_.size()),
      tally_(load.rounds) {}

NeighborRun::Link& NeighborRun::link(int source, int reader) {
  std::unique_ptr<Link>& known = links_[static_cast<std::size_t>(source)][reader];
  if (!known) {
    known = std::make_unique<Link>();
    known->source = source;
    known->reader = reader;
  }
  return *known;
}

void NeighborRun::start() {
  const int workers = load_.schedule.workers();
  for (int i = 0; load_.begins_published() && i < workers; ++i) publish(i);
  for (int i = 0; i < workers; ++i) begin_round(i);
}

void NeighborRun::begin_round(int worker) {
  at(worker).arrived = at(worker).freed = 0;
  expect(worker, at(worker).round);
  expect(worker, at(worker).round + 1);
  if (load_.publishes_before_step() && !has_slot(worker)) {
    at(worker).state = State::full;
    return;
  }
  if (load_.publishes_before_step()) publish(worker);
  step(worker);
}

void NeighborRun::step(int worker) {
  Worker& self = at(worker);
  self.state = State::stepping;
  self.waited_s = stage_.now() - self.begin_s;
  const double step_s = load_.work.of(worker, self.round);
  const double share = load_.failures.fails_after(worker, self.round, step_s);
  if (share < 0) {
    stage_.after(step_s, [this, worker] { finish_step(worker); });
  } else {
    stage_.after(share * step_s, [this, worker] { fail(worker); });
  }
}

void NeighborRun::finish_step(int worker) {
  Worker& self = at(worker);
  self.end_s = stage_.now();
  if (!load_.publishes_before_step() && !has_slot(worker)) {
    self.state = State::full;
    return;
  }
  if (!load_.publishes_before_step()) publish(worker);
  self.state = State::waiting;
  try_combine(worker);
}

void NeighborRun::fail(int worker) {
  Worker& self = at(worker);
  tally_.failure();
  self.state = State::absent;
  self.failed_s = stage_.now();
  stage_.after(load_.failures.suspect_after_s, [this] { retry_all(); });
  stage_.after(load_.failures.absent_s, [this, worker] { come_back(worker); });
}

// It goes on in the round of its furthest neighbor.
void NeighborRun::come_back(int worker) {
  Worker& self = at(worker);
  std::int64_t next = self.round + 1;
  for (const int j : reads_.at(self.round)->of(worker)) next = std::max(next, at(j).round);
  self.skipped.emplace_back(self.published + 1, next);
  self.round = next;
  self.begin_s = stage_.now();
  begin_or_finish(worker);
  receive_again(worker);
  retry_all();
}

// What it needs for its round and later ones.
void NeighborRun::receive_again(int worker) {
  for (auto& readers : links_) {
    const auto found = readers.find(worker);
    if (found == readers.end()) continue;
    std::erase_if(found->second->queued, [&](std::int64_t r) { return r < at(worker).round; });
    pump(*found->second);
  }
}

void NeighborRun::publish(int worker) {
  Worker& self = at(worker);
  self.published = self.round;
  if (load_.is_exact()) {
    for (const int reader : load_.schedule.at(self.round).out_neighbors(worker)) {
      link(worker, reader).queued.push_back(self.round);
    }
  }
  for (auto& [reader, link] : links_[static_cast<std::size_t>(worker)]) pump(*link);
}

// Sources send to readers that read them in this round or the next one.
void NeighborRun::expect(int worker, std::int64_t round) {
  if (load_.is_exact() || round >= load_.rounds) return;
  for (const int j : reads_.at(round)->of(worker)) {
    Link& found = link(j, worker);
    found.due = std::max(found.due, round);
    pump(found);
  }
}

// Nothing is sent to an absent reader.
void NeighborRun::pump(Link& link) {
  if (link.busy || at(link.reader).state == State::absent) return;
  std::int64_t content = at(link.source).published;
  if (load_.is_exact()) {
    if (link.queued.empty()) return;
    content = link.queued.front();
    link.queued.pop_front();
  } else if (content <= link.sent || link.due < at(link.reader).round) {
    return;
  }
  link.busy = true;
  link.sent = content;
  const double part = load_.is_exact() ? reads_.at(content)->part : 1;
  stage_.send(link.source, link.reader, part * load_.payload_bytes,
              [this, &link, content] { arrive(link, content); });
}

void NeighborRun::arrive(Link& link, std::int64_t content) {
  link.busy = false;
  link.arrived = content;
  pump(link);
  try_combine(link.reader);
}

bool NeighborRun::has_arrived(int worker, int source) {
  const std::int64_t round = at(worker).round;
  const std::int64_t needed = std::max<std::int64_t>(round - load_.staleness, 0);
  return link(source, worker).arrived >= needed || is_suspected(source) ||
         at(source).has_skipped(needed);
}

bool NeighborRun::is_suspected(int worker) {
  const Worker& other = at(worker);
  return other.state == State::absent &&
         stage_.now() >= other.failed_s + load_.failures.suspect_after_s;
}

bool NeighborRun::Worker::has_skipped(std::int64_t published_in) const {
  return std::ranges::any_of(skipped, [published_in](const auto& rounds) {
    return published_in >= rounds.first && published_in < rounds.second;
  });
}

// Publication r is written where that of round r - 3 was: its readers must have finished. The
// worker waits for one after another.
bool NeighborRun::has_slot(int worker) {
  Worker& self = at(worker);
  const std::int64_t old = self.round - slots;
  if (!load_.is_exact() || old < 0 || self.has_skipped(old)) return true;
  const std::vector<int> readers = load_.schedule.at(old).out_neighbors(worker);
  for (; self.freed < readers.size(); ++self.freed) {
    const int reader = readers[self.freed];
    if (at(reader).round <= old && !is_suspected(reader)) return false;
  }
  return true;
}

// The worker waits for one source after another.
void NeighborRun::try_combine(int worker) {
  Worker& self = at(worker);
  if (self.state != State::waiting) return;
  const std::shared_ptr<const ReadLists> lists = reads_.at(self.round);
  const std::span<const int> sources = lists->of(worker);
  for (; self.arrived < sources.size(); ++self.arrived) {
    if (!has_arrived(worker, sources[self.arrived])) return;
  }
  count_reads(worker, *lists);
  end_round(worker);
  for (const int j : sources) retry(j);
}

void NeighborRun::count_reads(int worker, const ReadLists& lists) {
  const std::int64_t round = at(worker).round;
  for (const int j : lists.of(worker)) {
    Link& from = link(j, worker);
    if (reads(from, round)) {
      tally_.read(round - from.arrived);
      from.read = from.arrived;
    } else {
      tally_.left_out();
    }
  }
}

// Nobody reads the last publication of a suspect again.
bool NeighborRun::reads(const Link& from, std::int64_t round) {
  if (load_.is_exact()) return from.arrived >= round && !at(from.source).has_skipped(round);
  return from.arrived > from.read || (from.arrived >= 0 && !is_suspected(from.source));
}

void NeighborRun::end_round(int worker) {
  Worker& self = at(worker);
  tally_.round(self.begin_s, stage_.now(), stage_.now() - self.end_s + self.waited_s);
  self.begin_s = stage_.now();
  ++self.round;
  begin_or_finish(worker);
}

void NeighborRun::begin_or_finish(int worker) {
  Worker& self = at(worker);
  self.state = self.round >= load_.rounds ? State::done : State::waiting;
  if (self.state != State::done) return begin_round(worker);
  if (--running_ == 0) stage_.finish();
}

// A slot may be free now.
void NeighborRun::retry(int worker) {
  if (at(worker).state != State::full || !has_slot(worker)) return;
  publish(worker);
  if (load_.publishes_before_step()) {
    step(worker);
  } else {
    at(worker).state = State::waiting;
    try_combine(worker);
  }
}

void NeighborRun::retry_all() {
  for (int i = 0; i < load_.schedule.workers(); ++i) {
    retry(i);
    try_combine(i);
  }
}

}  // namespace fast::simgrid
