#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/topology/schedules.hpp>
#include <fast/topology/stencil.hpp>

namespace fast::schedule {
namespace {

Topology one_hop(int workers, std::int64_t hop) {
  const Offsets offset = {{static_cast<int>(-hop)}};
  return {fmt::format("hop {}", hop), std::make_shared<StencilGraph>(GridShape{{workers}}, offset)};
}

std::vector<Topology> hops(int workers) {
  std::vector<Topology> rounds;
  std::int64_t hop = 1;
  do {
    rounds.push_back(one_hop(workers, hop));
    hop *= 2;
  } while (hop < workers);
  return rounds;
}

}  // namespace

TopologyRule one_peer_exponential() {
  return {"one_peer_exponential",
          [](int workers) { return Schedule("one_peer_exponential", hops(workers)); }};
}

TopologyRule exponential_ring() {
  return {"exponential_ring", [](int workers) {
            std::vector<Topology> rounds;
            const Topology ring = stencil::ring().make(workers).at(0);
            for (const Topology& hop : hops(workers)) {
              rounds.push_back(hop);
              rounds.push_back(ring);
            }
            return Schedule("exponential_ring", std::move(rounds));
          }};
}

TopologyRule equidyn(std::uint64_t seed) {
  return {"equidyn", [seed](int workers) {
            const auto at_round = [=](std::int64_t round) {
              if (workers == 1) return one_hop(1, 1);
              Rng rng(mix_seed(seed, static_cast<std::uint64_t>(round)));
              const std::uint64_t hop = 1 + rng.below(static_cast<std::uint64_t>(workers - 1));
              return one_hop(workers, static_cast<std::int64_t>(hop));
            };
            return Schedule("equidyn", workers, 0, at_round);
          }};
}

}  // namespace fast::schedule
