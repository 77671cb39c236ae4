#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <fast/data/synthetic.hpp>
#include <numeric>

#include "data/packed.hpp"
#include "support/catch.hpp"

using namespace fast;

namespace {

std::vector<float> all_of(const data::Dataset& data) {
  std::vector<std::size_t> indices(data.size());
  std::iota(indices.begin(), indices.end(), std::size_t{0});
  std::vector<float> values(data.size() * data.sample_size());
  data.gather(indices, {}, values);
  return values;
}

void check_equal(const data::Dataset& a, const data::Dataset& b) {
  CHECK(a.name() == b.name());
  CHECK(a.classes() == b.classes());
  CHECK(a.sample_shape() == b.sample_shape());
  CHECK(std::equal(a.labels().begin(), a.labels().end(), b.labels().begin(), b.labels().end()));
  CHECK(a.target_shape() == b.target_shape());
  CHECK(std::equal(a.targets().begin(), a.targets().end(), b.targets().begin(), b.targets().end()));
  CHECK(all_of(a) == all_of(b));
}

data::Splits example() {
  data::Splits splits;
  splits.train = data::synthetic_classification(40, {3, 5}, 4, 1).slice(3, 30);
  splits.test = {"bytes", {1, 2}, std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6}, {0, 1, 1}, 2};
  splits.normalization = {{0.5F, 0.25F, 0.125F}, {1, 2, 3}, {0, 1.7e9, 0}};
  return splits;
}

}  // namespace

TEST_CASE("packed data sets are the same in the memory that they were packed into") {
  const data::Splits splits = example();
  const auto memory = std::make_shared<AlignedBuffer>(data::packed_bytes(splits));
  const std::span<std::byte> bytes(memory->data(), memory->size_bytes());
  data::pack(splits, bytes);
  const data::Splits found = data::unpack(bytes, memory);
  check_equal(found.train, splits.train);
  check_equal(found.test, splits.test);
  CHECK(found.normalization.mean == splits.normalization.mean);
  CHECK(found.normalization.stddev == splits.normalization.stddev);
  CHECK(found.normalization.origins == splits.normalization.origins);
  const auto* first = reinterpret_cast<const std::byte*>(found.train.labels().data());
  CHECK((first > bytes.data() && first < bytes.data() + bytes.size()));
}

TEST_CASE("packed data sets keep float targets, labels of each step and their shapes") {
  data::Splits splits;
  splits.train = {"prices",
                  {1},
                  std::vector<float>{1, 2, 3},
                  data::Targets{std::vector<float>{1, 2, 3, 4, 5, 6}, {2, 1}}};
  splits.test = {"tags",
                 {2},
                 std::vector<float>{1, 2, 3, 4},
                 data::Targets{std::vector<std::int32_t>{0, 1, 1, 0}, {2}, 2}};
  const auto memory = std::make_shared<AlignedBuffer>(data::packed_bytes(splits));
  const std::span<std::byte> bytes(memory->data(), memory->size_bytes());
  data::pack(splits, bytes);
  const data::Splits found = data::unpack(bytes, memory);
  check_equal(found.train, splits.train);
  check_equal(found.test, splits.test);
  CHECK(found.train.size() == 3);
  CHECK(found.train.targets().size() == 6);
}

TEST_CASE("memory that holds no packed data sets, or part of them, is refused") {
  const data::Splits splits = example();
  const auto memory = std::make_shared<AlignedBuffer>(data::packed_bytes(splits));
  const std::span<std::byte> bytes(memory->data(), memory->size_bytes());
  CHECK_THROWS_AS(data::unpack(bytes, memory), Error);
  data::pack(splits, bytes);
  for (std::size_t size = 0; size < bytes.size(); size += cache_line_bytes)
    CHECK_THROWS_AS(data::unpack(bytes.first(size), memory), Error);
  CHECK_THROWS_AS(data::pack(splits, bytes.first(bytes.size() - 1)), Error);
}
