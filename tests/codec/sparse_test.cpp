#include <algorithm>
#include <cmath>
#include <cstring>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <limits>
#include <vector>

#include "codec/sparse.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::codec;

namespace {

struct Room {
  explicit Room(const SparseShape& shape) : words(shape.size_bytes() / sizeof(double)) {}
  std::byte* data() { return reinterpret_cast<std::byte*>(words.data()); }
  std::vector<double> words;
};

/// A vector whose elements are not 0 with this probability.
template <class T>
std::vector<T> few_of(std::size_t count, double share, std::uint64_t seed) {
  Rng rng(seed);
  std::vector<T> x(count);
  for (T& value : x) {
    if (rng.uniform() < share) value = static_cast<T>(rng.normal());
  }
  return x;
}

template <class T>
void write_blocks(const SparseShape& shape, std::byte* to, const std::vector<T>& x,
                  std::size_t block, std::optional<std::uint32_t> key = {}) {
  SparseWriter writer(shape, to, key);
  for (std::size_t first = 0; first < x.size(); first += block) {
    writer.append(x.data() + first, first, std::min(block, x.size() - first));
  }
}

template <class T>
std::vector<T> read_blocks(const SparseShape& shape, const std::byte* from, std::size_t count,
                           std::size_t block) {
  std::vector<T> back(count, T{9});
  for (std::size_t first = 0; first < count; first += block) {
    decode_sparse(shape, from, first, std::min(block, count - first), back.data() + first);
  }
  return back;
}

/// What the codec makes of all that is not 0, one after another.
template <class T>
std::vector<T> coded_in_order(Kind kind, const std::vector<T>& x,
                              std::optional<std::uint32_t> key) {
  std::vector<float> values;
  for (const T value : x) {
    if (value != T{0}) values.push_back(static_cast<float>(value));
  }
  std::vector<std::byte> code(coded_bytes(kind, values.size()));
  encode(kind, values.data(), values.size(), code.data(), {key, 0});
  decode(kind, code.data(), values.size(), values.data());
  std::vector<T> back(x.size());
  auto next = values.begin();
  for (std::size_t e = 0; e < x.size(); ++e) {
    if (x[e] != T{0}) back[e] = static_cast<T>(*next++);
  }
  return back;
}

SparseShape coded_shape(const char* codec, std::size_t capacity, std::uint64_t elements) {
  return {.capacity = capacity, .code = by_name(codec).kind, .elements = elements};
}

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

TEMPLATE_TEST_CASE("coded entries come back as the codec makes them, whatever the blocks", "",
                   float, double) {
  for (const char* codec : {"int8_stochastic", "int4", "int2", "bf16"}) {
    INFO(codec);
    const auto key = by_name(codec).stochastic ? std::optional<std::uint32_t>(7) : std::nullopt;
    for (const std::size_t count : {1, 5, 4095, 4096, 4097, 9001}) {
      for (const double share : {0.0, 0.02, 0.5, 1.0}) {
        const auto x =
            few_of<TestType>(count, share, count + static_cast<std::size_t>(share * 100));
        const auto entries =
            x.size() - static_cast<std::size_t>(std::count(x.begin(), x.end(), TestType{0}));
        const SparseShape shape = coded_shape(codec, entries, count);
        const auto expected = coded_in_order(shape.code, x, key);
        for (const std::size_t block : {std::size_t{300}, std::size_t{2048}, count}) {
          Room room(shape);
          write_blocks(shape, room.data(), x, block, key);
          REQUIRE(read_blocks<TestType>(shape, room.data(), count, 300) == expected);
          REQUIRE(read_blocks<TestType>(shape, room.data(), count, count) == expected);
        }
      }
    }
  }
}

TEST_CASE("a coded entry is found at the ends of the chunks of 4096") {
  std::vector<float> x(9000);
  for (const std::size_t at : {0, 4095, 4096, 8191, 8192, 8999}) x[at] = 1;
  const SparseShape shape = coded_shape("int2", 6, x.size());
  Room room(shape);
  write_blocks(shape, room.data(), x, 2048);
  CHECK(read_blocks<float>(shape, room.data(), x.size(), 2048) == x);
}

TEST_CASE("a message of coded entries replaces a longer one") {
  const SparseShape shape = coded_shape("int4", 700, 5000);
  Room room(shape);
  std::vector<float> x(5000);
  std::fill_n(x.begin(), 700, 1.0F);
  write_blocks(shape, room.data(), x, 2048);
  x.assign(5000, 0);
  x[4100] = 2;
  write_blocks(shape, room.data(), x, 2048);
  CHECK(read_blocks<float>(shape, room.data(), x.size(), 2048) == x);
  write_blocks(shape, room.data(), std::vector<float>(5000), 2048);
  CHECK(read_blocks<float>(shape, room.data(), x.size(), 2048) == std::vector<float>(5000));
}

TEST_CASE("a coded entry that is no number is seen in its group of 256 entries, not beside them") {
  for (const char* codec : {"int8", "int4", "int2"}) {
    for (const float bad :
         {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
      std::vector<float> x(1200);
      for (std::size_t e = 0; e < x.size(); e += 2) x[e] = 1;
      x[2 * 300] = bad;
      const SparseShape shape = coded_shape(codec, 600, x.size());
      Room room(shape);
      write_blocks(shape, room.data(), x, 1200);
      const auto back = read_blocks<float>(shape, room.data(), x.size(), 1200);
      for (std::size_t e = 0; e < x.size(); ++e) {
        const bool in_group = e % 2 == 0 && e >= 512 && e < 1024;
        REQUIRE(std::isfinite(back[e]) != in_group);
        if (e % 2 == 1) REQUIRE(back[e] == 0);
      }
    }
  }
}

TEST_CASE("coded entries: no more than there is room for, nor what changed memory says") {
  const SparseShape shape = coded_shape("int4", 2, 4);
  Room room(shape);
  CHECK_THROWS_AS(write_blocks(shape, room.data(), std::vector<float>{1, 2, 3, 0}, 4), Error);
  const std::vector<float> x{7, 0, 0, -7};
  write_blocks(shape, room.data(), x, 4);
  CHECK(read_blocks<float>(shape, room.data(), 4, 4) == x);
  const std::uint32_t many = 1000000;
  std::memcpy(room.data() + sizeof many, &many, sizeof many);  // entries before the chunk's end
  CHECK(read_blocks<float>(shape, room.data(), 4, 4) == x);
  std::memset(room.data() + 2 * sizeof many, 0xff, 3);  // both places are 4095
  CHECK(read_blocks<float>(shape, room.data(), 4, 4) == std::vector<float>(4));
}

// 4 bytes a chunk of 4096 and 4 more, 12 bits an entry, then the code: 2 bits an entry and 8 bytes
// for each 256.
TEST_CASE("bytes of coded entries") {
  CHECK(coded_shape("int2", 100, 10000).size_bytes() == 208);        // 4 * 4 + 152 + 25 + 8 = 201
  CHECK(coded_shape("int2", 1, 1).size_bytes() == 24);               // 4 * 2 + 4 + 1 + 8 = 21
  CHECK(coded_shape("int2", 10000, 1000000).size_bytes() == 18808);  // 984 + 15000 + 2500 + 320
  CHECK(coded_shape("int4", 10000, 1000000).size_bytes() == 21144);  // 984 + 15000 + 5000 + 160
  CHECK(coded_shape("int8", 10000, 1000000).size_bytes() == 26144);  // 984 + 15000 + 10000 + 160
}

TEST_CASE("one entry in a hundred costs a fiftieth of the bytes") {
  const SparseShape shape{10000};
  CHECK(shape.size_bytes() == 80008);
  CHECK(static_cast<double>(shape.size_bytes()) <= 4e6 / 49.9);
}
