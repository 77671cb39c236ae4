// Windows whose objects are gone. To free a window is a blocking call of all its ranks, so it waits
// until they meet again.
#pragma once

#include <cstdint>
#include <fast/mpi/communicator.hpp>
#include <functional>
#include <vector>

namespace fast::mpi {

struct RetiredWindow {
  std::uint64_t number = 0;      ///< as number_window() gave it
  std::vector<int> ranks;        ///< of the world: those that free it together
  std::function<void()> look{};  ///< called while it is retired, when ranks meet; may be empty
  std::function<int()> free{};   ///< collective over `ranks`; returns MPI's code
};

/// Collective. A number for a new window, the same on all ranks, which no other window has.
std::uint64_t number_window(const Communicator& communicator, const Deadline& deadline);

/// Any thread may call it. Does not block.
void retire(RetiredWindow window);

/// Collective. Frees the windows that all of their ranks have retired, if all of these ranks belong
/// to the communicator.
void free_retired(const Communicator& communicator, const Deadline& deadline);

}  // namespace fast::mpi
