// What fastrun knows of each rank.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fastrun.hpp"

namespace fastrun {

struct Rank {
  enum class State { starting, running, ended };
  State state = State::starting;
  bool began = false;    ///< all ranks have met
  bool trains = true;    ///< a spare only while it has a seat
  bool leaves = false;   ///< it was asked to
  bool refuses = false;  ///< to leave
  bool lost = false;     ///< out of reach
  long pid = 0;
  int status = 0;  ///< as of waitpid
  std::string host;
  std::string not_startable;  ///< why its host cannot start the program; empty: it could
  std::vector<std::string> said;
  bool succeeded() const;
  /// "left"; "failed": by itself, with an error; "died".
  const char* how_ended() const;
  /// It has trained to the end of training.
  bool has_finished() const { return succeeded() && trains && !leaves; }
  bool stays() const { return state != State::ended && trains && !leaves; }
  bool is_idle() const { return state != State::ended && !trains && !leaves; }
};

/// "died of signal 9 (Killed)", "ended with status 3".
std::string describe(int status);

class Ranks {
 public:
  explicit Ranks(const Options& options);

  int size() const { return static_cast<int>(ranks_.size()); }
  Rank& operator[](int number) { return ranks_[static_cast<std::size_t>(number)]; }
  const Rank& operator[](int number) const { return ranks_[static_cast<std::size_t>(number)]; }

  int count(const std::function<bool(const Rank&)>& condition) const;
  std::vector<int> in_state(Rank::State state) const;
  /// The lowest one that trains and was not asked to leave.
  std::optional<int> first_that_trains() const;
  bool all_ended() const;
  bool some_are_lost() const;
  /// All ranks have met: none needs the process manager any more.
  bool training_began() const;
  bool trained_ones_go_on() const;

 private:
  std::vector<Rank> ranks_;
};

}  // namespace fastrun
