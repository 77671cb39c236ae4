#include "membership/seat_assignment.hpp"

#include <algorithm>

namespace fast::membership {
namespace {

using Phase = SeatClaim::Phase;

constexpr double longest_claim_s = 5;
/// Of a growth, that are passed in seconds; or in minutes, but few runs grow with such rounds.
constexpr std::int64_t rounds_near = 1000;

}  // namespace

SeatAssignment::SeatAssignment(RankMap& map, Liveness& liveness, double silent_after_s,
                               double news_s)
    : map_(map),
      records_(map.records()),
      liveness_(liveness),
      silent_after_s_(silent_after_s),
      news_s_(news_s),
      vacant_at_s_(static_cast<std::size_t>(records_.size()), -1) {}

bool SeatAssignment::is_gone(int rank) const {
  const bool vacated = map_.is_spare(rank) && records_.claim(rank).phase == Phase::vacated;
  return vacated || liveness_.has_died(rank) || liveness_.is_silent(rank, silent_after_s_);
}

bool SeatAssignment::any_is_lost() const {
  for (int rank = 0; rank < records_.size(); ++rank)
    if (is_gone(rank) && records_.status(rank) < WorkerStatus::finished) return true;
  return false;
}

int SeatAssignment::spares_left() const {
  int free = static_cast<int>(free_spares().size());
  const int wanted = map_.founders() + static_cast<int>(map_.growths().proposed());
  for (int seat = map_.founders(); seat < wanted; ++seat) {
    if (seat >= records_.size() || (map_.holder(seat) == nobody && !is_claimed(seat))) --free;
  }
  return free;
}

void SeatAssignment::note_vacancies() {
  const bool began = map_.has_begun();
  for (int seat = 0; seat < map_.open_seats(); ++seat) {
    const int sits = map_.holder(seat);
    const bool is_empty =
        sits == nobody || (is_gone(sits) && records_.status(sits) < WorkerStatus::finished);
    double& since = vacant_at_s_[static_cast<std::size_t>(seat)];
    since = !(began && is_empty) ? -1 : since < 0 ? liveness_.time_s() : since;
  }
}

bool SeatAssignment::anyone_trains() const {
  for (int seat = 0; seat < map_.open_seats(); ++seat) {
    const int sits = map_.holder(seat);
    if (sits == nobody) continue;
    if (!is_gone(sits) && records_.status(sits) == WorkerStatus::running) return true;
  }
  return false;
}

bool SeatAssignment::all_have_ended() const {
  for (int seat = 0; seat < map_.founders() + map_.begun_growths(); ++seat) {
    const int sits = map_.holder(seat);
    if (sits == nobody) continue;
    if (!is_gone(sits) && records_.status(sits) < WorkerStatus::finished) return false;
  }
  return true;
}

std::vector<int> SeatAssignment::vacant() const {
  std::vector<int> vacant;
  for (int seat = 0; seat < map_.open_seats(); ++seat) {
    if (is_vacant(seat)) vacant.push_back(seat);
  }
  return vacant;
}

std::vector<int> SeatAssignment::free_spares() const {
  std::vector<int> free;
  for (int spare = map_.founders(); spare < records_.size(); ++spare) {
    if (!is_gone(spare) && records_.claim(spare).phase == Phase::none) free.push_back(spare);
  }
  return free;
}

/// By a spare that lives.
bool SeatAssignment::is_claimed(int seat) const {
  for (int spare = map_.founders(); spare < records_.size(); ++spare) {
    const SeatClaim claim = records_.claim(spare);
    if (claim.phase == Phase::claiming && claim.seat == seat && !is_gone(spare)) return true;
  }
  return false;
}

bool SeatAssignment::others_are_claimed(int but) const {
  for (int spare = map_.founders(); spare < records_.size(); ++spare) {
    const SeatClaim claim = records_.claim(spare);
    if (claim.phase == Phase::claiming && claim.seat != but && !is_gone(spare)) return true;
  }
  return false;
}

/// By a claim that is newer, or as new and of a lower rank.
bool SeatAssignment::is_beaten(const SeatClaim& own) const {
  for (int spare = map_.founders(); spare < records_.size(); ++spare) {
    const SeatClaim claim = records_.claim(spare);
    const bool rivals = claim.phase == Phase::claiming || claim.phase == Phase::seated;
    if (spare == map_.rank() || !rivals || claim.seat != own.seat || is_gone(spare)) continue;
    if (claim.version > own.version) return true;
    if (claim.version == own.version && (spare < map_.rank() || claim.phase == Phase::seated))
      return true;
  }
  return false;
}

void SeatAssignment::claim_one() {
  std::vector<int> seats = vacant();
  std::erase_if(seats, [this](int seat) { return is_claimed(seat); });
  const std::vector<int> free = free_spares();
  const auto place =
      static_cast<std::size_t>(std::distance(free.begin(), std::ranges::find(free, map_.rank())));
  if (place >= seats.size() || place >= free.size() || !anyone_trains()) return;
  const int seat = seats[place];
  records_.set_claim({0, map_.newest_version(seat) + 1, seat, Phase::claiming});
  claimed_at_s_ = liveness_.time_s();
}

void SeatAssignment::tick() {
  note_vacancies();
  if (!map_.is_spare(map_.rank()) || accepted_) return;
  const SeatClaim own = records_.claim(map_.rank());
  if (own.phase == Phase::none) claim_one();
  if (own.phase != Phase::claiming) return;
  if (!is_vacant(own.seat) || is_beaten(own))
    records_.set_claim({0, own.version, own.seat, Phase::none});
}

bool SeatAssignment::is_awaited(int seat) const {
  const double since = vacant_at_s_[static_cast<std::size_t>(seat)];
  if (since < 0) return false;
  if (is_claimed(seat)) return true;
  return !free_spares().empty() && anyone_trains() &&
         liveness_.time_s() - since < news_s_ + longest_claim_s;
}

/// Of a spare on a new seat: the run is about to come to the round of its growth.
bool SeatAssignment::joins_soon() const {
  if (!map_.is_spare(map_.rank()) || !map_.takes_part(map_.rank())) return false;
  if (records_.status(map_.rank()) != WorkerStatus::starting) return false;
  const NumberedRound settled = map_.growths().settled();
  if (records_.claim(map_.rank()).seat >= map_.founders() + static_cast<int>(settled.number))
    return false;
  return settled.round - map_.furthest_round() <= rounds_near;
}

bool SeatAssignment::is_busy() const {
  if (!anyone_trains()) return false;
  const bool claims = records_.claim(map_.rank()).phase == Phase::claiming;
  return claims || joins_soon() || (!vacant().empty() && !free_spares().empty());
}

/// All ranks know of this rank's claim after news_s_. What they settled on without it, this rank
/// knows as much later; see SeatGrowth.
double SeatAssignment::news_of_claims_s() const {
  const std::uint64_t settled = map_.growths().settled().number;
  const bool is_old =
      records_.claim(map_.rank()).seat < map_.founders() + static_cast<int>(settled);
  return is_old && map_.growths().proposed() > settled ? 2 * news_s_ : news_s_;
}

std::optional<SeatOffer> SeatAssignment::offered() const {
  const SeatClaim own = records_.claim(map_.rank());
  if (own.phase != Phase::claiming || liveness_.time_s() - claimed_at_s_ <= news_of_claims_s())
    return std::nullopt;
  const int before = map_.holder(own.seat);
  return SeatOffer{own.seat, own.version, before == nobody ? 0 : map_.rounds(before),
                   std::max(0, own.seat - map_.founders() + 1), map_.most_republished()};
}

bool SeatAssignment::take() {
  liveness_.look_again();
  note_vacancies();
  const SeatClaim own = records_.claim(map_.rank());
  const bool takes = is_vacant(own.seat) && !is_beaten(own);
  records_.set_claim({0, own.version, own.seat, takes ? Phase::seated : Phase::none});
  accepted_ = takes;
  return takes;
}

void SeatAssignment::release() {
  const SeatClaim own = records_.claim(map_.rank());
  const bool held = own.phase == Phase::seated;
  records_.set_claim({0, own.version, own.seat, held ? Phase::vacated : Phase::released});
}

}  // namespace fast::membership
