// When the workers begin and finish their steps, in a recurrence.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <fast/simulation/workload.hpp>
#include <span>
#include <utility>
#include <vector>
#include "simulation/absence.hpp"
#include "simulation/read_lists.hpp"
#include "simulation/tally.hpp"

namespace fast::simulation {

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
