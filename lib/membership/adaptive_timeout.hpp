// How long a worker that lives is silent between two signs of life, and how long a silence must be
// to make it a suspect. The unit is the observer's heartbeat, a tenth of a second.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace fast::membership {

/// The latest `capacity` gaps between signs of life. The threshold is `factor` times the gap that
/// 99 % of them do not exceed, within [floor, ceiling].
///
/// A quantile, because the long gaps decide: most gaps are one heartbeat, also on a link where each
/// tenth gap is ten. Their median is then 1 and their median absolute deviation is 0, and a normal
/// distribution (phi accrual) calls a gap that comes once in 100 impossible.
///
/// The 1 % (one gap at least) that may be longer are pauses: they do not move the threshold. A
/// worker that pauses more often gets a higher one, until `capacity` further gaps have passed.
class AdaptiveTimeout {
 public:
  static constexpr std::size_t capacity = 300;  ///< half a minute at least
  static constexpr std::size_t enough = 50;     ///< gaps that are required for a threshold
  static constexpr std::uint64_t factor = 4;
  static constexpr std::uint64_t floor = 10;  ///< 1 s
  /// 10 s. A link whose usual gap is longer than a quarter of it gets less than `factor` times that
  /// gap; one whose usual gap is longer than 10 s makes suspects again and again. Such a link needs
  /// a threshold in seconds.
  static constexpr std::uint64_t ceiling = 100;

  /// `gap`: from one sign of life to the next, at least 1.
  void add(std::uint64_t gap);

  /// False as long as too few gaps are known.
  bool has_enough() const { return size_ >= enough; }
  /// The longest silence of a worker that is no suspect. Only if has_enough().
  std::uint64_t threshold() const;

 private:
  /// Longer gaps count as this one.
  static constexpr std::uint64_t longest = ceiling / factor;
  std::uint64_t usual_gap() const;

  std::array<std::uint8_t, capacity> gaps_{};
  std::array<std::uint16_t, longest + 1> counts_{};  ///< by gap
  std::size_t size_ = 0, next_ = 0;
};

}  // namespace fast::membership
