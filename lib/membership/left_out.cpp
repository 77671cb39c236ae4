#include "membership/left_out.hpp"

#include <algorithm>
#include <map>

namespace fast::membership {
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
