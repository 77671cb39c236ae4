#include "chaos/refusals.hpp"

namespace chaos {

std::vector<Refusal> refusals() {
  return {
      {read("rule=d2 workers=3 staleness=1"), "runs at staleness 0 only"},
      {read("rule=choco workers=3 staleness=inf"), "runs at staleness 0 only"},
      {read("rule=pairwise workers=4 topology=alternating_pairs staleness=3"),
       "runs at staleness 0 only"},
      {read("rule=push_sum workers=3 codec=bf16"), "runs with identity only"},
      {read("rule=choco workers=3 entries=few codec=int8"), "it needs 16 at least"},
      {read("rule=d2 workers=4 topology=one_peer_exponential"), "needs a topology that stays"},
      {read("rule=push_sum workers=4 topology=one_peer_exponential staleness=1"),
       "running sums need edges that stay"},
      {read("rule=decentlam workers=3 topology=directed_ring"), "needs symmetric weights"},
      {read("rule=pairwise workers=3 topology=ring"), "pairs of workers"},
      {read("rule=awc_gasloc workers=4 topology=ring"), "needs rounds within sites"},
      {read("rule=awc workers=3 codec=bf16 arena=rotating"), "take the codec identity"},
      {read("rule=atc workers=3 arena=rotating"), "take awc or pairwise"},
      {read("rule=awc workers=3 topology=hypercube"), "power of two"},
  };
}

}  // namespace chaos
