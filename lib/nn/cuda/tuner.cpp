#include "nn/cuda/tuner.hpp"

#include <fmt/format.h>

namespace fast::cuda {

Tuner::Tuner(TuningFile file, LogSink log, Now now)
    : file_(std::move(file)), log_(std::move(log)), now_(std::move(now)) {}

void Tuner::begin() {
  began_ = now_();
  counts_ = {};
}

void Tuner::end() {
  const Clock::duration time = now_() - *began_;
  began_.reset();
  used_ += time;
  file_.save();
  const std::size_t works = counts_.measured + counts_.known + counts_.left;
  if (!log_ || works == 0) return;
  log_(counts_.known < works ? LogLevel::info : LogLevel::debug,
       fmt::format(
           "cuda: autotune: {} shapes in {:.2f} s: {} measured, {} known from earlier runs, "
           "{} left to the heuristics{}",
           works, Seconds(time).count(), counts_.measured, counts_.known, counts_.left,
           counts_.left > 0 ? fmt::format(" (the limit is {:g} s)", most_time.count()) : ""));
}

bool Tuner::has_time() const { return began_ && used_ + (now_() - *began_) < most_time; }

void Tuner::settle(const std::string& work, bool measured, const std::string& way) {
  ++(measured ? counts_.measured : counts_.left);
  if (measured && !way.empty()) file_.add(work, way);
}

}  // namespace fast::cuda
