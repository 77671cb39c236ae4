#include "exchange/seats/seat_growth.hpp"

#include <algorithm>

namespace fast::exchange {
namespace {

/// From the last round that a worker begins unknowing to the first one with more workers. The
/// publications for that one are made in the round before it.
constexpr std::int64_t rounds_to_prepare = 2;
/// Later than the last round of any run: workers that have answered go on, and nobody joins.
constexpr std::int64_t never = std::int64_t{1} << 36;

}  // namespace

void SeatGrowth::request() {
  SeatRecords& records = table_.records();
  records.want(std::max(records.newest_wanted(), records.newest_settled().number) + 1);
}

void SeatGrowth::tick() {
  SeatRecords& records = table_.records();
  if (records.newest_wanted() <= records.newest_settled().number) return;
  answer();
  settle();
}

bool SeatGrowth::is_busy() const {
  const SeatRecords& records = table_.records();
  const std::uint64_t settled = records.newest_settled().number;
  return records.newest_wanted() > settled && trains(records.rank()) &&
         some_have_answered(settled + 1);
}

bool SeatGrowth::trains(int rank) const {
  return table_.takes_part(rank) && !table_.is_replaced(rank) &&
         table_.records().status(rank) == WorkerStatus::running;
}

bool SeatGrowth::has_newcomer(std::uint64_t growth) const {
  const int holder = table_.holder(table_.founders() + static_cast<int>(growth) - 1);
  return holder != nobody && !seating_.signs().is_gone(holder);
}

bool SeatGrowth::some_have_answered(std::uint64_t growth) const {
  const SeatRecords& records = table_.records();
  for (int rank = 0; rank < records.size(); ++rank) {
    if (records.answer_of(rank).number >= growth) return true;
  }
  return false;
}

/// To take another seat than the new one.
bool SeatGrowth::a_spare_prepares(std::uint64_t growth) const {
  return seating_.others_are_claimed(table_.founders() + static_cast<int>(growth) - 1);
}

/// Whether all that train have come to the last growth, and those that joined before train, too.
/// Else a worker that answers would wait for slow ones, or they would begin in a run that has grown
/// once more.
bool SeatGrowth::all_have_entered(NumberedGrowth last) const {
  const SeatRecords& records = table_.records();
  if (last.number == 0) return true;
  for (int rank = 0; rank < records.size(); ++rank) {
    if (seating_.signs().is_gone(rank)) continue;
    const auto seat = table_.seat_of(rank);
    const bool joins = seat && *seat >= table_.founders() && table_.takes_part(rank) &&
                       records.status(rank) < WorkerStatus::running &&
                       *seat < table_.founders() + static_cast<int>(last.number);
    if (joins) return false;
    if (trains(rank) && table_.rounds(rank) < last.round) return false;
  }
  return true;
}

/// When one worker has answered, all do: it would wait for the others.
void SeatGrowth::answer() {
  SeatRecords& records = table_.records();
  const std::uint64_t growth = records.newest_settled().number + 1;
  if (!begun_ || !allowed_ || !trains(table_.rank())) return;
  if (static_cast<std::uint64_t>(table_.entered()) + 1 != growth) return;
  if (records.answer_of(table_.rank()).number >= growth) return;
  const bool first = !some_have_answered(growth);
  const bool may_be_first = has_newcomer(growth) && !a_spare_prepares(growth) &&
                            all_have_entered(records.newest_settled());
  if (first && !may_be_first) return;
  records.answer({growth, *begun_ + ahead_});
}

void SeatGrowth::settle() {
  SeatRecords& records = table_.records();
  const std::uint64_t growth = records.newest_settled().number + 1;
  if (!allowed_ || !trains(table_.rank()) || a_spare_prepares(growth)) return;
  std::int64_t last = 0;
  for (int rank = 0; rank < records.size(); ++rank) {
    if (has_ended(records.status(rank))) last = std::max(last, table_.rounds(rank));
    const NumberedGrowth answer = records.answer_of(rank);
    if (answer.number >= growth) last = std::max(last, answer.round);
    if (!trains(rank) || seating_.signs().is_gone(rank)) continue;
    if (rank < table_.rank() || answer.number < growth) return;
  }
  records.settle({growth, first_round_from(last + rounds_to_prepare)});
}

std::int64_t SeatGrowth::first_round_from(std::int64_t round) const {
  const std::int64_t every = std::max<std::int64_t>(1, allowed_->every);
  const std::int64_t after = std::max<std::int64_t>(0, round - allowed_->first);
  const std::int64_t found = allowed_->first + (after + every - 1) / every * every;
  return found < allowed_->before ? found : never;
}

std::optional<NumberedGrowth> SeatGrowth::coming() const {
  const NumberedGrowth settled = table_.records().newest_settled();
  const bool is_known =
      table_.holder(table_.founders() + static_cast<int>(settled.number) - 1) != nobody;
  if (settled.number <= static_cast<std::uint64_t>(table_.entered()) || !is_known)
    return std::nullopt;
  return settled;
}

bool SeatGrowth::begin(std::int64_t rounds) {
  const NumberedGrowth settled = table_.records().newest_settled();
  const auto number = static_cast<int>(settled.number);
  if (number > 0 && table_.holder(table_.founders() + number - 1) == nobody) return false;
  const int entered = rounds >= settled.round ? number : table_.past_growths();
  table_.enter(std::max(table_.entered(), entered));
  if (number > 0 && table_.entered() == number) entered_in_ = settled.round;
  begun_ = rounds;
  return true;
}

GrowthTurn SeatGrowth::take_turn(std::int64_t rounds, std::int64_t ahead) {
  ahead_ = ahead;
  const auto settled = coming();
  if (settled && rounds >= settled->round) return GrowthTurn::enter;
  const NumberedGrowth answer = table_.records().answer_of(table_.rank());
  const std::uint64_t known =
      settled ? settled->number : static_cast<std::uint64_t>(table_.entered());
  if (answer.number > known && rounds > answer.round) return GrowthTurn::hold;
  begun_ = rounds;
  return GrowthTurn::go;
}

void SeatGrowth::enter() {
  const NumberedGrowth settled = table_.records().newest_settled();
  table_.enter(static_cast<int>(settled.number));
  entered_in_ = settled.round;
  if (allowed_ && allowed_->every > 1) allowed_.reset();
}

}  // namespace fast::exchange
