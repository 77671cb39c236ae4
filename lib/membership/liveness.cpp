#include "membership/liveness.hpp"

#include <algorithm>
#include <utility>

namespace fast::membership {

Liveness::Liveness(RecordBoard board, std::size_t beat)
    : board_(std::move(board)), beat_(beat), signs_(static_cast<std::size_t>(board_.size())) {}

void Liveness::look(double elapsed_s, const std::vector<int>& died) {
  time_s_ += elapsed_s;
  died_ = died;
  look_again();
}

void Liveness::look_again() {
  for (int rank = 0; rank < board_.size(); ++rank) {
    const std::uint64_t beat = board_.read(rank, beat_);
    Sign& sign = signs_[static_cast<std::size_t>(rank)];
    if (beat != sign.beat) sign = {beat, time_s_};
  }
}

bool Liveness::is_silent(int rank, double after_s) const {
  return rank != board_.rank() && time_s_ - signs_[static_cast<std::size_t>(rank)].at_s > after_s;
}

bool Liveness::has_died(int rank) const {
  return std::find(died_.begin(), died_.end(), rank) != died_.end();
}

}  // namespace fast::membership
