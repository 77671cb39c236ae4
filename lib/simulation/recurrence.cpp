#include <algorithm>
#include <fast/simulation/workload.hpp>
#include <limits>

#include "simulation/collective.hpp"
#include "simulation/read_lists.hpp"
#include "simulation/recurrence_state.hpp"
#include "simulation/tally.hpp"

namespace fast::simulation {
namespace {

constexpr double never = std::numeric_limits<double>::infinity();
constexpr std::int64_t slots = 3;
constexpr double most_messages = 2e8;

// Neighbor averaging.
class Neighbors {
 public:
  Neighbors(const Workload& load, const TransferTime& transfer)
      : load_(load),
        transfer_(transfer),
        workers_(load),
        reads_(load.schedule),
        published_(kept_rounds(load)),
        begins_(slots + 1),
        edges_(workers_.size()),
        tally_(load.rounds) {
    begins_.push(workers_.begins());
  }

  RoundFigures run() {
    for (std::int64_t r = 0; r < load_.rounds; ++r) round(r);
    return tally_.figures();
  }

 private:
  static std::int64_t kept_rounds(const Workload& load) {
    if (load.staleness >= load.rounds) return load.rounds;
    return load.staleness + slots + 1;
  }
  bool exact() const { return load_.staleness == 0; }

  void round(std::int64_t r) {
    Times freed(workers_.size(), 0);
    const Times rounds_began = workers_.begins();
    const std::vector<int> absent = workers_.absent();
    const std::shared_ptr<const ReadLists> lists = reads_.at(r);
    part_ = lists->part;
    if (load_.publishes_before_step()) {
      wait_for_slots(r, rounds_began, freed);
      workers_.begin_not_before(freed);
      workers_.make_steps(r, lists.get(), tally_);
    } else {
      workers_.make_steps(r, lists.get(), tally_);
      wait_for_slots(r, workers_.ends(), freed);
    }
    publish(freed);
    bring_back(absent, r, *lists, freed);
    Times next(workers_.size());
    for (int i = 0; i < workers_.count(); ++i) next[at(i)] = combine(i, r, *lists, freed[at(i)]);
    finish(rounds_began, std::move(next));
  }

  static std::size_t at(int worker) { return static_cast<std::size_t>(worker); }

  // Publication r is written where that of round r - 3 was: its readers must have finished, or be
  // suspected. `wanted`: when each worker is ready to write.
  void wait_for_slots(std::int64_t r, const Times& wanted, Times& freed) {
    if (!exact() || r < slots ||
        (load_.schedule.is_static() && load_.schedule.at(0).is_symmetric()))
      return;
    const std::shared_ptr<const ReadLists> lists = reads_.at(r - slots);
    for (int i = 0; i < workers_.count(); ++i) {
      const double read_s = begins_.at(r - slots + 1, i);
      for (const int j : lists->of(i)) {
        if (workers_.is_absent(j) || skipping(j, r - slots) != nullptr) continue;
        const double from_s = std::max(wanted[at(j)], freed[at(j)]);
        freed[at(j)] = std::max(freed[at(j)], unless_suspected(i, from_s, read_s));
      }
    }
  }

  // Each absent worker goes on in the round in which its furthest neighbor is when it is back. What
  // happens until then does not depend on its round.
  void bring_back(std::vector<int> absent, std::int64_t r, const ReadLists& lists,
                  const Times& freed) {
    std::ranges::stable_sort(absent, [this](int a, int b) { return back_s(a) < back_s(b); });
    for (const int i : absent) {
      const std::vector<int>& sources = workers_.absences(i).last().sources;
      const bool is_behind = std::ranges::any_of(sources, [&](int j) {
        const double over_s =
            workers_.is_absent(j) ? back_s(j) : ready_s(j, r, lists, freed[at(j)], false);
        return over_s < back_s(i);
      });
      if (!is_behind) workers_.bring_back(i, r, lists, tally_);
    }
  }

  double back_s(int worker) const { return workers_.absences(worker).last().end_s; }
  const Absence* skipping(int worker, std::int64_t round) const {
    return workers_.absences(worker).skipping(round);
  }

  void publish(const Times& freed) {
    Times times = load_.publishes_before_step() ? workers_.begins() : workers_.ends();
    for (std::size_t j = 0; j < times.size(); ++j) times[j] = std::max(times[j], freed[j]);
    if (load_.begins_published() && published_.newest() < 0) times.assign(times.size(), 0);
    published_.push(std::move(times));
  }

  Edge& edge(int reader, std::size_t place, int source) {
    std::vector<Edge>& known = edges_[at(reader)];
    if (place < known.size() && known[place].source == source) return known[place];
    const auto found = std::ranges::lower_bound(known, source, {}, &Edge::source);
    if (found != known.end() && found->source == source) return *found;
    Edge fresh;
    fresh.source = source;
    return *known.insert(found, fresh);
  }

  void send(Edge& edge, int reader, std::int64_t r, double start_s) {
    edge.begin(published_, start_s);
    edge.arrival_s = start_s + transfer_(r, edge.source, reader, part_ * load_.payload_bytes);
  }

  // When the worker begins its next round.
  double combine(int i, std::int64_t r, const ReadLists& lists, double freed_s) {
    if (workers_.is_absent(i)) return back_s(i);
    const double at_s = ready_s(i, r, lists, freed_s, true);
    const std::span<const int> sources = lists.of(i);
    for (std::size_t k = 0; k < sources.size(); ++k) count_read(edge(i, k, sources[k]), i, r, at_s);
    return at_s;
  }

  // When the worker has all that round r needs. It waits for one source after another.
  double ready_s(int i, std::int64_t r, const ReadLists& lists, double freed_s, bool sends) {
    double at_s = std::max(workers_.ends()[at(i)], load_.publishes_before_step() ? 0 : freed_s);
    const std::span<const int> sources = lists.of(i);
    for (std::size_t k = 0; k < sources.size(); ++k) {
      Edge& known = edge(i, k, sources[k]);
      Edge trial = known;
      at_s = wait_for(sends ? known : trial, i, r, at_s);
    }
    return at_s;
  }

  // From when on the reader is in this round or the one before, in which sources send to it. They
  // send nothing to an absent reader.
  double opens(int reader, std::int64_t r) const {
    const double begun_s =
        load_.schedule.is_static() ? -never : begins_.at(std::max<std::int64_t>(r - 1, 0), reader);
    return std::max(begun_s, back_s(reader));
  }

  double wait_for(Edge& edge, int reader, std::int64_t r, double own_s) {
    const std::int64_t needed = std::max<std::int64_t>(r - load_.staleness, 0);
    if (const Absence* absence = skipping(edge.source, needed)) {
      return unless_suspected(edge.source, own_s, std::max(own_s, absence->end_s));
    }
    return exact() ? wait_for_exact(edge, reader, r, own_s)
                   : wait_for_recent(edge, reader, r, own_s);
  }

  double wait_for_exact(Edge& edge, int reader, std::int64_t r, double own_s) {
    edge.content = r - 1;  // each publication that is read, in order
    send(edge, reader, r,
         std::max({edge.arrival_s, published_.at(r, edge.source), back_s(reader)}));
    edge.content = r;
    return unless_suspected(edge.source, own_s, std::max(own_s, edge.arrival_s));
  }

  double wait_for_recent(Edge& edge, int reader, std::int64_t r, double own_s) {
    const std::int64_t needed = std::max<std::int64_t>(r - load_.staleness, 0);
    edge.resolve(published_);
    while (edge.content < needed)
      send(edge, reader, r, edge.next_start(published_, opens(reader, r)));
    if (edge.arrived >= needed) return own_s;
    return unless_suspected(edge.source, own_s, std::max(own_s, edge.arrival_s));
  }

  // Others wait for an absent worker until they suspect it.
  double unless_suspected(int other, double own_s, double done_s) const {
    return workers_.absences(other).awaited_until(done_s, own_s, load_.failures.suspect_after_s);
  }

  void count_read(Edge& edge, int reader, std::int64_t r, double at_s) {
    if (exact()) {
      const bool is_there = skipping(edge.source, r) == nullptr && edge.arrival_s <= at_s;
      return is_there ? tally_.read(0) : tally_.left_out();
    }
    while (edge.arrival_s <= at_s) {
      const double start_s = edge.next_start(published_, opens(reader, r));
      if (start_s > at_s) break;
      send(edge, reader, r, start_s);
    }
    count_recent(edge, r, at_s);
  }

  // Nobody reads the last publication of a suspect again.
  void count_recent(Edge& edge, std::int64_t r, double at_s) {
    const std::int64_t newest = edge.arrival_s <= at_s ? edge.content : edge.arrived;
    const bool is_new = newest > edge.read;
    edge.read = std::max(edge.read, newest);
    const bool is_suspect =
        workers_.absences(edge.source).is_suspected(at_s, load_.failures.suspect_after_s);
    if (newest < 0 || (!is_new && is_suspect)) return tally_.left_out();
    tally_.read(r - newest);
  }

  void finish(const Times& rounds_began, Times next) {
    for (int i = 0; i < workers_.count(); ++i) {
      if (workers_.is_absent(i)) continue;
      const double began_s = rounds_began[at(i)];
      tally_.round(began_s, next[at(i)],
                   next[at(i)] - workers_.ends()[at(i)] + workers_.begins()[at(i)] - began_s);
    }
    begins_.push(next);
    workers_.begin_next(std::move(next));
  }

  const Workload& load_;
  const TransferTime& transfer_;
  Workers workers_;
  RoundReads reads_;
  double part_ = 1;  // of a message, that travels in the present round
  History published_, begins_;
  std::vector<std::vector<Edge>> edges_;
  Tally tally_;
};

// All-reduces, and no exchange.
class Together {
 public:
  Together(const Workload& load, const TransferTime& transfer)
      : load_(load),
        transfer_(transfer),
        workers_(load),
        collective_(load.pattern, workers_.count(), load.payload_bytes),
        tally_(load.rounds) {}

  RoundFigures run() {
    const double messages = 1.0 * workers_.count() * collective_.steps();
    const bool by_messages = messages * static_cast<double>(load_.rounds) <= most_messages;
    const double together_s = by_messages || alone() ? 0 : seconds_together();
    for (std::int64_t r = 0; r < load_.rounds; ++r) {
      workers_.make_steps(r, nullptr, tally_);
      Times next = workers_.ends();
      if (!alone() && by_messages) reduce(r, next);
      if (!alone() && !by_messages) {
        const double slowest_s = *std::ranges::max_element(next);
        std::ranges::fill(next, slowest_s + together_s);
      }
      count(next);
      workers_.begin_next(std::move(next));
    }
    return tally_.figures();
  }

 private:
  bool alone() const { return load_.pattern == Pattern::nobody || workers_.count() == 1; }

  double message_s(std::int64_t r, const CollectiveStep& step, int to) const {
    return transfer_(r, step.from, to, step.size_bytes);
  }

  void reduce(std::int64_t r, Times& times) const {
    for (int k = 0; k < collective_.steps(); ++k) {
      Times next = times;
      for (int i = 0; i < workers_.count(); ++i) {
        const CollectiveStep step = collective_.at(i, k);
        if (step.from == nobody) continue;
        // A message starts when both ends have finished the step before.
        const auto at = static_cast<std::size_t>(i);
        const double start_s = std::max(times[at], times[static_cast<std::size_t>(step.from)]);
        next[at] = start_s + message_s(r, step, i);
      }
      times = std::move(next);
    }
  }

  // Of workers that begin at the same time: each step lasts as long as its slowest message. All
  // steps of a ring are alike.
  double seconds_together() const {
    const bool ring = load_.pattern == Pattern::ring_allreduce;
    double sum_s = 0;
    for (int k = 0; k < (ring ? 1 : collective_.steps()); ++k) {
      double slowest_s = 0;
      for (int i = 0; i < workers_.count(); ++i) {
        const CollectiveStep step = collective_.at(i, k);
        if (step.from != nobody) slowest_s = std::max(slowest_s, message_s(0, step, i));
      }
      sum_s += slowest_s;
    }
    return ring ? sum_s * collective_.steps() : sum_s;
  }

  void count(const Times& next) {
    for (std::size_t i = 0; i < next.size(); ++i) {
      tally_.round(workers_.begins()[i], next[i], next[i] - workers_.ends()[i]);
    }
  }

  const Workload& load_;
  const TransferTime& transfer_;
  Workers workers_;
  Collective collective_;
  Tally tally_;
};

}  // namespace

RoundFigures recur(const Workload& workload, const TransferTime& transfer) {
  check(workload);
  if (workload.pattern == Pattern::neighbors) return Neighbors(workload, transfer).run();
  return Together(workload, transfer).run();
}

}  // namespace fast::simulation
