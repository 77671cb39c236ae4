// A program that initializes MPI itself.   own_init single|multiple       with threads that may
// call MPI, or without
#include <mpi.h>

#include <fast/mpi/environment.hpp>

#include <cstdio>
#include <string>

int main(int argc, char** argv) {
  const bool multiple = argc > 1 && std::string(argv[1]) == "multiple";
  int provided = 0;
  MPI_Init_thread(&argc, &argv, multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE, &provided);
  const int status = fast::mpi::run(argc, argv, [](const fast::mpi::Communicator& world) {
    std::printf("worked as one of %d\n", world.size());
    return 0;
  });
  if (status == 0) MPI_Finalize();
  return status;
}
