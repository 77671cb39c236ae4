// Whether reads of a worker on another host keep up with what it publishes.
#pragma once

#include <algorithm>
#include <fast/core/deadline.hpp>

namespace fast::exchange {

/// Above staleness 0 a publisher waits for nobody: it may write to a slot that is being read. Reads
/// that take longer than slots last then take kept copies, and try a slot again now and then.
class ReadPace {
 public:
  /// Of a finished read of a slot, or of a kept copy: it took that long, and was whole or not.
  void note(bool kept, bool whole, Seconds took) {
    if (whole && !kept) {
      slow_read_ = Seconds(0);
    } else if (whole) {
      slow_read_ = took;
      ++copies_;
      return;
    } else {
      slow_read_ = std::max(took, kept ? 2 * slow_read_ : slow_read_);
    }
    copies_ = 0;
  }

  bool keeps_up() const { return slow_read_ == Seconds(0); }
  /// 0 if reads keep up.
  Seconds slow_read() const { return slow_read_; }
  bool shall_try_slot() const { return copies_ >= copies_before_slot; }

 private:
  static constexpr int copies_before_slot = 16;

  Seconds slow_read_{0};
  int copies_ = 0;  ///< read since the last slot
};

}  // namespace fast::exchange
