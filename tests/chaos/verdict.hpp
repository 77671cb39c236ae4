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
  int since_rejoined = 0;  ///< rounds; of all where it never did
  double mass = 0;         ///< of push_sum, in settled_round()
};

/// Of those workers that came to the end.
std::vector<Result> results_in(const std::string& directory, int workers);

/// How a run ended.
struct Ending {
  std::optional<int> status;  ///< of fastrun; none: it hung
  std::vector<Result> results;
  std::string log;
};

enum class Fault { none, hang, torn, checkpoint, other };

struct Verdict {
  std::string wrong;  ///< empty: all is as it should be
  Fault fault = Fault::none;
  std::optional<double> distance;  ///< of the survivors' mean from their optimum
  double held_s = 0;               ///< the longest round of a worker that nothing happened to

  static Verdict of(std::string wrong, Fault fault = Fault::other) {
    return {wrong, wrong.empty() ? Fault::none : fault, {}, 0};
  }
};

/// `undisturbed`: LeNet's share of images classified correctly when nothing happens.
Verdict judge(const Plan& plan, const Ending& ending, double undisturbed);

/// What is wrong with a run that has to end with an error: it ends by itself, all ranks, and tells
/// why once. `text`: of the message.
std::string of_error(const Ending& ending, const std::string& text = "");

}  // namespace chaos
