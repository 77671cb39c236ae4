#include "membership/round_agreement.hpp"

#include <algorithm>

namespace fast::membership {

std::optional<std::int64_t> RoundAgreement::last_bound(
    std::uint64_t number, const std::function<Voice(int rank)>& voice_of) const {
  if (voice_of(board_.rank()) != Voice::settles) return std::nullopt;
  std::int64_t last = 0;
  for (int rank = 0; rank < board_.size(); ++rank) {
    const Voice voice = voice_of(rank);
    if (voice == Voice::none) continue;
    if (voice == Voice::settles && rank < board_.rank()) return std::nullopt;
    const NumberedRound bound = bound_of(rank);
    if (bound.number >= number) last = std::max(last, bound.round);
    if (bound.number < number && voice != Voice::counts) return std::nullopt;
  }
  return last;
}

void RoundAgreement::pass_on() {
  propose(proposed());
  settle(settled());
}

}  // namespace fast::membership
