#include "exchange/seats/seating.hpp"

#include <algorithm>

namespace fast::exchange {
namespace {

using Phase = SeatClaim::Phase;

constexpr double longest_claim_s = 5;
/// Of a growth, that are passed in seconds; or in minutes, but few runs grow with such rounds.
constexpr std::int64_t rounds_near = 1000;

}  // namespace

Seating::Seating(SeatRecords records, int founders, double silent_after_s, double news_s)
    : records_(std::move(records)),
      founders_(founders),
      silent_after_s_(silent_after_s),
      news_s_(news_s),
      signs_(static_cast<std::size_t>(records_.size())),
      gone_(signs_.size()),
      vacant_at_s_(signs_.size(), -1) {}

/// Those that have holders or shall have some.
int Seating::open_seats() const {
  const std::uint64_t settled = records_.newest_settled().number;
  const std::uint64_t open = std::max(settled, std::min(records_.newest_wanted(), settled + 1));
  return std::min(founders_ + static_cast<int>(open), records_.size());
}

int Seating::begun_growths() const {
  const NumberedGrowth settled = records_.newest_settled();
  const auto number = static_cast<int>(settled.number);
  if (number == 0) return 0;
  if (holder(founders_ + number - 1) == nobody) return number - 1;  // its news are on the way
  for (int rank = 0; rank < records_.size(); ++rank) {
    if (records_.progress(rank) * steps_ >= settled.round) return number;
  }
  return number - 1;
}

int Seating::past_growths() const {
  return std::max(0, static_cast<int>(records_.newest_settled().number) - 1);
}

int Seating::spares_left() const {
  int free = static_cast<int>(free_spares().size());
  const int wanted = founders_ + static_cast<int>(records_.newest_wanted());
  for (int seat = founders_; seat < wanted; ++seat) {
    if (seat >= records_.size() || (holder(seat) == nobody && !is_claimed(seat))) --free;
  }
  return free;
}

int Seating::holder(int seat) const {
  int holder = seat < founders_ ? seat : nobody;
  std::uint64_t version = 0;
  for (int spare = founders_; spare < records_.size(); ++spare) {
    const SeatClaim claim = records_.claim(spare);
    const bool held = claim.phase == Phase::seated || claim.phase == Phase::vacated;
    if (!held || claim.seat != seat || claim.version <= version) continue;
    holder = spare;
    version = claim.version;
  }
  return holder;
}

std::optional<int> Seating::seat_of(int rank) const {
  if (!is_spare(rank)) return rank;
  const SeatClaim claim = records_.claim(rank);
  if (claim.phase != Phase::seated && claim.phase != Phase::vacated) return std::nullopt;
  return claim.seat;
}

std::optional<int> Seating::own_seat() const {
  const SeatClaim claim = records_.claim(rank());
  if (is_spare(rank()) && claim.phase == Phase::claiming) return claim.seat;
  return seat_of(rank());
}

bool Seating::takes_part(int rank) const {
  return !is_spare(rank) || records_.claim(rank).phase == Phase::seated;
}

bool Seating::has_seat() const {
  const auto seat = seat_of(rank());
  return seat && takes_part(rank()) && holder(*seat) == rank();
}

bool Seating::is_replaced(int rank) const {
  const auto seat = seat_of(rank);
  return seat && (holder(*seat) != rank || !takes_part(rank));
}

std::vector<int> Seating::taken() const {
  std::vector<int> taken;
  for (int seat = 0; seat < records_.size(); ++seat) {
    const int sits = holder(seat);
    if (sits == nobody || !is_spare(sits) || !takes_part(sits)) continue;
    if (seat < founders_ || records_.claim(sits).version > 1) taken.push_back(seat);
  }
  return taken;
}

void Seating::look(double elapsed_s, const std::vector<int>& died) {
  time_s_ += elapsed_s;
  died_ = died;
  for (int rank = 0; rank < records_.size(); ++rank) {
    const auto r = static_cast<std::size_t>(rank);
    const std::uint64_t beat = records_.beat(rank);
    if (beat != signs_[r].beat) signs_[r] = {beat, time_s_};
    const bool silent = rank != this->rank() && time_s_ - signs_[r].at_s > silent_after_s_;
    const bool died_now = std::find(died.begin(), died.end(), rank) != died.end();
    const bool vacated = is_spare(rank) && records_.claim(rank).phase == Phase::vacated;
    gone_[r] = silent || died_now || vacated;
  }
  const bool began = has_begun();
  for (int seat = 0; seat < open_seats(); ++seat) {
    const int sits = holder(seat);
    const bool is_empty =
        sits == nobody || (is_gone(sits) && records_.status(sits) < WorkerStatus::finished);
    const bool is_vacant = began && is_empty;
    double& since = vacant_at_s_[static_cast<std::size_t>(seat)];
    since = !is_vacant ? -1 : since < 0 ? time_s_ : since;
  }
}

bool Seating::is_gone(int rank) const { return gone_[static_cast<std::size_t>(rank)]; }

bool Seating::has_begun() const {
  for (int rank = 0; rank < records_.size(); ++rank) {
    const WorkerStatus status = records_.status(rank);
    if (status == WorkerStatus::running || has_ended(status)) return true;
  }
  return false;
}

bool Seating::any_is_lost() const {
  for (int rank = 0; rank < records_.size(); ++rank) {
    if (is_gone(rank) && records_.status(rank) < WorkerStatus::finished) return true;
  }
  return false;
}

bool Seating::anyone_trains() const {
  for (int seat = 0; seat < open_seats(); ++seat) {
    const int sits = holder(seat);
    if (sits == nobody) continue;
    if (!is_gone(sits) && records_.status(sits) == WorkerStatus::running) return true;
  }
  return false;
}

bool Seating::all_have_ended() const {
  for (int seat = 0; seat < founders_ + begun_growths(); ++seat) {
    const int sits = holder(seat);
    if (sits == nobody) continue;
    if (!is_gone(sits) && records_.status(sits) < WorkerStatus::finished) return false;
  }
  return true;
}

std::vector<int> Seating::vacant() const {
  std::vector<int> vacant;
  for (int seat = 0; seat < open_seats(); ++seat) {
    if (vacant_at_s_[static_cast<std::size_t>(seat)] >= 0) vacant.push_back(seat);
  }
  return vacant;
}

std::vector<int> Seating::free_spares() const {
  std::vector<int> free;
  for (int spare = founders_; spare < records_.size(); ++spare) {
    if (!is_gone(spare) && records_.claim(spare).phase == Phase::none) free.push_back(spare);
  }
  return free;
}

/// By a spare that lives.
bool Seating::is_claimed(int seat) const {
  for (int spare = founders_; spare < records_.size(); ++spare) {
    const SeatClaim claim = records_.claim(spare);
    if (claim.phase == Phase::claiming && claim.seat == seat && !is_gone(spare)) return true;
  }
  return false;
}

bool Seating::others_are_claimed(int but) const {
  for (int spare = founders_; spare < records_.size(); ++spare) {
    const SeatClaim claim = records_.claim(spare);
    if (claim.phase == Phase::claiming && claim.seat != but && !is_gone(spare)) return true;
  }
  return false;
}

std::uint64_t Seating::newest_version(int seat) const {
  std::uint64_t newest = 0;
  for (int spare = founders_; spare < records_.size(); ++spare) {
    const SeatClaim claim = records_.claim(spare);
    if (claim.seat == seat) newest = std::max(newest, claim.version);
  }
  return newest;
}

/// By a claim that is newer, or as new and of a lower rank.
bool Seating::is_beaten(const SeatClaim& own) const {
  for (int spare = founders_; spare < records_.size(); ++spare) {
    const SeatClaim claim = records_.claim(spare);
    const bool rivals = claim.phase == Phase::claiming || claim.phase == Phase::seated;
    if (spare == rank() || !rivals || claim.seat != own.seat || is_gone(spare)) continue;
    if (claim.version > own.version) return true;
    if (claim.version == own.version && (spare < rank() || claim.phase == Phase::seated))
      return true;
  }
  return false;
}

void Seating::claim_one() {
  std::vector<int> seats = vacant();
  std::erase_if(seats, [this](int seat) { return is_claimed(seat); });
  const std::vector<int> free = free_spares();
  const auto place = static_cast<std::size_t>(
      std::distance(free.begin(), std::find(free.begin(), free.end(), rank())));
  if (place >= seats.size() || place >= free.size() || !anyone_trains()) return;
  const int seat = seats[place];
  records_.set_claim({0, newest_version(seat) + 1, seat, Phase::claiming});
  claimed_at_s_ = time_s_;
}

void Seating::tick(double elapsed_s, const std::vector<int>& died) {
  records_.add_beat();
  look(elapsed_s, died);
  if (!is_spare(rank()) || accepted_) return;
  const SeatClaim own = records_.claim(rank());
  if (own.phase == Phase::none) claim_one();
  if (own.phase != Phase::claiming) return;
  const bool is_vacant = vacant_at_s_[static_cast<std::size_t>(own.seat)] >= 0;
  if (!is_vacant || is_beaten(own)) records_.set_claim({0, own.version, own.seat, Phase::none});
}

bool Seating::is_awaited(int seat) const {
  const double since = vacant_at_s_[static_cast<std::size_t>(seat)];
  if (since < 0) return false;
  if (is_claimed(seat)) return true;
  return !free_spares().empty() && anyone_trains() && time_s_ - since < news_s_ + longest_claim_s;
}

/// Of a spare on a new seat: the run is about to come to the round of its growth.
bool Seating::joins_soon() const {
  if (!is_spare(rank()) || !takes_part(rank())) return false;
  if (records_.status(rank()) != WorkerStatus::starting) return false;
  const NumberedGrowth settled = records_.newest_settled();
  if (records_.claim(rank()).seat >= founders_ + static_cast<int>(settled.number)) return false;
  std::int64_t furthest = 0;
  for (int rank = 0; rank < records_.size(); ++rank)
    furthest = std::max(furthest, records_.progress(rank) * steps_);
  return settled.round - furthest <= rounds_near;
}

bool Seating::is_busy() const {
  if (!anyone_trains()) return false;
  const bool claims = records_.claim(rank()).phase == Phase::claiming;
  return claims || joins_soon() || (!vacant().empty() && !free_spares().empty());
}

/// All ranks know of this rank's claim after news_s_. What they settled on without it, this rank
/// knows as much later; see SeatGrowth.
double Seating::news_of_claims_s() const {
  const std::uint64_t settled = records_.newest_settled().number;
  const bool is_old = records_.claim(rank()).seat < founders_ + static_cast<int>(settled);
  return is_old && records_.newest_wanted() > settled ? 2 * news_s_ : news_s_;
}

std::optional<SeatOffer> Seating::offered() const {
  const SeatClaim own = records_.claim(rank());
  if (own.phase != Phase::claiming || time_s_ - claimed_at_s_ <= news_of_claims_s())
    return std::nullopt;
  const int before = holder(own.seat);
  return SeatOffer{own.seat, own.version, before == nobody ? 0 : records_.progress(before),
                   std::max(0, own.seat - founders_ + 1)};
}

bool Seating::take() {
  look(0, died_);
  const SeatClaim own = records_.claim(rank());
  const bool is_vacant = vacant_at_s_[static_cast<std::size_t>(own.seat)] >= 0;
  const bool takes = is_vacant && !is_beaten(own);
  records_.set_claim({0, own.version, own.seat, takes ? Phase::seated : Phase::none});
  accepted_ = takes;
  return takes;
}

void Seating::release() {
  const SeatClaim own = records_.claim(rank());
  const bool held = own.phase == Phase::seated;
  records_.set_claim({0, own.version, own.seat, held ? Phase::vacated : Phase::released});
}

}  // namespace fast::exchange
