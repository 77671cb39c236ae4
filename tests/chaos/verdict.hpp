// What a run left behind, and whether that is as it should be.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "chaos/plan.hpp"

namespace chaos {

/// A worker's, of its own weights and of the mean model.
struct Result {
  int rank = 0;
  double mean = 0, own = 0, longest_s = 0;
  int torn = 0, lost = 0, rejoined = 0;
  double mass = 0;  ///< of push_sum, in settled_round()
};

/// Of those workers that came to the end.
std::vector<Result> results_in(const std::string& directory, int workers);

/// Empty when all is as it should be. No status: it hung. `undisturbed`: LeNet's share of images
/// told right when nothing happens.
std::string judge(const Plan& plan, std::optional<int> status, const std::vector<Result>& results,
                  double undisturbed);

}  // namespace chaos
