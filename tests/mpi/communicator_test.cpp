#include <fast/core/error.hpp>
#include <fast/core/random.hpp>

#include "mpi/impl.hpp"
#include "support/catch.hpp"
#include "support/mpi_main.hpp"
#include "support/seed.hpp"

using namespace fast;

namespace {

std::string bytes_of(int rank, std::size_t size, std::uint64_t seed) {
  Rng rng(mix_seed(seed, static_cast<std::uint64_t>(rank), size));
  std::string bytes(size, '\0');
  for (char& byte : bytes) byte = static_cast<char>(rng.below(256));
  return bytes;
}

}  // namespace

TEST_CASE("what is too long for one call of MPI is gathered in parts") {
  const std::uint64_t seed = test_seed(31);
  INFO("FAST_TEST_SEED=" << seed);
  const mpi::Communicator world =
      mpi::duplicate(testing::world(), Deadline(Seconds(20)), "duplicating");
  Rng rng(seed);
  for (int k = 0; k < 20; ++k) {
    world.impl()->most_bytes_at_once = 200 + rng.below(5000);
    std::vector<std::string> expected;
    for (int rank = 0; rank < world.size(); ++rank)
      expected.push_back(bytes_of(rank, rng.below(3) == 0 ? 0 : rng.below(2000), seed));
    const auto& mine = expected[static_cast<std::size_t>(world.rank())];
    CHECK((world.all_gather(mine, Deadline(Seconds(20)), "gathering") == expected));
  }
}
