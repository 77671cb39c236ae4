// The main function of a program whose ranks are started together.
#pragma once

#include <fast/mpi/environment.hpp>

#include <optional>

#include "cli/exit_status.hpp"

namespace tools {

/// mpi::run(), but for the status of a program that ends by an error: status_of().
template <class Program>
int run_ranks(int& argc, char**& argv, const Program& program) {
  std::optional<int> status_of_error;
  const int status = fast::mpi::run(argc, argv, [&](const fast::mpi::Communicator& world) {
    try {
      return with_output(program(world));
    } catch (const std::exception& error) {
      status_of_error = status_of(error);
      throw;
    }
  });
  return status_of_error.value_or(status);
}

}  // namespace tools
