// What theory says of the survivors' weights, by rule.
#pragma once

#include <fast/algorithm/rules.hpp>
#include <string_view>
#include <vector>

#include "chaos/plan.hpp"

namespace chaos {

/// How far the mean of the survivors' weights may be from the mean of their targets.
struct Bound {
  std::string_view rule;
  double steady;           ///< staleness 0, undirected edges that stay
  double stale;            ///< staleness above 0
  double changing;         ///< edges that change, or directed ones
  double unbounded;        ///< staleness inf
  bool everybody = false;  ///< averages over all workers: a death ends the run with an error
  std::string_view fallback = "ring";  ///< a topology that the rule runs on
  std::string_view reason;
};

/// The rule's options in a plan.
fast::algorithm::Parameters parameters_of(const Plan& plan);

const std::vector<Bound>& bounds();
const Bound& bound_of(std::string_view rule);

/// Of the plan's staleness, topology and codec.
double tolerance(const Plan& plan);
/// Whether the mean is kept without some workers: undirected edges, push_sum, or gradient_tracking
/// where all can still reach each other. Otherwise each survivor ends between the lowest and the
/// highest target.
bool keeps_mean_without_some(const Plan& plan);
/// Whether events can leave workers that no other one reaches along directed edges, or for a while.
/// push_sum then keeps no mean: each worker ends between the lowest and the highest target.
bool may_stop_reaching(const Plan& plan);

}  // namespace chaos
