#include "codec/sparse.hpp"

#include <numeric>
#include <set>
#include <vector>

#include "support/catch.hpp"

using namespace fast;
using namespace fast::codec;

namespace {

/// Written in blocks of one size, read in blocks of another, over 1000 and more.
template <class T>
std::vector<T> sent_and_read(const SelectedShape& shape, std::int64_t combination,
                             std::size_t write_block, std::size_t read_block) {
  std::vector<T> x(shape.elements), back(shape.elements);
  std::iota(x.begin(), x.end(), T{1});
  std::iota(back.begin(), back.end(), T{1001});
  std::vector<std::byte> vector(shape.size_bytes() + 1, std::byte{0x5a});
  write_combination(vector.data(), combination);
  for (std::size_t first = 0; first < x.size(); first += write_block) {
    const std::size_t count = std::min(write_block, x.size() - first);
    encode_selected(shape, shape.code, combination, x.data() + first, first, count, vector.data());
  }
  CHECK(vector.back() == std::byte{0x5a});
  const std::int64_t read = read_combination(vector.data());
  CHECK(read == combination);
  for (std::size_t first = 0; first < x.size(); first += read_block) {
    const std::size_t count = std::min(read_block, x.size() - first);
    const auto range = shape.range(read, first, count);
    decode_selected(shape, shape.code, read, vector.data() + shape.offset_bytes(range.first), first,
                    count, back.data() + first);
  }
  return back;
}

}  // namespace

TEMPLATE_TEST_CASE("of each run one entry travels, others stay", "", float, double) {
  for (const std::uint64_t elements : {1, 7, 8, 9, 1000, 4099}) {
    SelectedShape shape{.elements = elements, .run = 8, .seed = 3};
    shape.value_bytes = sizeof(TestType);
    CHECK(shape.capacity() == (elements + 7) / 8);
    for (const std::int64_t combination : {0, 1, 77}) {
      const auto back = sent_and_read<TestType>(shape, combination, 2048, 100);
      CHECK(back == sent_and_read<TestType>(shape, combination, 3, 2048));
      std::vector<int> traveled(shape.capacity());
      for (std::size_t e = 0; e < back.size(); ++e) {
        const auto value = static_cast<TestType>(e + 1);
        const bool came = back[e] == value;
        if (!came) REQUIRE(back[e] == value + 1000);
        traveled[e / 8] += came ? 1 : 0;
      }
      CHECK(traveled == std::vector<int>(shape.capacity(), 1));
    }
  }
}

TEST_CASE("every entry of a run is drawn about as often") {
  const SelectedShape shape{.elements = 40, .run = 20, .seed = 5};
  std::vector<int> drawn(40);
  constexpr int draws = 20'000;
  for (int t = 0; t < draws; ++t) {
    for (const std::uint64_t entry : {0, 1}) ++drawn[shape.element(t, entry)];
  }
  // Binomial: 1000 in the mean, with a standard deviation of 31.
  for (const int count : drawn) CHECK(std::abs(count - draws / 20) < 160);
}

TEST_CASE("parts travel in turn and make up the model") {
  for (const std::uint64_t elements : {2, 5, 4099}) {
    for (const std::uint64_t parts : {1, 2, 3, 7}) {
      const SelectedShape shape{.elements = elements, .run = 0, .parts = parts};
      std::vector<int> traveled(elements);
      for (std::uint64_t t = 0; t < parts; ++t) {
        const auto back =
            sent_and_read<float>(shape, static_cast<std::int64_t>(10 * parts + t), 64, 33);
        for (std::size_t e = 0; e < elements; ++e)
          traveled[e] += back[e] == static_cast<float>(e + 1) ? 1 : 0;
      }
      CHECK(traveled == std::vector<int>(elements, 1));
    }
  }
}

TEMPLATE_TEST_CASE("of each run one entry travels in 16 bits, rounded, others stay", "", float,
                   double) {
  for (const Kind code : {Kind::bf16, Kind::fp16}) {
    for (const std::uint64_t elements : {1, 7, 4099}) {
      CAPTURE(bits(code), elements);
      SelectedShape shape{.elements = elements, .run = 8, .seed = 3};
      shape.code = code;
      shape.value_bytes = 2;
      CHECK(shape.size_bytes() == (8 + 2 * ((elements + 7) / 8) + 7) / 8 * 8);
      const auto back = sent_and_read<TestType>(shape, 5, 2048, 100);
      CHECK(back == sent_and_read<TestType>(shape, 5, 3, 2048));
      std::vector<int> traveled(shape.capacity());
      for (std::size_t e = 0; e < back.size(); ++e) {
        const auto value = static_cast<float>(e + 1);
        const float rounded =
            code == Kind::bf16 ? to_float(to_bfloat16(value)) : to_float(to_float16(value));
        const bool came = back[e] == rounded;
        if (!came) REQUIRE(back[e] == value + 1000);
        traveled[e / 8] += came ? 1 : 0;
      }
      CHECK(traveled == std::vector<int>(shape.capacity(), 1));
    }
  }
}

TEST_CASE("random roundings of entries are those of their places, whatever the blocks") {
  SelectedShape shape{.elements = 3000, .run = 2, .seed = 3};
  shape.code = Kind::bf16;
  shape.value_bytes = 2;
  std::vector<float> x(shape.elements);
  std::iota(x.begin(), x.end(), 1.001F);
  const auto sent = [&](std::size_t block, std::optional<std::uint32_t> key) {
    std::vector<std::byte> vector(shape.size_bytes());
    for (std::size_t first = 0; first < x.size(); first += block) {
      encode_selected(shape, shape.code, 9, x.data() + first, first,
                      std::min(block, x.size() - first), vector.data(), key);
    }
    return vector;
  };
  CHECK(sent(2048, 7) == sent(77, 7));
  CHECK(sent(2048, 7) != sent(2048, 8));
  CHECK(sent(2048, 7) != sent(2048, {}));
}

TEST_CASE("entries that travel alone have a code of 16 bits or none") {
  for (const Kind code : {Kind::bf16, Kind::fp16}) CHECK(code_of_entries(code) == code);
  for (const Kind other : {Kind::identity, Kind::f64, by_name("int8").kind, by_name("int4").kind})
    CHECK(code_of_entries(other) == Kind::identity);
}

TEST_CASE("values of 16-bit tensors keep their type") {
  SelectedShape shape;
  CHECK(shape.code_of(DType::bf16) == Kind::identity);
  shape.code = Kind::fp16;
  CHECK(shape.code_of(DType::f32) == Kind::fp16);
  CHECK(shape.code_of(DType::f64) == Kind::fp16);
  CHECK(shape.code_of(DType::bf16) == Kind::bf16);
  shape.code = Kind::bf16;
  CHECK(shape.code_of(DType::f16) == Kind::fp16);
}
