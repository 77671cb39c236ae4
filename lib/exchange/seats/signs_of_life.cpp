#include "exchange/seats/signs_of_life.hpp"

#include <algorithm>

namespace fast::exchange {

SignsOfLife::SignsOfLife(const SeatTable& table, double silent_after_s)
    : table_(table),
      silent_after_s_(silent_after_s),
      signs_(static_cast<std::size_t>(table.records().size())),
      gone_(signs_.size()) {}

void SignsOfLife::look(double elapsed_s, const std::vector<int>& died) {
  time_s_ += elapsed_s;
  died_ = died;
  look_again();
}

void SignsOfLife::look_again() {
  const SeatRecords& records = table_.records();
  for (int rank = 0; rank < records.size(); ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    const std::uint64_t beat = records.beat(rank);
    if (beat != signs_[r].beat) signs_[r] = {beat, time_s_};
    const bool silent = rank != table_.rank() && time_s_ - signs_[r].at_s > silent_after_s_;
    const bool died = std::find(died_.begin(), died_.end(), rank) != died_.end();
    const bool vacated =
        table_.is_spare(rank) && records.claim(rank).phase == SeatClaim::Phase::vacated;
    gone_[r] = silent || died || vacated;
  }
}

bool SignsOfLife::any_is_lost() const {
  const SeatRecords& records = table_.records();
  for (int rank = 0; rank < records.size(); ++rank) {
    if (is_gone(rank) && records.status(rank) < WorkerStatus::finished) return true;
  }
  return false;
}

}  // namespace fast::exchange
