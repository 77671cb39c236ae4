// What the recurrence keeps of workers and of edges.
#pragma once

#include <fast/simulation/workload.hpp>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "simulation/read_lists.hpp"
#include "simulation/tally.hpp"

namespace fast::simulation {

/// When each worker published, for the last rounds.
class History {
 public:
  /// Keeps that many rounds.
  explicit History(std::int64_t kept) : kept_(kept) {}
  void push(std::vector<double> times) {
    rounds_.push_back(std::move(times));
    if (static_cast<std::int64_t>(rounds_.size()) <= kept_) return;
    rounds_.pop_front();
    ++first_;
  }
  std::int64_t newest() const { return first_ + static_cast<std::int64_t>(rounds_.size()) - 1; }
  /// A round that is no longer kept counts as published with the oldest one that is: an absent
  /// worker's rounds all count as published when it is back.
  double at(std::int64_t round, int worker) const {
    const std::int64_t kept = std::max(round, first_);
    return rounds_[static_cast<std::size_t>(kept - first_)][static_cast<std::size_t>(worker)];
  }

 private:
  std::int64_t kept_, first_ = 0;
  std::deque<std::vector<double>> rounds_;
};

/// The messages from one source to one reader: one after another, each with the newest publication.
struct Edge {
  int source = 0;
  std::int64_t content = -1;  ///< round of the publication on its way, or arrived last
  std::int64_t arrived = -1;  ///< the one before
  std::int64_t read = -1;     ///< the newest that was read
  double start_s = -std::numeric_limits<double>::infinity();
  double arrival_s = -std::numeric_limits<double>::infinity();

  /// A message has the newest publication at its start, which may be known only later.
  void resolve(const History& published) {
    while (content >= 0 && content < published.newest() &&
           published.at(content + 1, source) <= start_s) {
      ++content;
    }
  }

  /// When the next message can start; infinity if nothing newer has been published.
  double next_start(const History& published, double not_before_s) {
    resolve(published);
    if (content >= published.newest()) return std::numeric_limits<double>::infinity();
    return std::max({arrival_s, published.at(content + 1, source), not_before_s});
  }

  void begin(const History& published, double at_s) {
    arrived = content;
    ++content;
    start_s = at_s;
    resolve(published);
  }
};

/// When a worker is absent, and which rounds it does not publish.
struct Absence {
  static constexpr std::int64_t not_over = std::numeric_limits<std::int64_t>::max();
  double begin_s = -std::numeric_limits<double>::infinity();
  double end_s = -std::numeric_limits<double>::infinity();
  std::int64_t first = 0, next = 0;  ///< it publishes none of the rounds [first, next)
  std::vector<int> sources{};        ///< of the round in which it began
};

/// The last two of a worker. It may fail again in the round in which it has come back.
class Absences {
 public:
  const Absence& last() const { return known_[1]; }
  bool is_absent() const { return last().next == Absence::not_over; }
  void begin(Absence absence) { known_[0] = std::exchange(known_[1], std::move(absence)); }
  /// The worker goes on in that round.
  void end(std::int64_t round) { known_[1].next = round; }

  /// The absence in which it skips that round, or null.
  const Absence* skipping(std::int64_t round) const {
    const auto found = std::ranges::find_if(
        known_, [round](const Absence& one) { return one.first <= round && round < one.next; });
    return found == known_.end() ? nullptr : &*found;
  }
  bool is_suspected(double at_s, double suspect_after_s) const {
    return std::ranges::any_of(known_, [=](const Absence& one) {
      return one.begin_s + suspect_after_s <= at_s && at_s < one.end_s;
    });
  }
  /// Until when others wait for something that happens at `done_s`: at most until they suspect the
  /// worker. They begin to wait at `own_s`.
  double awaited_until(double done_s, double own_s, double suspect_after_s) const {
    for (const Absence& one : known_) {
      const double leaves_s = std::max(own_s, one.begin_s + suspect_after_s);
      if (leaves_s < one.end_s && leaves_s < done_s) return leaves_s;
    }
    return done_s;
  }

 private:
  std::array<Absence, 2> known_;
};

// When the workers begin and finish their steps, in a recurrence.

using Times = std::vector<double>;

class Workers {
 public:
  explicit Workers(const Workload& load)
      : load_(load),
        count_(load.schedule.workers()),
        begin_s_(size(), 0),
        end_s_(size(), 0),
        absences_(size()) {}

  std::size_t size() const { return static_cast<std::size_t>(count_); }
  int count() const { return count_; }
  const Times& begins() const { return begin_s_; }
  const Times& ends() const { return end_s_; }
  const Absences& absences(int worker) const { return absences_[static_cast<std::size_t>(worker)]; }
  bool is_absent(int worker) const { return absences(worker).is_absent(); }
  std::vector<int> absent() const {
    std::vector<int> found;
    for (int i = 0; i < count_; ++i) {
      if (is_absent(i)) found.push_back(i);
    }
    return found;
  }

  /// `lists`: whom the workers read, or null if all of them wait for an absent one.
  void make_steps(std::int64_t round, const ReadLists* lists, Tally& tally) {
    for (int i = 0; i < count_; ++i) {
      if (is_absent(i)) {
        wait_for_step(i, round);
      } else {
        make_step(i, round, lists, tally);
      }
    }
  }
  void begin_not_before(const Times& times) {
    for (std::size_t i = 0; i < times.size(); ++i) begin_s_[i] = std::max(begin_s_[i], times[i]);
  }
  void begin_next(Times begins) { begin_s_ = std::move(begins); }
  /// An absent worker goes on in that round.
  void bring_back(int worker, std::int64_t round, const ReadLists& lists, Tally& tally) {
    absences_[static_cast<std::size_t>(worker)].end(round);
    make_step(worker, round, &lists, tally);
  }

 private:
  // When the step would end if the worker came back in this round.
  void wait_for_step(int worker, std::int64_t round) {
    const auto at = static_cast<std::size_t>(worker);
    end_s_[at] = begin_s_[at] + load_.work.of(worker, round);
  }

  void make_step(int worker, std::int64_t round, const ReadLists* lists, Tally& tally) {
    const auto at = static_cast<std::size_t>(worker);
    const double step_s = load_.work.of(worker, round);
    const double share = load_.failures.fails_after(worker, round, step_s);
    end_s_[at] = begin_s_[at] + step_s;
    if (share < 0) return;
    tally.failure();
    const double failed_s = begin_s_[at] + share * step_s;
    end_s_[at] = failed_s + load_.failures.absent_s;
    if (lists == nullptr) return;
    const bool published =
        load_.publishes_before_step() || (round == 0 && load_.begins_published());
    const std::span<const int> sources = lists->of(worker);
    absences_[at].begin({failed_s, end_s_[at], published ? round + 1 : round, Absence::not_over,
                         std::vector<int>(sources.begin(), sources.end())});
  }

  const Workload& load_;
  int count_;
  Times begin_s_, end_s_;
  std::vector<Absences> absences_;
};

}  // namespace fast::simulation
