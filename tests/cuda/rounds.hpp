// Rounds of averaging over an exchange, on whatever side its payloads are.
#pragma once

#include <algorithm>
#include <fast/exchange/group.hpp>
#include <fast/mixing/kernels.hpp>
#include <numeric>
#include <vector>

namespace fast::testing {

inline constexpr std::size_t rounds_count = 3001;  ///< elements
inline const PayloadShape rounds_shape{rounds_count * sizeof(float), 1, 1};
inline constexpr int rounds = 7;

inline EdgePlan ring_plan(int rank, int workers) {
  RoundEdges edges;
  for (const int other : {(rank + workers - 1) % workers, (rank + 1) % workers}) {
    if (other == rank || (!edges.sources.empty() && edges.sources.front() == other)) continue;
    edges.sources.push_back(other);
  }
  std::sort(edges.sources.begin(), edges.sources.end());
  edges.destinations = edges.sources;
  return [edges](std::int64_t) { return edges; };
}

inline ExchangeOptions rounds_options() {
  ExchangeOptions options;
  options.deadline = Seconds(30);
  options.payloads = 2;
  return options;
}

inline std::vector<float> starting_values(int rank) {
  std::vector<float> values(rounds_count);
  std::iota(values.begin(), values.end(), 100.0F * static_cast<float>(rank));
  return values;
}

/// What the values of all workers become, by the host's kernel alone.
inline std::vector<std::vector<float>> expected_rounds(int workers) {
  std::vector<std::vector<float>> now;
  for (int rank = 0; rank < workers; ++rank) now.push_back(starting_values(rank));
  for (int round = 0; round < rounds; ++round) {
    auto next = now;
    for (int rank = 0; rank < workers; ++rank) {
      std::vector<const float*> values;
      for (const int source : ring_plan(rank, workers)(round).sources)
        values.push_back(now[static_cast<std::size_t>(source)].data());
      const std::vector<float> weights(values.size(), 1.0F / static_cast<float>(values.size() + 1));
      const auto i = static_cast<std::size_t>(rank);
      float* const none = nullptr;
      mixing::average(none, next[i].data(), now[i].data(), values, weights, rounds_count);
      mixing::stream_fence();
    }
    now = next;
  }
  return now;
}

/// What a worker's values have become. `side` has the exchange, fill(to, values),
/// average(next, own, values, weights) and read(from).
template <class Side>
std::vector<float> run_rounds(Side& side, int rank) {
  Exchange& exchange = side.exchange();
  const auto floats = [](const Payload& payload) {
    return reinterpret_cast<const float*>(payload.data);
  };
  const auto start = starting_values(rank);
  side.fill(reinterpret_cast<float*>(exchange.acquire().data), start);
  exchange.publish(0);
  for (std::int64_t round = 0; round < rounds; ++round) {
    std::vector<const float*> values;
    const auto arrivals = exchange.fetch(round);
    for (const Arrival& arrival : arrivals) values.push_back(floats(arrival.payload));
    const std::vector<float> weights(values.size(), 1.0F / static_cast<float>(values.size() + 1));
    const float* own = floats(exchange.published());
    side.average(reinterpret_cast<float*>(exchange.acquire().data), own, values, weights);
    exchange.complete(round + 1);
    exchange.publish(round + 1);
  }
  return side.read(floats(exchange.published()));
}

}  // namespace fast::testing
