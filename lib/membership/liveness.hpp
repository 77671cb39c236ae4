// Which ranks show signs of life, on this rank's own clock.
#pragma once

#include <cstdint>
#include <vector>

#include "membership/record_board.hpp"

namespace fast::membership {

/// One table of the ranks' beats, for all protocols of a rank. How long a silence is too long, each
/// protocol says itself. Time passes only while this process runs.
class Liveness {
 public:
  /// `beat`: the place of a word that grows while its rank lives.
  Liveness(RecordBoard board, std::size_t beat);

  /// `elapsed_s`: since the last look, as far as this process was running. `died`: ranks that the
  /// launcher has reported.
  void look(double elapsed_s, const std::vector<int>& died = {});
  /// The same without time passing and without news of the launcher.
  void look_again();

  // As the last look has found.
  /// The beat has stood still for longer than that. This rank itself is never silent.
  bool is_silent(int rank, double after_s) const;
  /// The launcher has reported its death.
  bool has_died(int rank) const;
  /// Since the first look.
  double time_s() const { return time_s_; }

 private:
  struct Sign {
    std::uint64_t beat = 0;
    double at_s = 0;
  };

  RecordBoard board_;
  std::size_t beat_;
  double time_s_ = 0;
  std::vector<Sign> signs_;  ///< by rank
  std::vector<int> died_;
};

}  // namespace fast::membership
