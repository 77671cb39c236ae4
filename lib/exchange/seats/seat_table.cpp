#include "exchange/seats/seat_table.hpp"

#include <algorithm>

namespace fast::exchange {

using Phase = SeatClaim::Phase;

SeatTable::SeatTable(SeatRecords records, int founders)
    : records_(std::move(records)), founders_(founders) {}

int SeatTable::open_seats() const {
  const std::uint64_t settled = records_.newest_settled().number;
  const std::uint64_t open = std::max(settled, std::min(records_.newest_wanted(), settled + 1));
  return std::min(founders_ + static_cast<int>(open), records_.size());
}

int SeatTable::begun_growths() const {
  const NumberedGrowth settled = records_.newest_settled();
  const auto number = static_cast<int>(settled.number);
  if (number == 0) return 0;
  if (holder(founders_ + number - 1) == nobody) return number - 1;  // its news are on the way
  return furthest_round() >= settled.round ? number : number - 1;
}

int SeatTable::past_growths() const {
  return std::max(0, static_cast<int>(records_.newest_settled().number) - 1);
}

std::int64_t SeatTable::furthest_round() const {
  std::int64_t furthest = 0;
  for (int rank = 0; rank < records_.size(); ++rank) furthest = std::max(furthest, rounds(rank));
  return furthest;
}

std::int64_t SeatTable::most_republished() const {
  std::int64_t most = 0;
  for (int rank = 0; rank < records_.size(); ++rank)
    most = std::max(most, records_.republished(rank));
  return most;
}

int SeatTable::holder(int seat) const {
  int holder = seat < founders_ ? seat : nobody;
  std::uint64_t version = 0;
  for (int spare = founders_; spare < records_.size(); ++spare) {
    const SeatClaim claim = records_.claim(spare);
    if (!claim.was_seated() || claim.seat != seat || claim.version <= version) continue;
    holder = spare;
    version = claim.version;
  }
  return holder;
}

std::optional<int> SeatTable::seat_of(int rank) const {
  if (!is_spare(rank)) return rank;
  const SeatClaim claim = records_.claim(rank);
  if (!claim.was_seated()) return std::nullopt;
  return claim.seat;
}

std::optional<int> SeatTable::own_seat() const {
  const SeatClaim claim = records_.claim(rank());
  if (is_spare(rank()) && claim.phase == Phase::claiming) return claim.seat;
  return seat_of(rank());
}

bool SeatTable::takes_part(int rank) const {
  return !is_spare(rank) || records_.claim(rank).phase == Phase::seated;
}

bool SeatTable::has_seat() const {
  const auto seat = seat_of(rank());
  return seat && takes_part(rank()) && holder(*seat) == rank();
}

bool SeatTable::is_replaced(int rank) const {
  const auto seat = seat_of(rank);
  return seat && (holder(*seat) != rank || !takes_part(rank));
}

std::vector<int> SeatTable::taken() const {
  std::vector<int> taken;
  for (int seat = 0; seat < records_.size(); ++seat) {
    const int sits = holder(seat);
    if (sits == nobody || !is_spare(sits) || !takes_part(sits)) continue;
    if (seat < founders_ || records_.claim(sits).version > 1) taken.push_back(seat);
  }
  return taken;
}

bool SeatTable::has_begun() const {
  for (int rank = 0; rank < records_.size(); ++rank) {
    const WorkerStatus status = records_.status(rank);
    if (status == WorkerStatus::running || has_ended(status)) return true;
  }
  return false;
}

std::uint64_t SeatTable::newest_version(int seat) const {
  std::uint64_t newest = 0;
  for (int spare = founders_; spare < records_.size(); ++spare) {
    const SeatClaim claim = records_.claim(spare);
    if (claim.seat == seat) newest = std::max(newest, claim.version);
  }
  return newest;
}

}  // namespace fast::exchange
