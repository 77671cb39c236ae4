#include <fast/core/error.hpp>
#include <fast/data/formats.hpp>
#include <fast/data/load.hpp>
#include <fstream>
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

namespace {

std::string word(std::size_t value) {
  std::string bytes;
  for (int i = 0; i < 4; ++i) bytes += static_cast<char>(value >> (8 * i) & 0xff);
  return bytes;
}

/// As Python 2 writes {'data': an array of that many images, 'labels': ...} in protocol 2. Image i
/// has the label `first` + i, and pixels as write_cifar() has them.
std::string pickle_of(std::size_t images, std::size_t first, const std::string& labels) {
  std::string pixels, numbers;
  for (std::size_t i = 0; i < images; ++i) {
    for (std::size_t e = 0; e < 3072; ++e) pixels += static_cast<char>(cifar_pixel(first + i, e));
    numbers += std::string("K") + static_cast<char>(first + i);
  }
  using namespace std::string_literals;
  return "\x80\x02}q\x01(U\x04"
         "data" +
         "cnumpy.core.multiarray\n_reconstruct\nq\x02"
         "cnumpy\nndarray\nq\x03K\x00\x85U\x01"
         "b\x87Rq\x04(K\x01M"s +
         static_cast<char>(images & 0xff) + static_cast<char>(images >> 8) +
         "M\x00\x0c\x86"
         "cnumpy\ndtype\nq\x05U\x02u1K\x00K\x01\x87Rq\x06(K\x03U\x01|NNNJ\xff\xff"
         "\xff\xffJ\xff\xff\xff\xffK\x00tb\x89T"s +
         word(pixels.size()) + pixels + "tbU"s + static_cast<char>(labels.size()) + labels +
         "]q\x07(" + numbers + "eu.";
}

void write_text(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace

TEST_CASE("the Python version of CIFAR-10 is read, with the names of its classes") {
  const TemporaryDirectory directory;
  const std::filesystem::path place = directory / "cifar-10-batches-py";
  for (std::size_t i = 0; i < 5; ++i)
    write_text(place / ("data_batch_" + std::to_string(i + 1)), pickle_of(2, 2 * i, "labels"));
  write_text(place / "test_batch", pickle_of(3, 0, "labels"));
  std::string names = "\x80\x02}(U\x0blabel_names](";
  for (char c = 'a'; c < 'k'; ++c) names += std::string("U\x02n") + c;
  write_text(place / "batches.meta", names + "eu.");
  const data::Splits splits = data::load(directory.path());
  CHECK(splits.train.size() == 10);
  CHECK(splits.test.size() == 3);
  REQUIRE(splits.class_names.size() == 10);
  CHECK(splits.class_names[9] == "nj");
  std::vector<float> sample(3072);
  splits.train.gather(std::vector<std::size_t>{7}, {}, sample);
  CHECK(sample[1024] == Approx(cifar_pixel(7, 1024) / 255.0));
  CHECK(splits.train.labels()[7] == 7);
  CHECK(data::load(place).train.size() == 10);
}

TEST_CASE("the Python version of CIFAR-100 is read by its fine labels") {
  const TemporaryDirectory directory;
  for (const char* part : {"train", "test"})
    write_text(directory / part, pickle_of(4, 90, "fine_labels"));
  write_text(directory / "meta",
             "\x80\x02}(U\x10"
             "fine_label_names](U\x01"
             "aeu.");
  const data::Splits splits = data::load(directory.path());
  CHECK(splits.train.classes() == 100);
  CHECK(splits.train.labels()[3] == 93);
  CHECK(splits.class_names.empty());  // one name for a hundred classes
}

TEST_CASE("damaged pickles are refused by name, and nothing in one is executed") {
  const TemporaryDirectory directory;
  const std::filesystem::path path = directory / "data_batch_1";
  const std::string good = pickle_of(2, 0, "labels");
  const auto refused = [&](const std::string& bytes, const std::string& text) {
    write_text(path, bytes);
    CHECK_THROWS_WITH(data::read_cifar_python({path}, 10),
                      ContainsSubstring("data_batch_1") && ContainsSubstring(text));
  };
  for (const std::size_t cut : {0UL, 1UL, 30UL, 400UL, 6000UL, good.size() - 1})
    refused(good.substr(0, cut), "truncated");
  refused("}.", "it has no \"data\"");
  refused("cos\nsystem\n(S'id'\ntR.", "not read");
  refused("R.", "stack is empty");
  refused("e.", "mark is missing");
  refused("h\x05.", "memo");
  refused(pickle_of(2, 9, "labels"), "label 10 of image 1, there are 10 classes");
  std::string fewer = good;
  fewer.replace(fewer.size() - 7, 4, "K\x01");
  refused(fewer, "bytes of pixels for 1 labels");
}
