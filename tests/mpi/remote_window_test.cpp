#include "mpi/remote_window.hpp"

#include <sys/mman.h>

#include <climits>
#include <fast/core/error.hpp>

#include "support/catch.hpp"
#include "support/mpi_main.hpp"

using namespace fast;

TEST_CASE("a remote window is read beyond 4 GiB") {
  constexpr std::size_t four_gib = std::size_t{1} << 32;
  constexpr std::size_t size_bytes = four_gib + four_gib / 10;
  const mpi::Communicator& world = testing::world();
  void* data = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);  // touched pages only
  REQUIRE(data != MAP_FAILED);
  auto* bytes = static_cast<std::byte*>(data);
  bytes[four_gib + 5] = static_cast<std::byte>(world.rank() + 1);
  bytes[5] = std::byte{99};  // where an offset cut to 32 bits would read
  const std::shared_ptr<void> keep(data, [](void* p) { munmap(p, size_bytes); });
  const Deadline deadline(Seconds(20));
  const mpi::RemoteWindow window(world, bytes, size_bytes, keep, deadline);
  for (int rank = 0; rank < world.size(); ++rank) {
    std::byte got{0};
    CHECK(window.get(rank, four_gib + 5, &got, 1).wait(deadline));
    CHECK(got == static_cast<std::byte>(rank + 1));
  }
  CHECK_THROWS_WITH(window.get(0, 0, bytes, std::size_t{INT_MAX} + 1),
                    Catch::Matchers::Contains("a read has 2147483648 bytes"));
}
