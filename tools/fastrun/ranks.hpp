// What fastrun knows of each rank.
#pragma once

#include <sys/wait.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "fastrun/fastrun.hpp"

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

  bool succeeded() const {
    return state == State::ended && WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

  /// "left"; "failed": by itself, with an error; "died".
  const char* how_ended() const {
    if (succeeded()) return "left";
    // A shell ends with 128 + signal where its program died of a signal. MPI may abort with 255.
    constexpr int shell = 128, signals = 64;
    const int code = WIFEXITED(status) ? WEXITSTATUS(status) : shell + WTERMSIG(status);
    const bool by_signal = code > shell && code <= shell + signals;
    return by_signal || lost ? "died" : "failed";
  }

  /// It has trained to the end of training.
  bool has_finished() const { return succeeded() && trains && !leaves; }
  bool stays() const { return state != State::ended && trains && !leaves; }
  bool is_idle() const { return state != State::ended && !trains && !leaves; }
};

/// "died of signal 9 (Killed)", "ended with status 3".
std::string describe(int status);

class Ranks {
 public:
  explicit Ranks(const Options& options) : ranks_(static_cast<std::size_t>(all_ranks(options))) {
    std::for_each(ranks_.begin() + options.ranks, ranks_.end(),
                  [](Rank& spare) { spare.trains = false; });
  }

  int size() const { return static_cast<int>(ranks_.size()); }
  Rank& operator[](int number) { return ranks_[static_cast<std::size_t>(number)]; }
  const Rank& operator[](int number) const { return ranks_[static_cast<std::size_t>(number)]; }

  int count(const std::function<bool(const Rank&)>& condition) const {
    return static_cast<int>(std::ranges::count_if(ranks_, condition));
  }

  std::vector<int> in_state(Rank::State state) const {
    std::vector<int> found;
    for (int number = 0; number < size(); ++number) {
      if ((*this)[number].state == state) found.push_back(number);
    }
    return found;
  }

  /// The lowest one that trains and was not asked to leave.
  std::optional<int> first_that_trains() const {
    for (int number = 0; number < size(); ++number) {
      const Rank& one = (*this)[number];
      if (one.state == Rank::State::running && one.stays()) return number;
    }
    return std::nullopt;
  }

  bool all_ended() const {
    return std::ranges::all_of(ranks_,
                               [](const Rank& one) { return one.state == Rank::State::ended; });
  }

  bool some_are_lost() const {
    return std::ranges::any_of(ranks_, [](const Rank& one) { return one.lost; });
  }

  /// All ranks have met: none needs the process manager any more.
  bool training_began() const {
    return std::ranges::any_of(ranks_, [](const Rank& one) { return one.began; });
  }

  bool trained_ones_go_on() const {
    return training_began() && std::ranges::any_of(ranks_, [](const Rank& one) {
             return one.state == Rank::State::running;
           });
  }

 private:
  std::vector<Rank> ranks_;
};

// What fastrun says of ranks that failed.

/// "PROGRAM cannot be started on host1, host2 (No such file or directory)": each host once, in the
/// order of ranks, hosts of the same reason together. Empty: all ranks could start it.
std::string missing_program(const std::string& program, const Ranks& ranks);

/// "rank 3 (process 17 on host1) ended with status 1 and printed no error". Empty if `first_failed`
/// is none or has printed something, or if any rank that failed has printed an error.
std::string silent_failure(const Ranks& ranks, std::optional<int> first_failed);

/// "rank 1 ended with status 0 before training began; ranks 0, 2 may wait for it". Empty: training
/// has begun, or no rank runs any more, or none has ended by itself.
std::string early_ends(const Ranks& ranks);

/// No rank ended well, and the first that failed ended with 2: its options are wrong.
bool is_wrong_usage(const Ranks& ranks, std::optional<int> first_failed);

/// The exit status where a line that is printed already says all: no rank could start the program,
/// or it has refused its command line on all ranks. Empty: there is more to say.
std::optional<int> status_that_is_told(const Ranks& ranks, std::optional<int> first_failed);

}  // namespace fastrun
