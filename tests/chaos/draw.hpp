// Schedules drawn from a seed, so that each can be had again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "chaos/plan.hpp"

namespace chaos {

/// What schedules are drawn from.
struct Wish {
  std::vector<std::string> rules{"awc", "atc"};
  std::vector<Kind> kinds;
  int hosts = 1;         ///< at most
  bool always = false;   ///< all schedules on that many hosts
  bool devices = false;  ///< weights on devices
  bool lenet = false;
};

/// Schedule `index` under `seed`. Each pair of a rule and a kind of event comes once before one
/// comes again.
Plan draw(const Wish& wish, std::uint64_t seed, std::uint64_t index);

/// Kinds of the default: all. Without `hosts`, none of links, nor the death of a host.
std::vector<Kind> default_kinds(bool hosts);

/// Why the library refuses such a run, or why theory says nothing of it; empty: it runs.
std::string why_not(const Plan& plan);

/// The same run without that many of the highest ranks.
Plan with_workers(Plan plan, int workers);

}  // namespace chaos
