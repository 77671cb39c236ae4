// Every rank gathers long messages of all ranks and checks them, as the end of a training run does.
//   large_gather [MIB]    prints "threshold: " and what UCX_RNDV_THRESH is then, or "default"
#include <fast/fast.hpp>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <string>

namespace {

char letter_of(int rank) { return static_cast<char>('a' + rank % 26); }

bool is_of(const std::string& bytes, int rank, std::size_t size) {
  return bytes.size() == size && std::all_of(bytes.begin(), bytes.end(),
                                             [&](char byte) { return byte == letter_of(rank); });
}

}  // namespace

int main(int argc, char** argv) {
  return fast::mpi::run(argc, argv, [&](const fast::mpi::Communicator& world) {
    const std::size_t size = (argc > 1 ? std::strtoull(argv[1], nullptr, 10) : 8) << 20;
    const std::string own(size, letter_of(world.rank()));
    const auto all = world.all_gather(own, fast::Deadline(fast::Seconds(60)), "gathering");
    for (int rank = 0; rank < world.size(); ++rank) {
      fast::require(is_of(all[static_cast<std::size_t>(rank)], rank, size),
                    fast::ErrorKind::internal, "gathering: the bytes of rank {} are wrong", rank);
    }
    const char* threshold = std::getenv("UCX_RNDV_THRESH");
    std::printf("rank %d of %d gathered, threshold: %s\n", world.rank(), world.size(),
                threshold == nullptr ? "default" : threshold);
    return 0;
  });
}
