// Topologies and options with which every rule can be tried alike.
#pragma once

#include <fast/algorithm/rules.hpp>
#include <fast/codec/codec.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/stencil.hpp>
#include <string_view>
#include <vector>

namespace fast::testing {

/// Sites of two workers, or of one, that exchange in each third round.
inline TopologyRule small_sites() {
  return {"small sites", [](int workers) {
            return schedule::sites(3, workers % 2 == 0 ? 2 : 1, 2).make(workers);
          }};
}

inline TopologyRule topology_for(std::string_view rule) {
  if (rule == "awc_gasloc") return small_sites();
  if (rule == "pairwise" || rule == "noloco") return schedule::random_matchings();
  if (rule == "a2cid2") return schedule::alternating_pairs();
  if (rule == "relay_sum") return stencil::grid1d();
  if (rule == "diloco") return stencil::complete();
  return stencil::ring();
}

/// Those with which some rounds are enough.
inline algorithm::Parameters short_of(std::string_view rule) {
  if (rule == "diloco" || rule == "noloco") return {{"period", "3"}, {"momentum", "0.5"}};
  if (rule == "gasloc") return {{"period", "3"}, {"acceleration", "0.2"}};
  if (rule == "awc_gasloc") return {{"rate", "0.9"}, {"acceleration", "0.2"}};
  if (rule == "sparta") return {{"fraction", "0.5"}};
  return {};
}

/// Those that rules take which send weights.
inline std::vector<std::string_view> codecs_of_weights() {
  std::vector<std::string_view> names = codec::names();
  std::erase_if(names,
                [](std::string_view name) { return codec::bits(codec::by_name(name).kind) < 8; });
  return names;
}

}  // namespace fast::testing
