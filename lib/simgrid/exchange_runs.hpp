// Simulated exchanges: all-reduces, and rounds with neighbors.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "simulation/collective.hpp"
#include "simulation/read_lists.hpp"
#include "simulation/tally.hpp"

namespace fast::simgrid {

/// Where simulated workers act: a clock, and messages between workers.
class Stage {
 public:
  using Event = std::function<void()>;
  virtual ~Stage() = default;
  virtual double now() const = 0;
  virtual void after(double seconds, Event event) = 0;
  /// `arrived` happens when the whole message has arrived.
  virtual void send(int from, int to, double size_bytes, Event arrived) = 0;
  /// Once, when the last worker has finished.
  virtual void finish() = 0;
};

/// Workers that all-reduce, or do not exchange, as events on a stage.
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

/// Workers that average with their neighbors, as events on a stage.
class NeighborRun {
 public:
  NeighborRun(const simulation::Workload& load, Stage& stage);
  void start();
  simulation::Tally& tally() { return tally_; }

 private:
  enum class State { stepping, full, waiting, absent, done };  // full: no slot is free

  struct Worker {
    State state = State::waiting;
    std::int64_t round = 0, published = -1;
    double begin_s = 0, end_s = 0;
    double waited_s = 0;  // for a slot, before the step
    double failed_s = 0;
    std::size_t arrived = 0, freed = 0;  // sources and readers that it waits for no more
    std::vector<std::pair<std::int64_t, std::int64_t>> skipped;  // publications: [first, end)

    bool has_skipped(std::int64_t published_in) const;
  };

  // From a source to a reader: one message at a time.
  struct Link {
    int source = 0, reader = 0;
    bool busy = false;
    std::int64_t sent = -1, arrived = -1;
    std::int64_t read = -1;           // the newest that was read
    std::int64_t due = -1;            // the last round known in which the reader reads the source
    std::deque<std::int64_t> queued;  // at staleness 0
  };

  Worker& at(int worker) { return workers_[static_cast<std::size_t>(worker)]; }
  Link& link(int source, int reader);

  void begin_round(int worker);
  void step(int worker);
  void finish_step(int worker);
  void fail(int worker);
  void come_back(int worker);
  void receive_again(int worker);
  void publish(int worker);
  void pump(Link& link);
  void arrive(Link& link, std::int64_t content);
  void expect(int worker, std::int64_t round);
  void try_combine(int worker);
  bool has_arrived(int worker, int source);
  bool is_suspected(int worker);
  bool has_slot(int worker);
  void count_reads(int worker, const simulation::ReadLists& lists);
  bool reads(const Link& from, std::int64_t round);
  void end_round(int worker);
  void begin_or_finish(int worker);
  void retry(int worker);
  void retry_all();

  const simulation::Workload& load_;
  Stage& stage_;
  simulation::RoundReads reads_;
  std::vector<Worker> workers_;
  std::vector<std::map<int, std::unique_ptr<Link>>> links_;  // of each source, by reader
  simulation::Tally tally_;
  int running_ = load_.schedule.workers();
};

}  // namespace fast::simgrid
