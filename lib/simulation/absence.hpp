// When a worker is absent, and which rounds it does not publish.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <limits>
#include <utility>
#include <vector>

namespace fast::simulation {

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
    const auto found = std::find_if(known_.begin(), known_.end(), [round](const Absence& one) {
      return one.first <= round && round < one.next;
    });
    return found == known_.end() ? nullptr : &*found;
  }
  bool is_suspected(double at_s, double suspect_after_s) const {
    return std::any_of(known_.begin(), known_.end(), [=](const Absence& one) {
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

}  // namespace fast::simulation
