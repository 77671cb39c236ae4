#include <fast/core/error.hpp>
#include <fast/data/formats.hpp>
#include <fast/data/load.hpp>
#include <string>

#include "support/catch.hpp"
#include "support/cifar_files.hpp"
#include "support/temporary_directory.hpp"

using namespace fast;
using namespace fast::testing;

TEST_CASE("records become labels and planes, file after file") {
  const TemporaryDirectory directory;
  write_cifar(directory / "a.bin", 3, 0);
  write_cifar(directory / "b.bin", 2, 3);
  const data::Dataset all = data::read_cifar10({directory / "a.bin", directory / "b.bin"});
  CHECK(all.size() == 5);
  CHECK(all.sample_shape() == std::vector<std::int64_t>{3, 32, 32});
  std::vector<float> sample(3072);
  for (std::size_t i = 0; i < 5; ++i) {
    CHECK(all.labels()[i] == static_cast<std::int32_t>(i));
    all.gather(std::vector<std::size_t>{i}, {}, sample);
    for (const std::size_t e : {0, 1023, 1024, 3071}) {
      CHECK(sample[e] == Approx(cifar_pixel(i, e) / 255.0));
    }
  }
}

TEST_CASE("damaged CIFAR files are named") {
  const TemporaryDirectory directory;
  const auto path = directory / "damaged.bin";
  CHECK_THROWS_WITH(data::read_cifar10({path}), ContainsSubstring("damaged.bin"));
  write_cifar(path, 2, 0);
  std::filesystem::resize_file(path, 6145);
  CHECK_THROWS_WITH(data::read_cifar10({path}),
                    ContainsSubstring("damaged.bin") && ContainsSubstring("6145 bytes"));
  std::filesystem::resize_file(path, 0);
  CHECK_THROWS_AS(data::read_cifar10({path}), Error);
  write_cifar(path, 3, 8);
  CHECK_THROWS_WITH(data::read_cifar10({path}), ContainsSubstring("label 10 of record 2"));
}

namespace {

void write_all_six(const std::filesystem::path& place) {
  std::filesystem::create_directories(place);
  for (std::size_t i = 0; i < 5; ++i)
    write_cifar(place / ("data_batch_" + std::to_string(i + 1) + ".bin"), 2, 2 * i);
  write_cifar(place / "test_batch.bin", 3, 0);
}

}  // namespace

TEST_CASE("a directory in CIFAR-10's layout is recognized, unpacked as it comes too") {
  const TemporaryDirectory directory;
  for (const std::string& place : {std::string("a"), std::string("b/cifar-10-batches-bin")}) {
    write_all_six(directory / place);
    const std::string path = (directory / place.substr(0, 1)).string();
    CHECK(data::load(path).train.size() == 10);
    const data::Splits splits = data::load(path, {.limit = 7});
    CHECK(splits.train.size() == 7);
    CHECK(splits.train.labels()[6] == 6);
    CHECK(splits.test.size() == 3);
    CHECK(splits.normalization.mean.size() == 3);
    CHECK_THROWS_WITH(data::load(path, {.classes = 12}),
                      ContainsSubstring("--classes: without effect"));
  }
}

TEST_CASE("CIFAR-10 without one of its six files is refused, and the file is named") {
  for (const std::string file :
       {"data_batch_1.bin", "data_batch_3.bin", "data_batch_5.bin", "test_batch.bin"}) {
    const TemporaryDirectory directory;
    write_all_six(directory.path());
    std::filesystem::remove(directory / file);
    CHECK_THROWS_WITH(data::load(directory.path().string()),
                      ContainsSubstring(file + ": there is no such file"));
    CHECK_THROWS_WITH(data::load(directory.path().string(), {.limit = 1}),
                      ContainsSubstring(file + ": there is no such file"));
  }
}

TEST_CASE("CIFAR-100 has a hundred classes, and a group before each class") {
  const TemporaryDirectory directory;
  for (const char* name : {"train.bin", "test.bin"}) {
    std::ofstream file(directory / name, std::ios::binary);
    for (const int label : {99, 7}) {
      file.put('\x13').put(static_cast<char>(label));
      for (std::size_t e = 0; e < 3072; ++e) file.put(static_cast<char>(cifar_pixel(0, e)));
    }
  }
  const data::Splits splits = data::load(directory.path().string());
  CHECK(splits.train.classes() == 100);
  CHECK(splits.train.labels()[0] == 99);
  CHECK(splits.test.labels()[1] == 7);
  CHECK(std::get<0>(splits.train.values())[1] == cifar_pixel(0, 1));
  std::filesystem::resize_file(directory / "test.bin", 3074 + 3073);
  CHECK_THROWS_WITH(
      data::load(directory.path().string()),
      ContainsSubstring("test.bin: 6147 bytes are not a whole number of records of 3074"));
  std::filesystem::remove(directory / "train.bin");
  CHECK_THROWS_WITH(data::load(directory.path().string()),
                    ContainsSubstring("cifar-100 has train.bin and test.bin"));
}
