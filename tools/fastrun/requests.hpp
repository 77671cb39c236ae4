// What a person asks of a run under way: that a spare joins, or that a worker leaves. Requests come
// from the control file and from the clock (--grow-at).
#pragma once

#include <fast/core/deadline.hpp>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "control_file.hpp"
#include "growth_requests.hpp"
#include "ranks.hpp"

namespace fastrun {

class Requests {
 public:
  using Say = std::function<void(const std::string& line)>;
  /// `send` brings a line to the wrapper of a rank; the line ends with the rank's number.
  using Send = std::function<void(int rank, const std::string& line)>;
  /// `ranks` outlives this.
  Requests(const Options& options, Ranks& ranks, Say say, Send send);

  /// Looks at the control file and at the clock.
  void look();
  /// The rank that was asked to pass on a growth has answered.
  void answer(int rank, bool grows) { growths_.answer(rank, grows); }
  /// The rank that was asked to leave stays. Others may leave in its place.
  void refuses_to_leave(int rank);
  /// A spare has joined.
  void joined() { growths_.join(); }
  /// That rank has ended. What it was asked to pass on goes to another one.
  void ended(int rank);

 private:
  void hear_control();
  void look_at_clock();
  std::string why_not(const Request& request) const;
  std::string why_not_to_grow() const;
  std::string why_not_to_leave(int number) const;
  void ask_to_grow();
  void ask_again_to_grow(const Rank& gone);
  void ask_to_leave(int number);

  Options options_;
  Ranks& ranks_;
  Say say_;
  Send send_;
  std::optional<ControlFile> control_;
  GrowthRequests growths_;
  std::optional<fast::Clock::time_point> began_at_;  ///< training
};

}  // namespace fastrun
