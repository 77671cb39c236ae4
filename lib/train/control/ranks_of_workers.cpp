#include "train/control/ranks_of_workers.hpp"

namespace fast::train {

std::optional<std::size_t> RanksOfWorkers::rank_of(int worker) const {
  const int rank = seats_ ? seats_->holder(worker) : worker;
  if (rank == exchange::nobody) return std::nullopt;
  return static_cast<std::size_t>(rank);
}

bool RanksOfWorkers::is_on_seat(std::size_t rank) const {
  return !seats_ || seats_->takes_part(static_cast<int>(rank));
}

std::vector<int> RanksOfWorkers::workers_that(
    const std::function<bool(std::size_t rank)>& are) const {
  std::vector<int> workers;
  const int all = seats_ ? seats_->seats() : ranks_;
  for (int worker = 0; worker < all; ++worker) {
    const auto rank = rank_of(worker);
    if (rank && are(*rank)) workers.push_back(worker);
  }
  return workers;
}

}  // namespace fast::train
