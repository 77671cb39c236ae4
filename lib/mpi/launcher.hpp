// What a program tells the launcher that started it, fastrun, if one did.
#pragma once

#include <vector>

namespace fast::mpi {

/// Environment variable with the descriptor that a rank tells its progress through.
inline constexpr const char* launcher_descriptor = "FASTRUN_FD";

/// All workers have met: a rank that dies from now on need not end the others. Does nothing without
/// a launcher.
void tell_launcher_training_began();

/// Environment variable with a descriptor of memory where the launcher lists the ranks that have
/// ended, one a line: "3 died" or "3 left".
inline constexpr const char* launcher_news = "FASTRUN_NEWS_FD";

/// Whether some rank of the world has ended, well or not, and which have died or ended badly, as
/// far as a launcher tells; none without one.
bool some_rank_has_ended();
std::vector<int> ranks_that_died();

}  // namespace fast::mpi
