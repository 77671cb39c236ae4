// Messages between a program and the launcher that started it (fastrun), if one did.
#pragma once

#include <vector>

namespace fast::mpi {

/// Environment variable: the descriptor through which a rank reports its progress.
inline constexpr const char* launcher_descriptor = "FASTRUN_FD";

/// Reports that all workers have met: if a rank dies from now on, the others continue. Without a
/// launcher it does nothing.
void tell_launcher_training_began();

/// Environment variable: a descriptor of memory in which the launcher lists the ranks that have
/// ended, one per line: "3 died" or "3 left".
inline constexpr const char* launcher_news = "FASTRUN_NEWS_FD";

/// Whether some rank of the world has ended, with success or not; and the ranks that died or ended
/// with an error. The launcher reports both: without one the answers are false and none.
bool some_rank_has_ended();
std::vector<int> ranks_that_died();

}  // namespace fast::mpi
