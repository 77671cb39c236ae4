// Whether a rule may run with a schedule and its weights.
#pragma once

#include <fast/mixing/check.hpp>

#include <optional>
#include <string>

namespace fast {

/// What an algorithm asks of its mixing matrix.
struct MixingNeeds {
  bool rows = true;
  bool columns = false;
  bool symmetric = false;
  bool connected = true;
  bool unchanging = false;  ///< one topology, every round the same
  bool pairs = false;       ///< one neighbor at most, with weight 1/2
  int tree_of = 0;          ///< above 0: a tree whose workers have at most so many neighbors
  bool complete = false;    ///< all others, all with weight 1/N
  bool columns_on_average = false;
  bool sites = false;  ///< rounds within sites and rounds between them: see host_edges_of()
  /// All eigenvalues of the (symmetric, unchanging) matrix are above it (to 1e-9).
  std::optional<double> eigenvalues_above{};
};

/// What a tree of that degree lacks; "" when nothing is missing.
std::string missing_of_tree(const MixingCheck& found, int degree);

/// Throws Error(topology) with the first finding that `needs` forbids; `algorithm` is for the
/// message. The eigenvalues take what spectrum() takes.
void require_mixing(const Schedule& schedule, WeightRule rule, bool lazy, const MixingNeeds& needs,
                    const std::string& algorithm);

}  // namespace fast
