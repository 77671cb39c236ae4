#include "topology/matchings.hpp"

#include <bit>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/topology/graphs.hpp>
#include <numeric>

namespace fast {

Permutation::Permutation(std::uint32_t size, std::uint64_t seed)
    : size_(size), half_bits_((std::bit_width(size - 1) + 1) / 2), mask_((1u << half_bits_) - 1) {
  for (int round = 0; round < rounds; ++round) {
    keys_[round] = mix_seed(seed, static_cast<std::uint64_t>(round));
  }
}

std::uint32_t Permutation::half(int round, std::uint32_t value) const {
  return static_cast<std::uint32_t>(mix_seed(keys_[round], value)) & mask_;
}

std::uint32_t Permutation::operator()(std::uint32_t index) const {
  do {
    std::uint32_t left = index >> half_bits_, right = index & mask_;
    for (int round = 0; round < rounds; ++round) {
      const std::uint32_t next = left ^ half(round, right);
      left = right;
      right = next;
    }
    index = (left << half_bits_) | right;
  } while (index >= size_);
  return index;
}

std::uint32_t Permutation::inverse(std::uint32_t index) const {
  do {
    std::uint32_t left = index >> half_bits_, right = index & mask_;
    for (int round = rounds; round-- > 0;) {
      const std::uint32_t previous = right ^ half(round, left);
      right = left;
      left = previous;
    }
    index = (left << half_bits_) | right;
  } while (index >= size_);
  return index;
}

std::vector<int> Matching::in_neighbors(int worker) const {
  const int other = partner_(worker);
  return other == worker ? std::vector<int>{} : std::vector<int>{other};
}

namespace {

// The edges (c, c+1 mod side) of a ring fall into 2 matchings, 3 for an odd side: even c, odd c,
// and the edge that closes an odd ring.
int matchings_of_ring(int side) { return side == 1 ? 0 : side == 2 ? 1 : 2 + side % 2; }

int partner_on_ring(int place, int side, int matching) {
  if (side % 2 == 1) {
    if (matching == 2) return place == 0 ? side - 1 : place == side - 1 ? 0 : place;
    const int other = (place + matching) % 2 == 0 ? place + 1 : place - 1;
    return other < 0 || other >= side ? place : other;
  }
  return (place + matching) % 2 == 0 ? (place + 1) % side : (place + side - 1) % side;
}

Schedule pairs_on(std::string name, const std::vector<int>& sides) {
  const int workers = std::accumulate(sides.begin(), sides.end(), 1, std::multiplies<>());
  std::vector<Topology> rounds;
  int stride = workers;
  for (const int side : sides) {
    stride /= side;
    for (int matching = 0; matching < matchings_of_ring(side); ++matching) {
      const auto partner = [=](int worker) {
        const int place = worker / stride % side;
        return worker + (partner_on_ring(place, side, matching) - place) * stride;
      };
      rounds.emplace_back(fmt::format("pairs {}", rounds.size()),
                          std::make_shared<MatchingOnGrid>(GridShape{sides}, workers, partner));
    }
  }
  if (rounds.empty()) {
    rounds.emplace_back("alone", std::make_shared<Matching>(1, [](int worker) { return worker; }));
  }
  return {std::move(name), std::move(rounds)};
}

}  // namespace

namespace schedule {

TopologyRule alternating_pairs() {
  return {"alternating_pairs",
          [](int workers) { return pairs_on("alternating_pairs", {workers}); }};
}

TopologyRule alternating_pairs_torus(std::vector<int> sides, int dimensions) {
  const int fixed = sides.empty() ? 0 : StencilGraph({sides}, {}).workers();
  return {"alternating_pairs_torus",
          [=](int workers) {
            const std::vector<int> used =
                sides.empty() ? balanced_sides(workers, dimensions) : sides;
            return pairs_on("alternating_pairs_torus " + sides_text(used), used);
          },
          fixed};
}

TopologyRule random_matchings(std::uint64_t seed) {
  return {"random_matchings", [seed](int workers) {
            const auto at_round = [=](std::int64_t round) {
              const Permutation order(static_cast<std::uint32_t>(workers),
                                      mix_seed(seed, static_cast<std::uint64_t>(round)));
              const auto partner = [order](int worker) {
                const std::uint32_t other = order.inverse(static_cast<std::uint32_t>(worker)) ^ 1;
                return other < order.size() ? static_cast<int>(order(other)) : worker;
              };
              return Topology("matching", std::make_shared<Matching>(workers, partner));
            };
            return Schedule("random_matchings", workers, 0, at_round);
          }};
}

}  // namespace schedule
}  // namespace fast
