// Messages between a program and the launcher that started it (fastrun), if one did.
#pragma once

#include <string_view>
#include <vector>

namespace fast::mpi {

/// Environment variable: the descriptor through which a rank reports its progress.
inline constexpr const char* launcher_descriptor = "FASTRUN_FD";

/// What a rank reports. Each is one byte; none begins a line of status.
enum class LauncherNote : char {
  training_began = 'b',  ///< all workers have met: if a rank dies from now on, the others continue
  took_seat = 't',       ///< of a spare: it trains
  lost_seat = 'i',       ///< of a worker: it trains no more, before the end
  stays = 'r',           ///< of a worker that was asked to leave: it refuses
  joined = 'j',          ///< of a spare: it trains, as one worker more
  grows = 'g',           ///< of a worker that was asked to let a spare join: a spare shall
  refuses_growth = 'n',  ///< of the same: none shall
};

/// Without a launcher it does nothing.
void notify_launcher(LauncherNote note);

/// Environment variable: set when the launcher shows how far the ranks are.
inline constexpr const char* launcher_watch = "FASTRUN_WATCH";
bool launcher_watches();
/// One line of at most 1,000 characters: names and values, as fastrun --watch takes them. Does not
/// block: the line is left out when the launcher reads slowly. Without a launcher it does nothing.
void notify_launcher_status(std::string_view status);

/// Environment variable: a descriptor of memory in which the launcher lists the ranks that have
/// ended, one per line: "3 died", "3 failed" if it ended by itself with an error, or "3 left";
/// "3 asked" if it asks rank 3, whose memory it is, to
/// leave; and "3 grow" each time it asks rank 3 to let a spare join.
inline constexpr const char* launcher_news = "FASTRUN_NEWS_FD";

/// Whether a launcher reports the ranks that have ended.
bool launcher_reports_ends();

/// Whether some rank of the world has ended, with success or not. The launcher reports it: without
/// one the answer is false.
bool some_rank_has_ended();
/// Which of these ranks of the world have ended, with success or not; and which died or ended with
/// an error. The answer has their places in `ranks`. Without a launcher there are none.
std::vector<int> ended_among(const std::vector<int>& ranks);
std::vector<int> died_among(const std::vector<int>& ranks);
/// Those that ended by themselves with an error: of the ranks of died_among().
std::vector<int> failed_among(const std::vector<int>& ranks);

/// How often the launcher has asked this rank to let a spare join.
int growths_asked();

}  // namespace fast::mpi
