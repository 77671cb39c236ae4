// What fastrun --watch shows: a line for each rank, redrawn in place on a terminal, else a few
// lines every few seconds.
#pragma once

#include <fast/core/deadline.hpp>

#include <sys/types.h>

#include <cstddef>
#include <limits>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "mpi/launcher.hpp"

namespace fastrun {

// What a rank's program tells its wrapper, and what the wrapper finds out for fastrun --watch.

/// Takes apart the bytes that a program writes to FASTRUN_FD: notes, and lines "sTEXT" that say how
/// far it is.
class RankReports {
 public:
  struct Taken {
    std::vector<fast::mpi::LauncherNote> notes;
    std::vector<std::string> statuses;  ///< that have become whole
  };
  Taken take(std::string_view bytes);

 private:
  std::string line_;  ///< begun
};

/// Whether a process, or one that it has started, was stopped by a signal.
bool is_stopped(pid_t process);

inline constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

/// What a rank has said of another site.
struct WatchedSite {
  double seen_s = unknown, delay_s = unknown, round = unknown, age = unknown;
};

/// The latest that is known of a rank.
struct WatchedRank {
  std::string host;
  std::string state = "starting";  ///< how it was started or has ended
  std::string words;               ///< the last line of its standard error
  bool stopped = false;            ///< by a signal, as kill -STOP does
  bool trains = false;             ///< it has said how far it is, and has not ended
  long step = -1, epoch = -1;
  double samples_per_second = unknown, wait = unknown, age = unknown;
  fast::Clock::time_point heard{};           ///< when it said how far it is
  std::map<std::string, WatchedSite> sites;  ///< of the rank that has the connection to them

  /// "training", "stopped", "silent for 12 s", or how it was started or has ended.
  std::string state_at(fast::Clock::time_point now) const;
};

/// Takes in "step 120 epoch 2 samples_per_second 5012.5 wait 0.25 age 0.5", or of another site
/// "site oslo seen_s 0.2 delay_s 0.05 round 1450 age 20". Unknown words and their values are
/// skipped.
void take_status(WatchedRank& rank, std::string_view status, fast::Clock::time_point now);

struct ScreenSize {
  std::size_t width = 80, height = 24;
};

/// At most height - 1 lines of at most width - 1 characters, each with its newline. When there are
/// more ranks, those that do not train and those that are behind are shown, and the others are
/// added up. Other sites stand below, on at most half of the lines; of many, the silent ones.
std::string watch_table(const std::vector<WatchedRank>& ranks, ScreenSize size,
                        fast::Clock::time_point now);

/// All ranks in one line, and a line for each that does not train, and for each other site.
std::string watch_lines(const std::vector<WatchedRank>& ranks, fast::Clock::time_point now);

/// Draws on standard error.
class Watch {
 public:
  explicit Watch(std::size_t ranks);
  ~Watch() { erase(); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  void joined(int rank, const std::string& host);
  /// What a wrapper says of its rank: "status" (see take_status), "words" (the last line of its
  /// standard error), "stopped" and "goes" (by signals). Other kinds are skipped.
  void hear(int rank, std::string_view kind, const std::string& text);
  /// how: "ended", or why not well.
  void ended(int rank, const std::string& how);
  /// Draws when it is time to.
  void draw();
  /// Removes the table, so that other text can be printed. The next draw() brings it back.
  void erase();
  /// The same before `text` is written to a descriptor, if that is a terminal.
  void make_room(int descriptor, std::string_view text);
  /// Prints the last figures, for good.
  void finish();

 private:
  WatchedRank& at(int rank) { return ranks_[static_cast<std::size_t>(rank)]; }

  std::vector<WatchedRank> ranks_;
  bool on_terminal_;
  bool line_is_open_ = false;  ///< of other text on the terminal
  std::size_t drawn_lines_ = 0;
  fast::Clock::time_point next_;
};

/// Of the terminal on that descriptor; 80 x 24 where that is not known.
ScreenSize screen_size(int descriptor);

}  // namespace fastrun
