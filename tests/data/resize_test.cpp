#include <fast/data/resize.hpp>

#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/data/formats.hpp>
#include <fast/data/load.hpp>
#include <fast/data/shards.hpp>
#include <fstream>

#include "support/catch.hpp"
#include "support/cifar_files.hpp"
#include "support/image_files.hpp"
#include "support/seed.hpp"
#include "support/tar_files.hpp"
#include "support/temporary_directory.hpp"

using namespace fast;
using data::ImageSize;
using data::Resizer;
using fast::testing::TemporaryDirectory;

namespace {

const ImageSize sizes_of_resize[][2] = {{{6, 9}, {3, 3}},   {{7, 5}, {4, 3}},     {{4, 4}, {9, 7}},
                                        {{11, 6}, {5, 12}}, {{32, 32}, {28, 28}}, {{1, 1}, {3, 2}},
                                        {{5, 8}, {1, 1}},   {{3, 4}, {3, 8}}};

std::string text_of_sizes(const ImageSize (&sizes)[2]) {
  return fmt::format("{}x{} to {}x{}", sizes[0].rows, sizes[0].columns, sizes[1].rows,
                     sizes[1].columns);
}

template <class T>
std::vector<T> resized_plane(const std::vector<T>& plane, ImageSize from, ImageSize to) {
  const Resizer resizer(from, to);
  std::vector<T> into(resizer.to_size());
  resizer.resize(std::span<const T>(plane), into);
  return into;
}

/// A plane of values a·row + b·column + c at the centers of pixels.
std::vector<float> ramp(ImageSize size, double a, double b, double c) {
  std::vector<float> plane;
  for (std::int64_t r = 0; r < size.rows; ++r)
    for (std::int64_t k = 0; k < size.columns; ++k)
      plane.push_back(static_cast<float>(a * (static_cast<double>(r) + 0.5) +
                                         b * (static_cast<double>(k) + 0.5) + c));
  return plane;
}

/// The plane at a point (row, column), between the centers of four pixels.
double interpolated(const std::vector<float>& plane, ImageSize size, double row, double column) {
  const auto cell = [](double position, std::int64_t count) {
    return std::clamp(position - 0.5, 0.0, static_cast<double>(count - 1));
  };
  const double r = cell(row, size.rows), c = cell(column, size.columns);
  double sum = 0;
  for (std::int64_t i = 0; i < size.rows; ++i)
    for (std::int64_t k = 0; k < size.columns; ++k)
      sum += std::max(0.0, 1 - std::abs(r - static_cast<double>(i))) *
             std::max(0.0, 1 - std::abs(c - static_cast<double>(k))) *
             plane[static_cast<std::size_t>(i * size.columns + k)];
  return sum;
}

/// The definition, without separating rows from columns.
double weighted(const std::vector<float>& plane, ImageSize from, ImageSize to, std::int64_t row,
                std::int64_t column) {
  const double down = static_cast<double>(from.rows) / static_cast<double>(to.rows);
  const double right = static_cast<double>(from.columns) / static_cast<double>(to.columns);
  const double n = std::ceil(down - 1e-9), m = std::ceil(right - 1e-9);
  double sum = 0;
  for (double i = 0; i < n; ++i)
    for (double k = 0; k < m; ++k)
      sum += interpolated(plane, from, (static_cast<double>(row) + (i + 0.5) / n) * down,
                          (static_cast<double>(column) + (k + 0.5) / m) * right);
  return sum / (n * m);
}

std::vector<float> sample_values(const data::Dataset& dataset, std::size_t index) {
  std::vector<float> values(dataset.sample_size());
  dataset.gather(std::vector<std::size_t>{index}, {{0}, {1.0F / 255}}, values);
  for (float& value : values) value = std::round(value);  // bytes
  return values;
}

using Shape = std::vector<std::int64_t>;

void write_bytes(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace

TEST_CASE("a size that stays changes no bit, and constants stay") {
  Rng rng(test_seed(11));
  std::vector<float> floats(35);
  std::vector<std::uint8_t> bytes(35);
  for (float& value : floats) value = static_cast<float>(rng.normal());
  for (std::uint8_t& value : bytes) value = static_cast<std::uint8_t>(rng.below(256));
  CHECK(resized_plane(floats, {5, 7}, {5, 7}) == floats);
  CHECK(resized_plane(bytes, {5, 7}, {5, 7}) == bytes);
  for (const auto& sizes : sizes_of_resize) {
    INFO(text_of_sizes(sizes));
    const auto count = [](ImageSize size) {
      return static_cast<std::size_t>(size.rows * size.columns);
    };
    CHECK(resized_plane(std::vector<std::uint8_t>(count(sizes[0]), 77), sizes[0], sizes[1]) ==
          std::vector<std::uint8_t>(count(sizes[1]), 77));
    CHECK(resized_plane(std::vector<float>(count(sizes[0]), 0.3F), sizes[0], sizes[1]) ==
          std::vector<float>(count(sizes[1]), 0.3F));
  }
}

TEST_CASE("a linear ramp stays a linear ramp inside of the outermost centers") {
  for (const auto& sizes : sizes_of_resize) {
    INFO(text_of_sizes(sizes));
    const ImageSize from = sizes[0], to = sizes[1];
    const double down = static_cast<double>(from.rows) / static_cast<double>(to.rows);
    const double right = static_cast<double>(from.columns) / static_cast<double>(to.columns);
    const auto found = resized_plane(ramp(from, 2, -3, 1), from, to);
    const auto expected = ramp(to, 2 * down, -3 * right, 1);
    const auto is_inside = [](std::int64_t place, double scale, std::int64_t count) {
      const double edge = 0.5 / std::ceil(scale - 1e-9), at = static_cast<double>(place);
      return (at + edge) * scale >= 0.5 - 1e-9 &&
             (at + 1 - edge) * scale <= static_cast<double>(count) - 0.5 + 1e-9;
    };
    for (std::int64_t r = 0; r < to.rows; ++r)
      for (std::int64_t c = 0; c < to.columns; ++c) {
        if (!is_inside(r, down, from.rows) || !is_inside(c, right, from.columns)) continue;
        const auto place = static_cast<std::size_t>(r * to.columns + c);
        CHECK(found[place] == Approx(expected[place]).margin(1e-5));
      }
  }
}

TEST_CASE("half the size is the mean of two pixels, twice the size a quarter between centers") {
  CHECK(resized_plane(std::vector<float>{0, 8, 16, 80, 8, 0}, {1, 6}, {1, 3}) ==
        std::vector<float>{4, 48, 4});
  CHECK(resized_plane(std::vector<float>{0, 8}, {1, 2}, {1, 4}) == std::vector<float>{0, 2, 6, 8});
  CHECK(resized_plane(std::vector<std::uint8_t>{0, 1}, {1, 2}, {1, 1}) ==
        std::vector<std::uint8_t>{1});  // 0.5 is rounded up
}

TEST_CASE("each new pixel is the average that the definition gives") {
  Rng rng(test_seed(11));
  for (const auto& sizes : sizes_of_resize) {
    INFO(text_of_sizes(sizes));
    std::vector<float> plane(static_cast<std::size_t>(sizes[0].rows * sizes[0].columns));
    for (float& value : plane) value = static_cast<float>(rng.normal());
    const auto found = resized_plane(plane, sizes[0], sizes[1]);
    for (std::int64_t r = 0; r < sizes[1].rows; ++r)
      for (std::int64_t c = 0; c < sizes[1].columns; ++c)
        CHECK(found[static_cast<std::size_t>(r * sizes[1].columns + c)] ==
              Approx(weighted(plane, sizes[0], sizes[1], r, c)).margin(1e-6));
  }
}

TEST_CASE("sizes of images are read, and what is none is refused") {
  CHECK(data::image_size_from("224x192") == ImageSize{224, 192});
  for (const char* text : {"", "x", "28", "28x", "x28", "28x28x3", "0x4", "-1x4", "4x16385", "a"})
    CHECK_THROWS_WITH(data::image_size_from(text), ContainsSubstring("ROWSxCOLUMNS"));
  CHECK_THROWS_WITH(Resizer({0, 2}, {3, 3}), ContainsSubstring("positive"));
}

TEST_CASE("folders of images of different sizes are read at one size, in memory and streamed") {
  const TemporaryDirectory directory;
  for (const char* part : {"train", "test"}) {
    write_bytes(directory.path() / part / "cat/a.png",
                fast::testing::png_bytes(3, 5, std::vector<std::uint8_t>(45, 10)));
    write_bytes(directory.path() / part / "dog/a.jpg", fast::testing::jpeg_bytes(8, 4, 90));
  }
  CHECK_THROWS_WITH(data::load(directory.path().string()), ContainsSubstring("--resize"));
  for (const bool stream : {false, true}) {
    data::LoadOptions options;
    options.resize = ImageSize{4, 6};
    options.stream = stream;
    const data::Splits splits = data::load(directory.path().string(), options);
    for (const data::Dataset& part : {splits.train, splits.test}) {
      CHECK(part.sample_shape() == Shape{3, 4, 6});
      CHECK(part.is_streamed() == stream);
      CHECK(sample_values(part, 0) == std::vector<float>(72, 10));
      CHECK(sample_values(part, 1) == std::vector<float>(72, 90));
    }
  }
}

TEST_CASE("images of tar shards of different sizes get one size") {
  const TemporaryDirectory directory;
  const std::filesystem::path file = directory.path() / "a.tar";
  const auto image = [](unsigned rows, std::uint8_t value) {
    return fast::testing::png_bytes(rows, 2, std::vector<std::uint8_t>(6 * rows, value));
  };
  using fast::testing::tar_member;
  write_bytes(file, tar_member("a.png", image(3, 7)) + tar_member("a.cls", "0") +
                        tar_member("b.png", image(5, 8)) + tar_member("b.cls", "1") +
                        fast::testing::tar_end());
  data::LoadOptions options;
  options.test_data = file.string();
  options.resize = ImageSize{2, 2};
  const data::Splits splits = data::load(file.string(), options);
  CHECK(splits.test.sample_shape() == Shape{3, 2, 2});
  CHECK(sample_values(splits.train, 0) == std::vector<float>(12, 7));
  CHECK(sample_values(splits.train, 1) == std::vector<float>(12, 8));
}

TEST_CASE("CIFAR's images are resized as planes, and the labels stay") {
  const TemporaryDirectory directory;
  for (int i = 1; i <= 5; ++i)
    fast::testing::write_cifar(directory.path() / fmt::format("data_batch_{}.bin", i), 2, 1);
  fast::testing::write_cifar(directory.path() / "test_batch.bin", 2, 1);
  const data::Splits plain = data::load(directory.path().string());
  data::LoadOptions options;
  options.resize = ImageSize{32, 32};
  const data::Splits same = data::load(directory.path().string(), options);
  CHECK(sample_values(same.train, 3) == sample_values(plain.train, 3));
  CHECK(same.normalization.mean == plain.normalization.mean);
  options.resize = ImageSize{16, 20};
  const data::Splits small = data::load(directory.path().string(), options);
  REQUIRE(small.train.sample_shape() == Shape{3, 16, 20});
  CHECK(small.test.sample_shape() == Shape{3, 16, 20});
  CHECK(std::equal(small.train.labels().begin(), small.train.labels().end(),
                   plain.train.labels().begin(), plain.train.labels().end()));
  const std::vector<float> whole = sample_values(plain.train, 5);
  const std::vector<float> found = sample_values(small.train, 5);
  for (std::size_t channel = 0; channel < 3; ++channel) {
    const std::vector<float> plane(
        whole.begin() + static_cast<std::ptrdiff_t>(1024 * channel),
        whole.begin() + static_cast<std::ptrdiff_t>(1024 * (channel + 1)));
    for (std::int64_t r = 0; r < 16; ++r)
      for (std::int64_t c = 0; c < 20; ++c)
        CHECK(std::abs(found[320 * channel + static_cast<std::size_t>(20 * r + c)] -
                       weighted(plane, {32, 32}, {16, 20}, r, c)) <= 0.501);
  }
}

TEST_CASE("packed shards are resized when they are read, and give what memory gives") {
  const TemporaryDirectory directory;
  std::vector<std::uint8_t> values(5 * 2 * 6 * 4);
  for (std::size_t i = 0; i < values.size(); ++i) values[i] = static_cast<std::uint8_t>(37 * i);
  const data::Dataset memory("images", {2, 6, 4}, values, {0, 1, 2, 1, 0}, 3);
  data::write_packed(memory, directory.path(), "train", 100, {});
  data::write_packed(memory, directory.path(), "test", 100, {});
  data::LoadOptions options;
  options.resize = ImageSize{3, 5};
  options.limit = 4;
  const data::Splits splits = data::load(directory.path().string(), options);
  const data::Dataset expected = data::resized(memory, {3, 5});
  REQUIRE(splits.train.is_streamed());
  CHECK(splits.train.size() == 4);
  CHECK(splits.train.sample_shape() == Shape{2, 3, 5});
  CHECK(splits.train.shards().size() > 1);
  for (std::size_t i = 0; i < 4; ++i)
    CHECK(sample_values(splits.train, i) == sample_values(expected, i));
}

TEST_CASE("samples that are no images are not resized") {
  const data::Dataset table("flowers", {4}, std::vector<float>(8), {0, 1}, 2);
  CHECK_THROWS_WITH(
      data::resized(table, {3, 3}),
      ContainsSubstring("the samples of flowers have the shape [4], they are not images"));
  const data::Dataset floats("floats", {1, 1, 2}, std::vector<float>{0, 8, 1, 1},
                             data::Targets{std::vector<float>{5, 6}, {}});
  const data::Dataset wide = data::resized(floats, {1, 4});
  CHECK(wide.targets()[1] == 6);
  CHECK(std::get<1>(wide.values())[1] == 2);
}
