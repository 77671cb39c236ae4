#include "membership/rank_map.hpp"

#include <algorithm>
#include <map>

namespace fast::membership {

using Phase = SeatClaim::Phase;

RankMap::RankMap(const RecordBoard& board, int founders)
    : records_(board), growths_(board, word::growth), founders_(founders) {}

int RankMap::open_seats() const {
  const std::uint64_t settled = growths_.settled().number;
  const std::uint64_t open = std::max(settled, std::min(growths_.proposed(), settled + 1));
  return std::min(founders_ + static_cast<int>(open), records_.size());
}

int RankMap::begun_growths() const {
  const NumberedRound settled = growths_.settled();
  const auto number = static_cast<int>(settled.number);
  if (number == 0) return 0;
  if (holder(founders_ + number - 1) == nobody) return number - 1;  // its news are on the way
  return furthest_round() >= settled.round ? number : number - 1;
}

int RankMap::past_growths() const {
  return std::max(0, static_cast<int>(growths_.settled().number) - 1);
}

std::int64_t RankMap::furthest_round() const {
  std::int64_t furthest = 0;
  for (int rank = 0; rank < records_.size(); ++rank) furthest = std::max(furthest, rounds(rank));
  return furthest;
}

std::int64_t RankMap::most_republished() const {
  std::int64_t most = 0;
  for (int rank = 0; rank < records_.size(); ++rank)
    most = std::max(most, records_.republished(rank));
  return most;
}

int RankMap::holder(int seat) const {
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

std::optional<int> RankMap::seat_of(int rank) const {
  if (!is_spare(rank)) return rank;
  const SeatClaim claim = records_.claim(rank);
  if (!claim.was_seated()) return std::nullopt;
  return claim.seat;
}

std::optional<int> RankMap::own_seat() const {
  const SeatClaim claim = records_.claim(rank());
  if (is_spare(rank()) && claim.phase == Phase::claiming) return claim.seat;
  return seat_of(rank());
}

bool RankMap::takes_part(int rank) const {
  return !is_spare(rank) || records_.claim(rank).phase == Phase::seated;
}

bool RankMap::has_begun(int rank) const {
  return takes_part(rank) && (!is_spare(rank) || records_.status(rank) != WorkerStatus::starting);
}

std::vector<int> RankMap::workers_that(const std::function<bool(int rank)>& are) const {
  std::vector<int> workers;
  for (int seat = 0; seat < seats(); ++seat) {
    const int sits = holder(seat);
    if (sits != nobody && are(sits)) workers.push_back(seat);
  }
  return workers;
}

int RankMap::number_of(int rank) const {
  const auto seat = rank == this->rank() ? own_seat() : seat_of(rank);
  return seat.value_or(rank);
}

std::vector<int> RankMap::joined() const {
  std::vector<int> seats;
  const int growths = std::max(entered(), begun_growths());
  for (int seat = founders(); seat < founders() + growths; ++seat) seats.push_back(seat);
  return seats;
}

bool RankMap::has_seat() const {
  const auto seat = seat_of(rank());
  return seat && takes_part(rank()) && holder(*seat) == rank();
}

bool RankMap::is_replaced(int rank) const {
  const auto seat = seat_of(rank);
  return seat && (holder(*seat) != rank || !takes_part(rank));
}

std::vector<int> RankMap::taken() const {
  std::vector<int> taken;
  for (int seat = 0; seat < records_.size(); ++seat) {
    const int sits = holder(seat);
    if (sits == nobody || !is_spare(sits) || !takes_part(sits)) continue;
    if (seat < founders_ || records_.claim(sits).version > 1) taken.push_back(seat);
  }
  return taken;
}

bool RankMap::has_begun() const {
  for (int rank = 0; rank < records_.size(); ++rank) {
    const WorkerStatus status = records_.status(rank);
    if (status == WorkerStatus::running || has_ended(status)) return true;
  }
  return false;
}

std::uint64_t RankMap::newest_version(int seat) const {
  std::uint64_t newest = 0;
  for (int spare = founders_; spare < records_.size(); ++spare) {
    const SeatClaim claim = records_.claim(spare);
    if (claim.seat == seat) newest = std::max(newest, claim.version);
  }
  return newest;
}

namespace {

/// Those that have trained there, in their order. Of spares with equal claims the lower rank held
/// it.
std::vector<int> past_holders(const RankMap& map, int seat) {
  const SeatRecords& records = map.records();
  std::map<std::uint64_t, int> by_version;
  if (seat < map.founders()) by_version[0] = seat;
  for (int spare = map.founders(); spare < records.size(); ++spare) {
    const SeatClaim claim = records.claim(spare);
    if (claim.was_seated() && claim.seat == seat && records.work_of(spare).began_in)
      by_version.try_emplace(claim.version, spare);
  }
  std::vector<int> holders;
  for (const auto& [version, rank] : by_version) holders.push_back(rank);
  return holders;
}

/// The first so many rounds.
void drop_rounds(std::vector<RoundSpan>& spans, std::int64_t count) {
  for (RoundSpan& span : spans) {
    const std::int64_t dropped = std::min(count, std::max<std::int64_t>(0, span.end - span.begin));
    span.begin += dropped;
    count -= dropped;
  }
  std::erase_if(spans, [](const RoundSpan& span) { return span.begin >= span.end; });
}

}  // namespace

std::vector<RoundSpan> left_out_before(const RankMap& map, int seat) {
  std::vector<RoundSpan> spans;
  const std::vector<int> holders = past_holders(map, seat);
  for (std::size_t k = 1; k + 1 < holders.size(); ++k) {
    const SpareWork work = map.records().work_of(holders[k]);
    spans.push_back({map.rounds(holders[k - 1]), *work.began_in});
    drop_rounds(spans, work.made_up);
  }
  return spans;
}

}  // namespace fast::membership
