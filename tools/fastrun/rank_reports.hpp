// What a rank's program tells its wrapper, and what the wrapper finds out for fastrun --watch.
#pragma once

#include <sys/types.h>

#include <string>
#include <string_view>
#include <vector>

#include "mpi/launcher.hpp"

namespace fastrun {

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

}  // namespace fastrun
