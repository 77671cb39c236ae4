// Which ranks are gone: they show no sign of life, the launcher has reported their death, or they
// have left their seat.
#pragma once

#include <cstdint>
#include <vector>

#include "exchange/seats/seat_table.hpp"

namespace fast::exchange {

class SignsOfLife {
 public:
  /// A rank is silent when its beat has stood still for `silent_after_s`. `table` outlives this.
  SignsOfLife(const SeatTable& table, double silent_after_s);

  void set_silent_after(double silent_after_s) { silent_after_s_ = silent_after_s; }
  /// `elapsed_s`: since the last look, as far as this process was running. `died`: ranks that the
  /// launcher has reported.
  void look(double elapsed_s, const std::vector<int>& died);
  /// The same without time passing and without news of the launcher.
  void look_again();

  /// As the last look has found.
  bool is_gone(int rank) const { return gone_[static_cast<std::size_t>(rank)]; }
  /// Whether some rank is gone that had not finished.
  bool any_is_lost() const;
  /// Since the first look.
  double time_s() const { return time_s_; }

 private:
  struct Sign {
    std::uint64_t beat = 0;
    double at_s = 0;
  };

  const SeatTable& table_;
  double silent_after_s_;
  double time_s_ = 0;
  std::vector<Sign> signs_;  ///< by rank
  std::vector<bool> gone_;   ///< by rank
  std::vector<int> died_;
};

}  // namespace fast::exchange
