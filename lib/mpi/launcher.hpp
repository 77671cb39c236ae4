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
/// ended, one a line.
inline constexpr const char* launcher_news = "FASTRUN_NEWS_FD";

/// Ranks of the world that have ended, well or not, as far as a launcher tells; none without one.
std::vector<int> ranks_that_ended();
bool some_rank_has_ended();

}  // namespace fast::mpi
