#include "mpi/launcher.hpp"

#include <unistd.h>

#include <cstdlib>

namespace fast::mpi {

void tell_launcher_training_began() {
  const char* descriptor = std::getenv(launcher_descriptor);
  if (descriptor == nullptr) return;
  [[maybe_unused]] const ssize_t ignored = write(std::atoi(descriptor), "b", 1);
}

}  // namespace fast::mpi
