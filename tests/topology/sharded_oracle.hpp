// What sharded_one_peer does to a shard, from its description alone.
#pragma once

#include <algorithm>
#include <cstdint>
#include <fast/topology/graphs.hpp>
#include <vector>

namespace fast::testing {

using Matrix = std::vector<std::vector<double>>;

inline Matrix times(const Matrix& a, const Matrix& b) {
  Matrix product(a.size(), std::vector<double>(a.size()));
  for (std::size_t i = 0; i < a.size(); ++i)
    for (std::size_t k = 0; k < a.size(); ++k)
      for (std::size_t j = 0; j < a.size(); ++j) product[i][j] += a[i][k] * b[k][j];
  return product;
}

/// Rounds: A once, then B and C for each round of Base-2 among hosts. With one worker a host, B
/// alone.
inline int sharded_cycle(int hosts, int per_host) {
  if (hosts == 1) return 1;
  const int among = static_cast<int>(schedule::base(1).make(hosts).period());
  return per_host == 1 ? among : 1 + 2 * among;
}

/// W of a shard in round t of hosts 0 to hosts - 1, with per_host workers each in order. Place
/// cycle + exchange + shard (mod per_host) of a host represents it for that shard.
inline Matrix sharded_matrix(int hosts, int per_host, std::int64_t t, int shard) {
  const auto n = static_cast<std::size_t>(hosts) * static_cast<std::size_t>(per_host);
  const int m = per_host, cycle = sharded_cycle(hosts, m);
  const auto of_cycle = static_cast<int>(t % cycle);
  const bool is_a = hosts == 1 || (m > 1 && of_cycle == 0);
  const int exchange = is_a ? 0 : m == 1 ? of_cycle : (of_cycle - 1) / 2;
  const bool is_b = !is_a && (m == 1 || of_cycle % 2 == 1);
  const auto representative = static_cast<int>((t / cycle + exchange + (m == 1 ? 0 : shard)) % m);
  Matrix w(n, std::vector<double>(n));
  for (int host = 0; host < hosts; ++host) {
    int partner = -1;
    double v = 0;
    if (!is_a) {
      const Topology among = schedule::base(1).make(hosts).at(exchange);
      for (const int other : among.in_neighbors(host)) {
        partner = other;
        v = among.given_weights(host).front();
      }
    }
    const double across = std::min(v * m, 1 - (1 - v) / m);
    for (int place = 0; place < m; ++place) {
      std::vector<double>& row = w[static_cast<std::size_t>(host * m + place)];
      if (is_b) {
        const bool reads = partner >= 0 && place == representative;
        row[static_cast<std::size_t>(host * m + place)] = reads ? 1 - across : 1;
        if (reads) row[static_cast<std::size_t>(partner * m + place)] = across;
        continue;
      }
      for (int other = 0; other < m; ++other) {
        const double share = partner < 0               ? 1.0 / m
                             : other == representative ? v / across
                                                       : (1 - v / across) / (m - 1);
        row[static_cast<std::size_t>(host * m + other)] = share;
      }
    }
  }
  return w;
}

}  // namespace fast::testing
