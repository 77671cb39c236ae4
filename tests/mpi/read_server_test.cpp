#include "mpi/remote_window.hpp"

#include <array>
#include <atomic>
#include <cstdint>
#include <random>
#include <thread>
#include <vector>

#include "mpi/impl.hpp"
#include "support/catch.hpp"
#include "support/mpi_main.hpp"
#include "support/seed.hpp"

using namespace fast;

namespace {

constexpr std::size_t served_bytes = 300'000;

std::byte byte_of(int rank, std::size_t offset) {
  return static_cast<std::byte>((offset * 31 + offset / 256 + static_cast<std::size_t>(rank)) %
                                251);
}

/// Every rank serves bytes that the others know.
struct Served {
  Deadline deadline{Seconds(40)};
  mpi::Communicator own = mpi::duplicate(testing::world(), deadline, "a test");
  std::vector<std::byte> bytes = [this] {
    std::vector<std::byte> all(served_bytes);
    for (std::size_t i = 0; i < all.size(); ++i) all[i] = byte_of(own.rank(), i);
    return all;
  }();
  mpi::ReadServer server{own, bytes.data(), bytes.size()};

  void barrier() const { testing::world().barrier(deadline, "a test"); }
};

struct Read {
  int rank = 0;
  std::size_t offset = 0;
  std::vector<std::byte> to;
  mpi::Request request;

  bool is_right() const {
    for (std::size_t i = 0; i < to.size(); ++i)
      if (to[i] != byte_of(rank, offset + i)) return false;
    return true;
  }
};

/// So many reads of random ranges of all ranks, a few at a time. How many found what is there.
int read_at_random(Served& served, std::uint64_t seed, int count, std::size_t longest) {
  std::mt19937_64 random(seed + static_cast<std::uint64_t>(served.own.rank()));
  const auto below = [&](std::size_t limit) {
    return std::uniform_int_distribution<std::size_t>(0, limit - 1)(random);
  };
  std::array<Read, 8> reads;
  int right = 0;
  const auto finish = [&](Read& read) {
    if (!read.to.empty() && read.request.wait(served.deadline)) right += read.is_right() ? 1 : 0;
  };
  for (int i = 0; i < count; ++i) {
    Read& read = reads[static_cast<std::size_t>(i) % reads.size()];
    finish(read);
    read.rank = static_cast<int>(below(static_cast<std::size_t>(served.own.size())));
    read.to.assign(1 + below(longest), std::byte{0});
    read.offset = below(served_bytes - read.to.size() + 1);
    read.request =
        served.server.get(read.rank, read.offset, read.to.data(), static_cast<int>(read.to.size()));
  }
  for (Read& read : reads) finish(read);
  return right;
}

}  // namespace

TEST_CASE("reads by messages find what is there, from several threads at the same time") {
  Served served;
  const std::uint64_t seed = test_seed(1);
  INFO("seed " << seed);
  constexpr int threads = 3, count = 50;
  std::atomic<int> right = 0;
  std::vector<std::thread> readers;
  for (std::uint64_t t = 0; t < threads; ++t)
    readers.emplace_back(
        [&, t] { right += read_at_random(served, seed + 100 * t, count, 100'000); });
  for (std::thread& reader : readers) reader.join();
  CHECK(right == threads * count);
  served.barrier();
}

TEST_CASE("bytes outside of the memory are not answered, and the next question is") {
  Served served;
  const int next = (served.own.rank() + 1) % served.own.size();
  std::array<std::byte, 8> outside{}, inside{};
  mpi::Request none = served.server.get(next, served_bytes - 7, outside.data(), 8);
  CHECK(served.server.get(next, served_bytes - 8, inside.data(), 8).wait(served.deadline));
  CHECK(inside.back() == byte_of(next, served_bytes - 1));
  CHECK_FALSE(none.test());
  served.barrier();
}
