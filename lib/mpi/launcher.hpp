// What a program tells the launcher that started it, fastrun, if one did.
#pragma once

namespace fast::mpi {

/// Environment variable with the descriptor that a rank tells its progress through.
inline constexpr const char* launcher_descriptor = "FASTRUN_FD";

/// All workers have met: a rank that dies from now on need not end the others. Does nothing without
/// a launcher.
void tell_launcher_training_began();

}  // namespace fast::mpi
