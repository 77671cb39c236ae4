// Limits what single neighbors do to a combination: measures their publications before they are
// combined, and counts what was kept of each.
#pragma once

#include <fast/mixing/robust.hpp>

#include <vector>

#include "combine/mixer.hpp"

namespace fast::combine {

/// How much of a neighbor's publication has counted in a combination: 1, all of it, to 0.
struct KeptShare {
  int worker = 0;
  double share = 1;
};

class RobustAverage {
 public:
  RobustAverage(Mixer& mixer, Robust kind) : mixer_(mixer), kind_(kind) {}

  /// Before a combination or gather() of these, the neighbors that are present of `neighbors`:
  /// leaves out those whose publications are not finite, and limits the others. Reads all
  /// publications once, which must then not change until the combination has read them too; else
  /// what was combined does not count. `near` refers to this object. False: the worker's own
  /// message is not finite, nothing can be compared with it, and `near` is as before.
  [[nodiscard]] bool limit(Neighborhood& near, std::size_t neighbors);
  /// Of the combination since the latest limit(), by neighbor; empty: nothing is limited. With
  /// clipping, that of the parameters.
  std::vector<KeptShare> kept() const;
  /// In the latest limit(), neighbors were present, but too few to limit any: none of them counts,
  /// and kept() does not list them.
  bool lacks_neighbors() const { return lacks_neighbors_; }

 private:
  void clip(Neighborhood& near, const SquaredDistances& distances, std::size_t tolerated);
  void trim(Neighborhood& near, std::size_t tolerated);
  void leave_out(Neighborhood& near, SquaredDistances& distances);

  Mixer& mixer_;
  Robust kind_;
  std::vector<KeptShare> shares_;  ///< except of those that are trimmed
  std::vector<int> trimmed_;       ///< workers, along Trim::kept
  Trim trim_;
  bool lacks_neighbors_ = false;
};

}  // namespace fast::combine
