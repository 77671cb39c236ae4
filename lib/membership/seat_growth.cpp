#include "membership/seat_growth.hpp"

#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/mpi/environment.hpp>

namespace fast::membership {
namespace {

/// From the last round that a worker begins unknowing to the first one with more workers. The
/// publications for that one are made in the round before it.
constexpr std::int64_t rounds_to_prepare = 2;
/// Later than the last round of any run: workers that have answered go on, and nobody joins.
constexpr std::int64_t never = std::int64_t{1} << 36;
constexpr Seconds longest_news{10};

}  // namespace

void require_nobody_failed(const RankMap& map) {
  const SeatRecords& records = map.records();
  for (int rank = 0; rank < records.size(); ++rank) {
    require(records.status(rank) != WorkerStatus::failed, ErrorKind::peer_failed,
            "Worker: spare {} ends as a worker failed", map.rank());
  }
}

void SeatGrowth::allow(const GrowthRounds& rounds) {
  const auto lock = coordinator_.lock();
  allowed_ = rounds;
}

bool SeatGrowth::is_allowed() const {
  const auto lock = coordinator_.lock();
  return allowed_.has_value();
}

void SeatGrowth::request() {
  const auto lock = coordinator_.lock();
  growths_.propose(std::max(growths_.proposed(), growths_.settled().number) + 1);
}

int SeatGrowth::wanted() const {
  return static_cast<int>(std::max(growths_.proposed(), growths_.settled().number));
}

int SeatGrowth::spares_left() const {
  const auto lock = coordinator_.lock();
  return seating_.spares_left();
}

void SeatGrowth::advance() {
  if (!growths_.is_open()) return;
  answer();
  settle();
}

bool SeatGrowth::is_busy() const {
  return growths_.is_open() && trains(map_.rank()) &&
         some_have_answered(growths_.settled().number + 1);
}

bool SeatGrowth::trains(int rank) const {
  return map_.takes_part(rank) && !map_.is_replaced(rank) &&
         map_.records().status(rank) == WorkerStatus::running;
}

bool SeatGrowth::has_newcomer(std::uint64_t growth) const {
  const int holder = map_.holder(map_.founders() + static_cast<int>(growth) - 1);
  return holder != nobody && !seating_.is_gone(holder);
}

bool SeatGrowth::some_have_answered(std::uint64_t growth) const {
  for (int rank = 0; rank < map_.records().size(); ++rank) {
    if (growths_.bound_of(rank).number >= growth) return true;
  }
  return false;
}

/// To take another seat than the new one.
bool SeatGrowth::a_spare_prepares(std::uint64_t growth) const {
  return seating_.others_are_claimed(map_.founders() + static_cast<int>(growth) - 1);
}

/// Whether all that train have come to the last growth, and those that joined before train, too.
/// Else a worker that answers would wait for slow ones, or they would begin in a run that has grown
/// once more.
bool SeatGrowth::all_have_entered(NumberedRound last) const {
  const SeatRecords& records = map_.records();
  if (last.number == 0) return true;
  for (int rank = 0; rank < records.size(); ++rank) {
    if (seating_.is_gone(rank)) continue;
    const auto seat = map_.seat_of(rank);
    const bool joins = seat && *seat >= map_.founders() && map_.takes_part(rank) &&
                       records.status(rank) < WorkerStatus::running &&
                       *seat < map_.founders() + static_cast<int>(last.number);
    if (joins) return false;
    if (trains(rank) && map_.rounds(rank) < last.round) return false;
  }
  return true;
}

/// When one worker has answered, all do: it would wait for the others.
void SeatGrowth::answer() {
  const NumberedRound last = growths_.settled();
  const std::uint64_t growth = last.number + 1;
  if (!begun_ || !allowed_ || !trains(map_.rank())) return;
  if (static_cast<std::uint64_t>(map_.entered()) + 1 != growth) return;
  if (growths_.own_bound().number >= growth) return;
  const bool first = !some_have_answered(growth);
  const bool may_be_first =
      has_newcomer(growth) && !a_spare_prepares(growth) && all_have_entered(last);
  if (first && !may_be_first) return;
  growths_.bind({growth, *begun_ + ahead_});
}

void SeatGrowth::settle() {
  const SeatRecords& records = map_.records();
  const std::uint64_t growth = growths_.settled().number + 1;
  if (!allowed_ || !trains(map_.rank()) || a_spare_prepares(growth)) return;
  const auto bound = growths_.last_bound(growth, [this](int rank) {
    const bool is_awaited = trains(rank) && !seating_.is_gone(rank);
    return is_awaited ? RoundAgreement::Voice::settles : RoundAgreement::Voice::counts;
  });
  if (!bound) return;
  std::int64_t last = *bound;
  for (int rank = 0; rank < records.size(); ++rank)
    if (has_ended(records.status(rank))) last = std::max(last, map_.rounds(rank));
  growths_.settle({growth, first_round_from(last + rounds_to_prepare)});
}

std::int64_t SeatGrowth::first_round_from(std::int64_t round) const {
  const std::int64_t every = std::max<std::int64_t>(1, allowed_->every);
  const std::int64_t after = std::max<std::int64_t>(0, round - allowed_->first);
  const std::int64_t found = allowed_->first + (after + every - 1) / every * every;
  return found < allowed_->before ? found : never;
}

std::optional<NumberedRound> SeatGrowth::next() const {
  const NumberedRound settled = growths_.settled();
  const bool is_known =
      map_.holder(map_.founders() + static_cast<int>(settled.number) - 1) != nobody;
  if (settled.number <= static_cast<std::uint64_t>(map_.entered()) || !is_known)
    return std::nullopt;
  return settled;
}

std::optional<NumberedRound> SeatGrowth::coming() const {
  const auto lock = coordinator_.lock();
  return due_ ? due_ : next();
}

void SeatGrowth::enter() {
  const auto lock = coordinator_.lock();
  const NumberedRound entered = due_.value_or(growths_.settled());
  due_.reset();
  map_.enter(static_cast<int>(entered.number));
  entered_in_ = entered.round;
  if (allowed_ && allowed_->every > 1) allowed_.reset();
}

std::optional<std::int64_t> SeatGrowth::entered_in() const {
  const auto lock = coordinator_.lock();
  return entered_in_;
}

RoundDecision SeatGrowth::turn(std::int64_t rounds, std::int64_t ahead) {
  const auto lock = coordinator_.lock();
  return look(rounds, ahead);
}

RoundDecision SeatGrowth::look(std::int64_t rounds, std::int64_t ahead) {
  ahead_ = ahead;
  const auto settled = next();
  due_ = settled && rounds >= settled->round ? settled : std::nullopt;
  if (due_) return RoundDecision::enter;
  const std::uint64_t known =
      settled ? settled->number : static_cast<std::uint64_t>(map_.entered());
  if (growths_.holds(rounds, known)) return RoundDecision::hold;
  begun_ = rounds;
  return RoundDecision::go;
}

RoundDecision SeatGrowth::take_turn(std::int64_t rounds, std::int64_t ahead, Seconds deadline) {
  const Deadline limit(deadline);
  auto lock = coordinator_.lock();
  for (;;) {
    const RoundDecision turn = look(rounds, ahead);
    if (turn != RoundDecision::hold || !map_.has_seat()) return turn;
    require(!limit.expired(), ErrorKind::deadline,
            "Worker: worker {} waited {:.1f} s in round {} for the others to agree when a worker "
            "joins; look for one that hangs",
            map_.own_seat().value_or(map_.rank()), limit.elapsed_s(), rounds);
    coordinator_.wait(lock);
  }
}

/// False if not all news of the last growth have come.
bool SeatGrowth::try_to_begin(std::int64_t rounds) {
  const NumberedRound settled = growths_.settled();
  const auto number = static_cast<int>(settled.number);
  if (number > 0 && map_.holder(map_.founders() + number - 1) == nobody) return false;
  const int entered = rounds >= settled.round ? number : map_.past_growths();
  map_.enter(std::max(map_.entered(), entered));
  if (number > 0 && map_.entered() == number) entered_in_ = settled.round;
  begun_ = rounds;
  return true;
}

void SeatGrowth::begin(std::int64_t rounds) {
  const Deadline limit(longest_news);
  auto lock = coordinator_.lock();
  while (!try_to_begin(rounds) && !limit.expired()) coordinator_.wait(lock);
}

/// The status first, so that the rank is not lost.
void SeatGrowth::end_unneeded() {
  map_.records().set_status(WorkerStatus::finished);
  seating_.release();
  map_.enter(map_.begun_growths());
}

std::optional<std::int64_t> SeatGrowth::wait_for(int number) {
  auto lock = coordinator_.lock();
  while (map_.begun_growths() < number) {
    require_nobody_failed(map_);
    if (seating_.all_have_ended() || mpi::asked_to_leave()) {
      end_unneeded();
      return std::nullopt;
    }
    coordinator_.wait(lock);
  }
  const NumberedRound settled = growths_.settled();
  // The rounds of earlier growths are not known any more.
  return settled.number == static_cast<std::uint64_t>(number) ? settled.round : -1;
}

}  // namespace fast::membership
