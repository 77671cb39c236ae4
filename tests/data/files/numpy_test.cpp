#include <fmt/format.h>

#include <cmath>
#include <fast/core/error.hpp>
#include <fast/data/formats.hpp>
#include <fstream>

#include "data/files/npy.hpp"
#include "data/files/zip.hpp"
#include "support/catch.hpp"
#include "support/npy_files.hpp"
#include "support/temporary_directory.hpp"

using namespace fast;
using namespace fast::testing;

namespace {

void write_file(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// 20 samples of 2 × 3 bytes, of class i mod 4.
void write_arrays(const std::filesystem::path& directory) {
  std::vector<std::uint8_t> x(20 * 6);
  std::vector<std::int64_t> y(20);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<std::uint8_t>(i);
  for (std::size_t i = 0; i < y.size(); ++i) y[i] = static_cast<std::int64_t>(i % 4);
  write_file(directory / "x_train.npy", npy_bytes("|u1", "(20, 2, 3)", x));
  write_file(directory / "y_train.npy", npy_bytes("<i8", "(20,)", y));
  write_file(directory / "x_test.npy", npy_bytes("|u1", "(20, 2, 3)", x));
  write_file(directory / "y_test.npy", npy_bytes("<i8", "(20,)", y));
}

}  // namespace

TEST_CASE("arrays of the five types are read") {
  const auto bytes =
      data::parse_npy(npy_bytes("|u1", "(3,)", std::vector<std::uint8_t>{1, 2, 255}), "a");
  CHECK(std::get<0>(bytes.values) == std::vector<std::uint8_t>{1, 2, 255});
  CHECK(bytes.shape == std::vector<std::int64_t>{3});
  const auto floats =
      data::parse_npy(npy_bytes("<f4", "(2, 1)", std::vector<float>{1.5F, -2}), "a");
  CHECK(std::get<1>(floats.values) == std::vector<float>{1.5F, -2});
  const auto doubles =
      data::parse_npy(npy_bytes("<f8", "(1, 2)", std::vector<double>{1.5, -2}), "a");
  CHECK(std::get<3>(doubles.values) == std::vector<double>{1.5, -2});
  const auto ints =
      data::parse_npy(npy_bytes("<i4", "(2,)", std::vector<std::int32_t>{7, -8}), "a");
  CHECK(std::get<2>(ints.values) == std::vector<std::int64_t>{7, -8});
  const auto longs =
      data::parse_npy(npy_bytes("<i8", "()", std::vector<std::int64_t>{1L << 40}), "a");
  CHECK(std::get<2>(longs.values) == std::vector<std::int64_t>{1L << 40});
  CHECK(longs.shape.empty());
  const auto unsigned_longs =
      data::parse_npy(npy_bytes("<u8", "(1,)", std::vector<std::uint64_t>{1ULL << 63U}), "a");
  CHECK(std::get<3>(unsigned_longs.values) == std::vector<double>{9223372036854775808.0});
}

TEST_CASE("an array in Fortran order, or of big-endian numbers, is read as NumPy reads it") {
  // [[1, 2, 3], [4, 5, 6]], column by column.
  std::string turned = npy_head("<f4", "(2, 3)", "True");
  for (const float value : {1.0F, 4.0F, 2.0F, 5.0F, 3.0F, 6.0F})
    turned.append(reinterpret_cast<const char*>(&value), sizeof value);
  CHECK(std::get<1>(data::parse_npy(turned, "a").values) == std::vector<float>{1, 2, 3, 4, 5, 6});
  const auto big =
      data::parse_npy(npy_bytes(">i2", "(2,)", std::vector<std::uint8_t>{1, 2, 255, 254}), "a");
  CHECK(std::get<2>(big.values) == std::vector<std::int64_t>{258, -2});
  const auto truths =
      data::parse_npy(npy_bytes("|b1", "(2,)", std::vector<std::uint8_t>{1, 0}), "a");
  CHECK(std::get<2>(truths.values) == std::vector<std::int64_t>{1, 0});
  const auto halves =
      data::parse_npy(npy_bytes("<f2", "(1,)", std::vector<std::uint16_t>{0x3e00}), "a");
  CHECK(std::get<1>(halves.values) == std::vector<float>{1.5F});
}

TEST_CASE("what is no such array is refused by name") {
  const std::string good = npy_bytes("<f4", "(2, 3)", std::vector<float>(6));
  const auto refused = [](const std::string& bytes, const char* message) {
    CHECK_THROWS_WITH(data::parse_npy(bytes, "a.npy"),
                      ContainsSubstring("numpy: a.npy") && ContainsSubstring(message));
  };
  refused(good.substr(0, good.size() - 1), "23 bytes of values, shape (2, 3) of <f4 needs 24");
  refused(good + "x", "25 bytes of values");
  refused(good.substr(0, 40), "truncated within its header");
  refused("no array", "does not begin as NumPy's .npy files do");
  refused("", "does not begin");
  refused(npy_head("|O", "(2,)"), "pickled Python objects");
  refused(npy_head("<c8", "(1,)") + std::string(8, '\0'), "elements of type \"<c8\"");
  refused(npy_head("<f4", "(-2,)"), "its shape is damaged");
  refused(npy_head("<f4", "(9223372036854775807, 9223372036854775807)"),
          "more elements than memory");
  std::string later = good;
  later[6] = 9;
  refused(later, "version 9");
}

TEST_CASE("a directory of NumPy files has samples and classes") {
  const TemporaryDirectory directory;
  write_arrays(directory.path());
  const data::Splits splits = data::load(directory.path().string());
  CHECK(splits.train.size() == 20);
  CHECK(splits.train.classes() == 4);
  CHECK(splits.train.is_bytes());
  CHECK(splits.train.sample_shape() == std::vector<std::int64_t>{1, 2, 3});
  CHECK(splits.train.labels()[6] == 2);
  std::filesystem::remove(directory / "x_test.npy");
  const data::Splits held_out = data::load(directory.path().string());
  CHECK(held_out.train.size() == 16);
  CHECK(held_out.test.size() == 4);
  std::filesystem::remove(directory / "y_train.npy");
  CHECK_THROWS_WITH(data::load(directory.path().string()),
                    ContainsSubstring("no array \"y_train\""));
}

TEST_CASE("targets of one file are numbers, or several numbers a sample") {
  const TemporaryDirectory directory;
  write_file(directory / "x.npy", npy_bytes("<f8", "(4, 2)", std::vector<double>(8, 1)));
  write_file(directory / "y.npy",
             npy_bytes("<f8", "(4, 2)", std::vector<double>{1, 2, 3, 4, 5, 6, 7, 8}));
  data::LoadOptions options;
  options.target = (directory / "y.npy").string();
  options.test_share = 0.25;
  const data::Splits splits = data::load((directory / "x.npy").string(), options);
  CHECK(splits.train.target_shape() == std::vector<std::int64_t>{2});
  CHECK(splits.train.targets().size() == 6);
  write_file(directory / "y.npy", npy_bytes("<f8", "(3,)", std::vector<double>(3)));
  CHECK_THROWS_WITH(data::load((directory / "x.npy").string(), options),
                    ContainsSubstring("shape (3) for 4 samples"));
  write_file(directory / "y.npy", npy_bytes("<f4", "(4,)", std::vector<float>{0.5, NAN, 0, 0}));
  CHECK_THROWS_WITH(data::load((directory / "x.npy").string(), options),
                    ContainsSubstring("y.npy: target 1 is not finite"));
  write_file(directory / "x.npy", npy_bytes("<f4", "(2, 2)", std::vector<float>{0, 0, 0, NAN}));
  CHECK_THROWS_WITH(data::load((directory / "x.npy").string(), options),
                    ContainsSubstring("x.npy: sample 1 has a value that is not finite"));
}

TEST_CASE("arrays of 64 bits keep small differences of large values, in both parts") {
  const TemporaryDirectory directory;
  const std::vector<double> train{1.7e9, 1, 1.7e9 + 40, 2, 1.7e9 + 1, 3, 1.7e9 + 30, 4};
  const std::vector<std::int64_t> test{1700000050, 5, 1699999990, 6}, labels{0, 1, 0, 1};
  write_file(directory / "x_train.npy", npy_bytes("<f8", "(4, 2)", train));
  write_file(directory / "y_train.npy", npy_bytes("<i8", "(4,)", labels));
  write_file(directory / "x_test.npy", npy_bytes("<i8", "(2, 2)", test));
  write_file(directory / "y_test.npy", npy_bytes("<i8", "(2,)", std::vector<std::int64_t>{1, 0}));
  const data::Splits splits = data::load(directory.path().string());
  CHECK(splits.normalization.origins == std::vector<double>{1.7e9, 0});
  std::vector<float> seen(4);
  const std::vector<std::size_t> both{0, 1};
  splits.test.gather(both, splits.normalization, seen);
  // Less the mean and divided by the deviation of 0, 40, 1, 30 and of 1, 2, 3, 4.
  const double time = std::sqrt((0.0 + 1600 + 1 + 900) / 4 - 17.75 * 17.75);
  const double expected[] = {(50 - 17.75) / time, 2.5 / std::sqrt(1.25), (-10 - 17.75) / time,
                             3.5 / std::sqrt(1.25)};
  for (std::size_t i = 0; i < 4; ++i) CHECK(std::abs(seen[i] - expected[i]) < 1e-5);
  REQUIRE(splits.notes.size() == 1);
  CHECK_THAT(splits.notes[0],
             ContainsSubstring("x_train: column 1: values are stored less 1700000000"));
}

TEST_CASE("channels that come last go to the front") {
  const TemporaryDirectory directory;
  std::vector<float> x(2 * 5 * 4 * 3);
  for (std::size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  write_file(directory / "x.npy", npy_bytes("<f4", "(2, 5, 4, 3)", x));
  write_file(directory / "y.npy", npy_bytes("<i4", "(2,)", std::vector<std::int32_t>{0, 1}));
  data::LoadOptions options;
  options.test_share = 0.5;
  const data::Splits splits = data::load(directory.path().string(), options);
  CHECK(splits.train.sample_shape() == std::vector<std::int64_t>{3, 5, 4});
  const auto values = std::get<std::span<const float>>(splits.train.values());
  const float first = splits.train.labels()[0] == 0 ? 0 : 60;
  CHECK(values[0] == first);
  CHECK(values[1] == first + 3);   // the next pixel of the same channel
  CHECK(values[20] == first + 1);  // the next channel of the same pixel
}

TEST_CASE("bytes that are no ZIP archive are refused") {
  CHECK_THROWS_WITH(data::ZipArchive("no archive", "a.npz"), ContainsSubstring("npz: a.npz"));
  CHECK_THROWS_WITH(data::ZipArchive("", "a.npz"), ContainsSubstring("not a complete ZIP archive"));
}

TEST_CASE("arrays in one piece are one part to use a model, and need no targets for predictions") {
  const TemporaryDirectory directory;
  write_file(directory / "x.npy", npy_bytes("<f4", "(3, 1)", std::vector<float>{1, 2, 3}));
  data::LoadOptions options;
  options.purpose = data::Purpose::prediction;
  for (const std::string& from : {directory.path().string(), (directory / "x.npy").string()}) {
    const data::Splits splits = data::load(from, options);
    CHECK(splits.train.size() == 0);
    CHECK(splits.test.size() == 3);
  }
  options.purpose = data::Purpose::evaluation;
  CHECK_THROWS_WITH(data::load(directory.path().string(), options),
                    ContainsSubstring("there is no array \"y\""));
  write_file(directory / "y.npy", npy_bytes("<i8", "(3,)", std::vector<std::int64_t>{0, 2, 1}));
  const data::Splits splits = data::load(directory.path().string(), options);
  const auto labels = splits.test.labels();
  CHECK(std::vector<int>(labels.begin(), labels.end()) == std::vector{0, 2, 1});
}

TEST_CASE("elements that are texts are read from Unicode and from bytes, in any order") {
  using Texts = std::vector<std::string>;
  const std::vector<std::uint32_t> unicode{'c', 'a', 't', 0xe9, 0, 0, 0x1f408, 'x', 0x4e2d};
  CHECK(data::parse_npy(npy_bytes("<U3", "(3,)", unicode), "a").texts ==
        Texts{"cat", "\xc3\xa9", "\xf0\x9f\x90\x88x\xe4\xb8\xad"});
  std::vector<std::uint32_t> swapped;
  for (const std::uint32_t code : unicode) swapped.push_back(__builtin_bswap32(code));
  CHECK(data::parse_npy(npy_bytes(">U3", "(3,)", swapped), "a").texts[0] == "cat");
  const std::vector<char> bytes{'a', 'b', 'c', 0, 'd', 0};
  CHECK(data::parse_npy(npy_bytes("|S2", "(3,)", bytes), "a").texts == Texts{"ab", "c", "d"});
  const std::vector<std::uint32_t> bad{0x110000, 0xd800};
  CHECK(data::parse_npy(npy_bytes("<U1", "(2,)", bad), "a").texts ==
        Texts{"\xef\xbf\xbd", "\xef\xbf\xbd"});
  CHECK_THROWS_WITH(data::parse_npy(npy_bytes("<U3", "(4,)", unicode), "a"),
                    ContainsSubstring("truncated or damaged"));
}

TEST_CASE("targets that are texts are classes with names, in the order of their bytes") {
  const TemporaryDirectory directory;
  const auto write = [&](const char* name, const std::string& letters) {
    const std::vector<char> bytes(letters.begin(), letters.end());
    write_file(directory.path() / name,
               npy_bytes("|S1", fmt::format("({},)", letters.size()), bytes));
  };
  const auto write_samples = [&](const char* name, std::size_t count) {
    write_file(directory.path() / name,
               npy_bytes("<f4", fmt::format("({}, 1)", count), std::vector<float>(count, 1)));
  };
  write_samples("x_train.npy", 4);
  write_samples("x_test.npy", 3);
  write("y_train.npy", "bcab");
  write("y_test.npy", "acc");
  const data::Splits splits = data::load(directory.path());
  CHECK(splits.class_names == std::vector<std::string>{"a", "b", "c"});
  CHECK(splits.train.classes() == 3);
  const auto labels = [](const data::Dataset& part) {
    return std::vector<std::int32_t>(part.labels().begin(), part.labels().end());
  };
  CHECK(labels(splits.train) == std::vector<std::int32_t>{1, 2, 0, 1});
  CHECK(labels(splits.test) == std::vector<std::int32_t>{0, 2, 2});

  data::LoadOptions of_numbers;
  of_numbers.purpose = data::Purpose::evaluation;
  CHECK_THROWS_WITH(data::load(directory.path(), of_numbers),
                    ContainsSubstring("its targets are texts, those of the training part or the "
                                      "model are numbers"));
  data::LoadOptions of_model;
  of_model.purpose = data::Purpose::evaluation;
  of_model.class_names = {"c", "b", "z", "a"};
  CHECK(labels(data::load(directory.path(), of_model).test) == std::vector<std::int32_t>{3, 0, 0});
  write_file(directory.path() / "y_test.npy",
             npy_bytes("<f8", "(3,)", std::vector<double>{7, 3, 7}));
  write_file(directory.path() / "y_train.npy",
             npy_bytes("<i8", "(4,)", std::vector<std::int64_t>{3, 7, 3, 3}));
  CHECK_THROWS_WITH(data::load(directory.path(), of_model),
                    ContainsSubstring("target 1 is 7, which is not a class"));
  of_model.class_names = {"a", "b", "c", "d", "e", "f", "g", "h"};
  CHECK(labels(data::load(directory.path(), of_model).test) == std::vector<std::int32_t>{7, 3, 7});
  of_model.class_names = {"3", "7"};
  CHECK(labels(data::load(directory.path(), of_model).test) == std::vector<std::int32_t>{1, 0, 1});
  of_model.class_names = {"3", "5"};
  CHECK_THROWS_WITH(
      data::load(directory.path(), of_model),
      ContainsSubstring("target 1: class \"7\" is not among the 2 classes of the model"));
  write("y_train.npy", "bcab");
  write("y_test.npy", "acc");

  const auto refused = [&](const std::string& text, const data::LoadOptions& options = {}) {
    CHECK_THROWS_WITH(data::load(directory.path(), options), ContainsSubstring(text));
  };
  data::LoadOptions numbers;
  numbers.targets = data::TargetKind::numbers;
  refused("the targets are texts", numbers);
  data::LoadOptions four;
  four.classes = 4;
  refused("3 different texts, --classes says 4", four);
  write("y_train.npy",
        "b\xe9"
        "ab");
  refused("the class \"\\xe9\" is no text in UTF-8");
  write("y_train.npy", "bcab");
  write("y_test.npy", "axc");
  refused("target 1: class \"x\" is not among the 3 classes of the training part");
  write_file(directory.path() / "y_test.npy",
             npy_bytes("<i8", "(3,)", std::vector<std::int64_t>{0, 1, 2}));
  refused("its targets are numbers, those of the training part or the model are texts");
  write("x_train.npy", "abcd");
  refused("its elements are texts; samples are numbers");
}
