// Graphs that are no stencils. The seeded ones are the same on every worker; they are made once, in
// O(edges) time and memory.
#pragma once

#include <fast/topology/topology.hpp>

#include <cstdint>
#include <optional>
#include <vector>

namespace fast::graph {

/// Everybody reads the center and the center everybody.
TopologyRule star(int center = 0);

/// A balanced tree: worker i's children are branching·i + 1 .. branching·i + branching.
TopologyRule tree(int branching = 2);

/// Every worker has `degree` neighbors (all others where there are fewer), drawn at random among
/// such graphs. Throws Error(topology) when workers × degree is odd.
TopologyRule random_regular(int degree = 4, std::uint64_t seed = 1);

/// Erdős–Rényi: every pair with this probability; left out: 2 ln N / N, or 1 for small N. Drawn
/// again, up to 50 times, until connected; then Error(topology).
TopologyRule erdos_renyi(std::optional<double> probability = {}, std::uint64_t seed = 1);

/// The graph of Watts & Strogatz 1998: a ring on which each worker reads the `neighbors` nearest
/// workers (an even number). The far end of each edge moves to a random worker with probability
/// `rewiring`. It is drawn again as above.
TopologyRule small_world(int neighbors = 4, double rewiring = 0.1, std::uint64_t seed = 1);

/// A graph that is complete within a host, and `among` between hosts. The first `links` workers of
/// a host read the workers of the same place on the hosts that `among` gives their host. Hosts are
/// numbered by their first worker.
TopologyRule hierarchical(TopologyRule among, int workers_per_host, int links = 1);
/// host_of_rank[r] is any number that tells worker r's host from others.
TopologyRule hierarchical(TopologyRule among, const std::vector<int>& host_of_rank, int links = 1);

}  // namespace fast::graph

// Schedules: rules whose topology changes from round to round. All are computed, by every worker
// for itself, in O(degree).
namespace fast::schedule {

/// Worker i reads i - 2^(t mod ⌈log₂N⌉) (mod N) in round t: one peer a round. With weights ½ the
/// average over one period is exact when N is a power of two (Ying et al. 2021, arXiv 2110.13363).
TopologyRule one_peer_exponential();

/// The Base-(k+1) graph (Takezawa et al. 2023, arXiv 2305.11420) has at most k neighbors a round
/// and weights of its own. One period gives the exact average for any N. 1 ≤ k ≤ 63.
TopologyRule base(int k);

/// A schedule for hosts of m workers each. Workers average within hosts, and one worker of a host,
/// its representative, reads the representative of one other host: one payload in and one out of
/// each host in an exchange round. Base-2 among hosts names the partner of a host and the weight v
/// of its mean. A cycle has the rounds
///
///   A    all workers of a host take their mean: J/m,
///   B    representatives read each other with a weight w, k per host,
///   C    all workers of a host take v/w of their representatives' mean, 1 - v/w of the others'
///        (hosts without a partner: J/m),
///
/// with w = min(vm/k, 1 - (1-v)/m). A once, then B and C for each round of Base-2. The product over
/// a cycle is J/N, for any number of hosts: after A, all workers of a host have one value a. Let b
/// be the partner's. B gives representatives (1-w)a + wb, and C gives all workers (v/w)((1-w)a +
/// wb) + (1-v/w)a = (1-v)a + vb, which is Base-2 on the hosts' values; and Base-2 is exact on them.
///
/// All weights are at least 0, and rows sum to 1. Columns sum to 1 in A and B. The columns of
/// representatives in C sum to mv/(wk), those of the others to m(1 - v/w)/(m-k). Representatives
/// change from cycle to cycle: in a period of m cycles, each worker is one k times for each C.
/// Hence columns sum to 1 on average over a period: v/w + (1 - v/w).
///
/// If vm > k, no weights of at least 0 give columns of sum 1 in every round: a host's k payloads
/// then bring it at most k/m of the partner's mean, and v is needed. Negative weights give such
/// columns (w = vm/k > 1), but when workers of a host are missing, disagreement grows. The closer
/// w is to vm/k, the more equally the updates of all workers count; w = 1 is excluded because two
/// hosts with one survivor each would then swap their values forever.
///
/// A worker that is missing as a representative costs the exchange of its round alone: all keep
/// what they have, and the next round has another representative.
///
/// Workers 0..m-1 are host 0, and so on; 0 workers per host: the largest of 4, 3, 2 and 1 that
/// divides the number of workers. `links` is k (at most m), the payloads of a host in an exchange
/// round. Throws Error(topology) unless all hosts have the same number of workers.
TopologyRule hierarchical_one_peer(int workers_per_host = 0, int links = 1);
/// host_of_rank[r] is any number that tells worker r's host from others.
TopologyRule hierarchical_one_peer(const std::vector<int>& host_of_rank, int links = 1);

/// hierarchical_one_peer in shards: of m shards of the model, each has a representative of its own
/// on every host, so that all workers of a host exchange at once, each a shard. Shard s has the
/// schedule above whose representatives are s places further. A cycle is exact for each shard, and
/// a host sends and receives as much as there. The weights of a Topology, and its spectrum, are
/// those of shard 0. A Worker takes it for rules that average weights alone, at staleness 0.
TopologyRule sharded_one_peer(int workers_per_host = 0);
/// host_of_rank[r] is any number that tells worker r's host from others.
TopologyRule sharded_one_peer(const std::vector<int>& host_of_rank);

/// hierarchical_one_peer for sites with slow links between them. One exchange between sites takes
/// place in every `every` rounds (3 at least): the last two are its B and C, all rounds before are
/// A. One payload enters and one leaves a site in `every` rounds. A site has one or several hosts.
TopologyRule sites(std::int64_t every = 50, int workers_per_site = 0, int links = 1);
/// site_of_rank[r] is any number that tells worker r's site from others.
TopologyRule sites(std::int64_t every, const std::vector<int>& site_of_rank, int links = 1);

/// Workers of a ring average in pairs: (0,1), (2,3), ... in one round and (1,2), (3,4), ... in the
/// next. On an odd ring, the last edge has a third round of its own.
TopologyRule alternating_pairs();
/// The same along each axis of a torus in turn; empty sides: balanced_sides.
TopologyRule alternating_pairs_torus(std::vector<int> sides = {}, int dimensions = 2);

/// one_peer_exponential in even rounds, the ring in odd ones.
TopologyRule exponential_ring();

/// Pairs drawn anew every round, the same on all workers; with an odd number one sits out. Never
/// repeats.
TopologyRule random_matchings(std::uint64_t seed = 1);

/// One-peer EquiDyn (OD-EquiDyn of Song et al. 2022, arXiv 2210.07881). In round t worker i reads i
/// - u (mod N) with weight ½, where u is drawn anew from 1..N-1. The paper's η is N/(2(N-1)). The
/// expected square of the disagreement shrinks to (N-2)/(2(N-1)) < ½ in every round, whatever N.
/// The schedule never repeats.
TopologyRule equidyn(std::uint64_t seed = 1);

}  // namespace fast::schedule
