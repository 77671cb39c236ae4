// Which workers show signs of life, on one worker's own clock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

namespace fast::train {

class LifeSigns {
 public:
  /// A worker other than `own` is silent when its beat has stood still for so long.
  LifeSigns(std::size_t workers, std::size_t own, double silent_after_s)
      : own_(own), silent_after_s_(silent_after_s), signs_(workers) {}

  /// beat_of(worker): a number that grows while the worker lives.
  template <class BeatOf>
  void look(double elapsed_s, const BeatOf& beat_of) {
    time_s_ += elapsed_s;
    for (std::size_t worker = 0; worker < signs_.size(); ++worker) {
      const std::uint64_t beat = beat_of(worker);
      if (beat != signs_[worker].beat) signs_[worker] = {beat, time_s_};
    }
  }

  bool is_silent(std::size_t worker) const {
    return worker != own_ && time_s_ - signs_[worker].at_s > silent_after_s_;
  }

 private:
  struct Sign {
    std::uint64_t beat = 0;
    double at_s = 0;
  };
  std::size_t own_;
  double silent_after_s_;
  double time_s_ = 0;  ///< since the first look
  std::vector<Sign> signs_;
};

}  // namespace fast::train
