#include <cmath>
#include <fast/codec/sparse.hpp>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <limits>
#include <vector>

#include "support/catch.hpp"

using namespace fast;
using namespace fast::codec;

namespace {

struct Room {
  explicit Room(const SparseShape& shape) : words(shape.size_bytes() / sizeof(double)) {}
  std::byte* data() { return reinterpret_cast<std::byte*>(words.data()); }
  std::vector<double> words;
};

}  // namespace

TEMPLATE_TEST_CASE("entries come back exactly, whatever the blocks", "", float, double) {
  for (const std::size_t count : {1, 5, 255, 1000, 5000}) {
    for (const double share : {0.0, 0.01, 0.5, 1.0}) {
      Rng rng(count + static_cast<std::size_t>(share * 100));
      std::vector<TestType> x(count);
      std::size_t entries = 0;
      for (TestType& value : x) {
        if (rng.uniform() >= share) continue;
        value = static_cast<TestType>(rng.normal());
        ++entries;
      }
      const SparseShape shape{entries + 2, sizeof(TestType)};
      Room room(shape);
      SparseWriter writer(shape, room.data());
      for (std::size_t first = 0; first < count; first += 300) {
        writer.append(x.data() + first, first, std::min<std::size_t>(300, count - first));
      }
      for (const std::size_t block : {std::size_t{1}, std::size_t{256}, count}) {
        std::vector<TestType> back(count, TestType{9});
        for (std::size_t first = 0; first < count; first += block) {
          decode_sparse(shape, room.data(), first, std::min(block, count - first),
                        back.data() + first);
        }
        REQUIRE(back == x);
      }
    }
  }
}

TEST_CASE("what is not finite is an entry like any other") {
  const float x[] = {0, std::numeric_limits<float>::quiet_NaN(), 0,
                     -std::numeric_limits<float>::infinity()};
  const SparseShape shape{2};
  Room room(shape);
  SparseWriter(shape, room.data()).append(x, 0, 4);
  float back[4];
  decode_sparse(shape, room.data(), 0, 4, back);
  CHECK(std::isnan(back[1]));
  CHECK(back[3] == x[3]);
  CHECK((back[0] == 0 && back[2] == 0));
}

TEST_CASE("more entries than there is room for are refused, not dropped") {
  const SparseShape shape{2};
  Room room(shape);
  SparseWriter writer(shape, room.data());
  const float x[] = {1, 2, 3};
  CHECK_THROWS_AS(writer.append(x, 0, 3), Error);
}

TEST_CASE("a count beyond the room, as of memory that changes meanwhile, is not followed") {
  const SparseShape shape{2};
  Room room(shape);
  const float x[] = {1, 2};
  SparseWriter(shape, room.data()).append(x, 0, 2);
  reinterpret_cast<std::uint64_t*>(room.data())[0] = 1000000;
  float back[4];
  decode_sparse(shape, room.data(), 0, 4, back);
  CHECK((back[0] == 1 && back[1] == 2 && back[3] == 0));
}

TEST_CASE("one entry in a hundred costs a fiftieth of the bytes") {
  const SparseShape shape{10000};
  CHECK(shape.size_bytes() == 80008);
  CHECK(static_cast<double>(shape.size_bytes()) <= 4e6 / 49.9);
}
