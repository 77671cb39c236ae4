// How far another site's clock is ahead of this one's, from requests and their answers.
#pragma once

#include <cstdint>
#include <optional>
#include <utility>

#include "sites/wire.hpp"

namespace fast::sites {

/// Half of the difference between the ways there and back, of the answer that was back soonest
/// (Mills, RFC 5905). The error is at most half of that time. Not thread-safe.
class ClockAhead {
 public:
  /// `now_us`: by this site's clock, when the answer came. What was asked before `since_us`,
  /// another process of this site has asked. Another process there has another clock.
  void add(const Chunk& answer, std::int64_t now_us, std::int64_t since_us = 0) {
    if (answer.asked_us < since_us) return;
    const std::int64_t there = answer.heard_us - answer.asked_us, back = now_us - answer.sent_us;
    const std::int64_t took = there + back;
    if (took < 0 || answer.sent_us < answer.heard_us) return;
    if (std::exchange(incarnation_, answer.incarnation) != answer.incarnation) ahead_s_.reset();
    // Clocks drift, and an old answer says less.
    if (ahead_s_ && took > shortest_us_ + (now_us - at_us_) / drift) return;
    shortest_us_ = took;
    at_us_ = now_us;
    ahead_s_ = 1e-6 * static_cast<double>(there - back) / 2;
  }

  std::optional<double> seconds() const { return ahead_s_; }

 private:
  static constexpr std::int64_t drift = 10'000;  ///< 1 s in so many, with room
  std::uint64_t incarnation_ = 0;
  std::int64_t shortest_us_ = 0, at_us_ = 0;
  std::optional<double> ahead_s_;
};

}  // namespace fast::sites
