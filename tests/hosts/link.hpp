// One direction of a link between two hosts: when a frame that enters it leaves it.
#pragma once

#include <fast/core/random.hpp>

#include <cstddef>
#include <optional>
#include <string>

namespace hosts {

/// How the delays of frames vary about their mean.
enum class Shape { normal, lognormal };

struct LinkSettings {
  double rate_bytes_per_s = 0;  ///< 0: any
  double delay_s = 0;           ///< mean, one way
  double jitter_s = 0;          ///< standard deviation of the delay
  Shape shape = Shape::normal;
  double loss = 0;  ///< share of frames
  bool cut = false;
};

/// Frames leave in the order in which they came: a late frame holds those behind it. Frames that
/// the rate lets wait for longer than 0.2 s are dropped, as by a router whose buffer is full.
class Link {
 public:
  explicit Link(std::uint64_t seed) : rng_(seed) {}

  LinkSettings settings;

  /// When a frame leaves that comes at `now_s`. None: it is lost. Times are of any one clock.
  std::optional<double> leaves_at(double now_s, std::size_t bytes);

 private:
  double delay();

  fast::Rng rng_;
  double free_s_ = 0;  ///< from when on the next frame may be sent
  double last_s_ = 0;  ///< when the last frame leaves
};

/// Changes the settings by a word: rate=10mbit, delay=50ms, jitter=10ms, shape=lognormal, loss=5%,
/// cut, mend, clear. Returns what is wrong with the word; empty: nothing.
std::string change(const std::string& word, LinkSettings& settings);

}  // namespace hosts
