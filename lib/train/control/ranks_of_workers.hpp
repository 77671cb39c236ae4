// Which rank holds the seat of which worker. Without spares, rank k is worker k.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "exchange/seats/seat_table.hpp"

namespace fast::train {

class RanksOfWorkers {
 public:
  /// `seats`: null without spares. `ranks`: of all hosts.
  RanksOfWorkers(std::shared_ptr<const exchange::SeatTable> seats, int ranks)
      : seats_(std::move(seats)), ranks_(ranks) {}

  /// Empty while nobody holds that seat.
  std::optional<std::size_t> rank_of(int worker) const;
  /// False of a spare that has no seat, or has left it.
  bool is_on_seat(std::size_t rank) const;
  /// Ascending. `are`: true for the ranks to choose.
  std::vector<int> workers_that(const std::function<bool(std::size_t rank)>& are) const;

 private:
  std::shared_ptr<const exchange::SeatTable> seats_;
  int ranks_;
};

}  // namespace fast::train
