// The edges that an exchange asks for, of whoever holds the seats.
#pragma once

#include <fast/algorithm/algorithm.hpp>
#include <fast/exchange/exchange.hpp>
#include <memory>
#include <mutex>

#include "exchange/seats/seat_keeper.hpp"
#include "worker/round_plan.hpp"

namespace fast::worker {

/// A spare opens its link before it knows its seat: until then it has no edges. Any thread may ask.
class SeatPlan {
 public:
  SeatPlan(algorithm::Declaration declared, std::shared_ptr<exchange::SeatKeeper> keeper)
      : declared_(std::move(declared)), keeper_(std::move(keeper)) {}

  /// The plan of this worker's seat.
  void set(std::shared_ptr<RoundPlan> plan);
  /// In ranks of Group::everyone().
  RoundEdges edges(std::int64_t combination) const;

 private:
  algorithm::Declaration declared_;
  std::shared_ptr<exchange::SeatKeeper> keeper_;  ///< null: seats are ranks
  mutable std::mutex mutex_;
  std::shared_ptr<RoundPlan> plan_;
};

}  // namespace fast::worker
