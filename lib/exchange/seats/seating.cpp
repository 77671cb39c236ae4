#include "exchange/seats/seating.hpp"

#include <algorithm>

namespace fast::exchange {
namespace {

using Phase = SeatClaim::Phase;

constexpr double longest_claim_s = 5;
/// Of a growth, that are passed in seconds; or in minutes, but few runs grow with such rounds.
constexpr std::int64_t rounds_near = 1000;

}  // namespace

Seating::Seating(SeatTable& table, double silent_after_s, double news_s)
    : table_(table),
      records_(table.records()),
      signs_(table, silent_after_s),
      news_s_(news_s),
      vacant_at_s_(static_cast<std::size_t>(records_.size()), -1) {}

int Seating::spares_left() const {
  int free = static_cast<int>(free_spares().size());
  const int wanted = table_.founders() + static_cast<int>(records_.newest_wanted());
  for (int seat = table_.founders(); seat < wanted; ++seat) {
    if (seat >= records_.size() || (table_.holder(seat) == nobody && !is_claimed(seat))) --free;
  }
  return free;
}

void Seating::note_vacancies() {
  const bool began = table_.has_begun();
  for (int seat = 0; seat < table_.open_seats(); ++seat) {
    const int sits = table_.holder(seat);
    const bool is_empty =
        sits == nobody || (signs_.is_gone(sits) && records_.status(sits) < WorkerStatus::finished);
    double& since = vacant_at_s_[static_cast<std::size_t>(seat)];
    since = !(began && is_empty) ? -1 : since < 0 ? signs_.time_s() : since;
  }
}

bool Seating::anyone_trains() const {
  for (int seat = 0; seat < table_.open_seats(); ++seat) {
    const int sits = table_.holder(seat);
    if (sits == nobody) continue;
    if (!signs_.is_gone(sits) && records_.status(sits) == WorkerStatus::running) return true;
  }
  return false;
}

bool Seating::all_have_ended() const {
  for (int seat = 0; seat < table_.founders() + table_.begun_growths(); ++seat) {
    const int sits = table_.holder(seat);
    if (sits == nobody) continue;
    if (!signs_.is_gone(sits) && records_.status(sits) < WorkerStatus::finished) return false;
  }
  return true;
}

std::vector<int> Seating::vacant() const {
  std::vector<int> vacant;
  for (int seat = 0; seat < table_.open_seats(); ++seat) {
    if (is_vacant(seat)) vacant.push_back(seat);
  }
  return vacant;
}

std::vector<int> Seating::free_spares() const {
  std::vector<int> free;
  for (int spare = table_.founders(); spare < records_.size(); ++spare) {
    if (!signs_.is_gone(spare) && records_.claim(spare).phase == Phase::none) free.push_back(spare);
  }
  return free;
}

/// By a spare that lives.
bool Seating::is_claimed(int seat) const {
  for (int spare = table_.founders(); spare < records_.size(); ++spare) {
    const SeatClaim claim = records_.claim(spare);
    if (claim.phase == Phase::claiming && claim.seat == seat && !signs_.is_gone(spare)) return true;
  }
  return false;
}

bool Seating::others_are_claimed(int but) const {
  for (int spare = table_.founders(); spare < records_.size(); ++spare) {
    const SeatClaim claim = records_.claim(spare);
    if (claim.phase == Phase::claiming && claim.seat != but && !signs_.is_gone(spare)) return true;
  }
  return false;
}

/// By a claim that is newer, or as new and of a lower rank.
bool Seating::is_beaten(const SeatClaim& own) const {
  for (int spare = table_.founders(); spare < records_.size(); ++spare) {
    const SeatClaim claim = records_.claim(spare);
    const bool rivals = claim.phase == Phase::claiming || claim.phase == Phase::seated;
    if (spare == table_.rank() || !rivals || claim.seat != own.seat || signs_.is_gone(spare))
      continue;
    if (claim.version > own.version) return true;
    if (claim.version == own.version && (spare < table_.rank() || claim.phase == Phase::seated))
      return true;
  }
  return false;
}

void Seating::claim_one() {
  std::vector<int> seats = vacant();
  std::erase_if(seats, [this](int seat) { return is_claimed(seat); });
  const std::vector<int> free = free_spares();
  const auto place = static_cast<std::size_t>(
      std::distance(free.begin(), std::find(free.begin(), free.end(), table_.rank())));
  if (place >= seats.size() || place >= free.size() || !anyone_trains()) return;
  const int seat = seats[place];
  records_.set_claim({0, table_.newest_version(seat) + 1, seat, Phase::claiming});
  claimed_at_s_ = signs_.time_s();
}

void Seating::tick(double elapsed_s, const std::vector<int>& died) {
  records_.add_beat();
  signs_.look(elapsed_s, died);
  note_vacancies();
  if (!table_.is_spare(table_.rank()) || accepted_) return;
  const SeatClaim own = records_.claim(table_.rank());
  if (own.phase == Phase::none) claim_one();
  if (own.phase != Phase::claiming) return;
  if (!is_vacant(own.seat) || is_beaten(own))
    records_.set_claim({0, own.version, own.seat, Phase::none});
}

bool Seating::is_awaited(int seat) const {
  const double since = vacant_at_s_[static_cast<std::size_t>(seat)];
  if (since < 0) return false;
  if (is_claimed(seat)) return true;
  return !free_spares().empty() && anyone_trains() &&
         signs_.time_s() - since < news_s_ + longest_claim_s;
}

/// Of a spare on a new seat: the run is about to come to the round of its growth.
bool Seating::joins_soon() const {
  if (!table_.is_spare(table_.rank()) || !table_.takes_part(table_.rank())) return false;
  if (records_.status(table_.rank()) != WorkerStatus::starting) return false;
  const NumberedGrowth settled = records_.newest_settled();
  if (records_.claim(table_.rank()).seat >= table_.founders() + static_cast<int>(settled.number))
    return false;
  return settled.round - table_.furthest_round() <= rounds_near;
}

bool Seating::is_busy() const {
  if (!anyone_trains()) return false;
  const bool claims = records_.claim(table_.rank()).phase == Phase::claiming;
  return claims || joins_soon() || (!vacant().empty() && !free_spares().empty());
}

/// All ranks know of this rank's claim after news_s_. What they settled on without it, this rank
/// knows as much later; see SeatGrowth.
double Seating::news_of_claims_s() const {
  const std::uint64_t settled = records_.newest_settled().number;
  const bool is_old =
      records_.claim(table_.rank()).seat < table_.founders() + static_cast<int>(settled);
  return is_old && records_.newest_wanted() > settled ? 2 * news_s_ : news_s_;
}

std::optional<SeatOffer> Seating::offered() const {
  const SeatClaim own = records_.claim(table_.rank());
  if (own.phase != Phase::claiming || signs_.time_s() - claimed_at_s_ <= news_of_claims_s())
    return std::nullopt;
  const int before = table_.holder(own.seat);
  return SeatOffer{own.seat, own.version, before == nobody ? 0 : table_.rounds(before),
                   std::max(0, own.seat - table_.founders() + 1), table_.most_republished()};
}

bool Seating::take() {
  signs_.look_again();
  note_vacancies();
  const SeatClaim own = records_.claim(table_.rank());
  const bool takes = is_vacant(own.seat) && !is_beaten(own);
  records_.set_claim({0, own.version, own.seat, takes ? Phase::seated : Phase::none});
  accepted_ = takes;
  return takes;
}

void Seating::release() {
  const SeatClaim own = records_.claim(table_.rank());
  const bool held = own.phase == Phase::seated;
  records_.set_claim({0, own.version, own.seat, held ? Phase::vacated : Phase::released});
}

}  // namespace fast::exchange
