#include <png.h>

#include <fast/core/error.hpp>
#include <fast/data/formats.hpp>
#include <fast/data/load.hpp>
#include <fstream>

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

using namespace fast;
using fast::testing::TemporaryDirectory;

namespace {

/// A 2-row image whose pixels are `first`, `first` + 1, ...
void write_png(const std::filesystem::path& path, int first, unsigned columns = 3,
               unsigned format = PNG_FORMAT_RGB) {
  std::filesystem::create_directories(path.parent_path());
  png_image png{};
  png.version = PNG_IMAGE_VERSION;
  png.width = columns;
  png.height = 2;
  png.format = format;
  std::vector<std::uint8_t> pixels(PNG_IMAGE_SIZE(png));
  for (std::size_t i = 0; i < pixels.size(); ++i)
    pixels[i] = static_cast<std::uint8_t>(first + static_cast<int>(i));
  REQUIRE(png_image_write_to_file(&png, path.c_str(), 0, pixels.data(), 0, nullptr) != 0);
}

/// Two classes, cat with one image a part, dog with two.
void write_parts(const std::filesystem::path& root) {
  for (const char* part : {"train", "test"}) {
    write_png(root / part / "dog/b.png", 50);
    write_png(root / part / "dog/a.png", 20);
    write_png(root / part / "cat/z.png", 0);
  }
}

std::vector<float> sample_of(const data::Dataset& dataset, std::size_t index) {
  std::vector<float> sample(dataset.sample_size());
  dataset.gather(std::vector<std::size_t>{index}, {{0}, {1.0F / 255}}, sample);
  return sample;
}

}  // namespace

TEST_CASE("a folder a class is read as planes, the classes by turns") {
  const TemporaryDirectory directory;
  write_parts(directory.path());
  const data::Splits splits = data::load(directory.path().string());
  CHECK(splits.train.classes() == 2);
  CHECK(splits.train.sample_shape() == std::vector<std::int64_t>{3, 2, 3});
  CHECK(std::vector(splits.train.labels().begin(), splits.train.labels().end()) ==
        std::vector{0, 1, 1});
  const auto dog = sample_of(splits.train, 1);
  CHECK(dog[0] == Approx(20));
  CHECK(dog[1] == Approx(23));
  CHECK(dog[6] == Approx(21));
  CHECK(data::load(directory.path().string(), {.limit = 2}).train.labels()[1] == 1);
  CHECK_THROWS_WITH(data::load(directory.path().string(), {.classes = 2}),
                    ContainsSubstring("--classes: without effect"));
}

TEST_CASE("images without the folder of a split are refused by name") {
  const TemporaryDirectory directory;
  write_png(directory / "photos/dog/a.png", 1);
  write_png(directory / "photos/cat/b.png", 1);
  CHECK_THROWS_WITH(
      data::load((directory / "photos").string()),
      ContainsSubstring("photos has images (cat), and no folder \"train\"; move them"));
  write_png(directory / "flat/a.png", 1);
  CHECK_THROWS_WITH(data::load((directory / "flat").string()),
                    ContainsSubstring("flat has images (a.png), and no folder \"train\""));
}

TEST_CASE("gray images get three equal channels") {
  const TemporaryDirectory directory;
  write_png(directory / "only/a.png", 10, 3, PNG_FORMAT_GRAY);
  const auto sample = sample_of(data::read_image_folder(directory.path(), {"only"}), 0);
  CHECK(sample[1] == Approx(11).margin(1.01));
  CHECK(sample[7] == sample[1]);
}

TEST_CASE("images that are decoded later have the size of the first one that can be read") {
  const TemporaryDirectory directory;
  write_parts(directory.path());
  const std::filesystem::path train = directory / "train";
  std::ofstream(train / "cat/z.png") << "no image";
  write_png(train / "dog/b.png", 50, 4);
  const data::Dataset images = data::open_image_folder(train, {"cat", "dog"});
  CHECK(images.size() == 3);
  CHECK(images.sample_shape() == std::vector<std::int64_t>{3, 2, 3});
  CHECK(sample_of(images, 1)[0] == Approx(20));
  CHECK_THROWS_WITH(sample_of(images, 0), ContainsSubstring("cat/z.png"));
  CHECK_THROWS_WITH(sample_of(images, 2),
                    ContainsSubstring("dog/a.png is 2x3") && ContainsSubstring("dog/b.png is 2x4"));
  for (const char* name : {"dog/a.png", "dog/b.png"}) std::ofstream(train / name) << "no image";
  CHECK_THROWS_WITH(data::open_image_folder(train, {"cat", "dog"}),
                    ContainsSubstring("dog/b.png: cannot be read"));
}

TEST_CASE("a split of image folders that is not there is refused by name") {
  const TemporaryDirectory directory;
  write_parts(directory.path());
  const std::string path = directory.path().string();
  CHECK_THROWS_WITH(
      data::load(path, {.train_split = "trian"}),
      ContainsSubstring("no split \"trian\"") && ContainsSubstring("did you mean \"train\"?"));
  std::filesystem::remove_all(directory / "test");
  CHECK_THROWS_WITH(data::load(path), ContainsSubstring("test or val or valid or validation is "
                                                        "required, found are the splits train;"));
}

TEST_CASE("image folders that do not fit are told so, by name") {
  const TemporaryDirectory directory;
  write_parts(directory.path());
  std::filesystem::remove_all(directory / "test/cat");
  CHECK_THROWS_WITH(data::load(directory.path().string()), ContainsSubstring("test/cat"));
  write_png(directory / "test/cat/z.png", 0, 4);
  CHECK_THROWS_WITH(data::load(directory.path().string()),
                    ContainsSubstring("2x4") && ContainsSubstring("dog/a.png is 2x3"));
  std::ofstream(directory / "test/cat/z.png") << "no image";
  CHECK_THROWS_WITH(data::load(directory.path().string()),
                    ContainsSubstring("test/cat/z.png: cannot be read"));
  write_png(directory / "test/emu/z.png", 0);
  CHECK_THROWS_WITH(data::load(directory.path().string()), ContainsSubstring("emu"));
}

TEST_CASE("to use a model, images need no splits, and for predictions no classes") {
  const TemporaryDirectory directory;
  write_parts(directory.path());
  const std::string folder = (directory / "train").string();
  data::LoadOptions options;
  options.purpose = data::Purpose::evaluation;
  options.class_names = {"cat", "cow", "dog"};
  const data::Splits evaluated = data::load(folder, options);
  CHECK(evaluated.train.size() == 0);
  const auto labels = evaluated.test.labels();
  CHECK(std::vector<int>(labels.begin(), labels.end()) == std::vector{0, 2, 2});
  CHECK(evaluated.test.classes() == 3);
  CHECK(data::load(directory.path().string(), options).test.classes() == 3);
  options.class_names = {"cat", "cow"};
  for (const std::string& from : {folder, directory.path().string()}) {
    CHECK_THROWS_WITH(
        data::load(from, options),
        ContainsSubstring("a folder \"dog\", which is not among the 2 classes of the model"));
  }

  write_png(directory / "photos/b.png", 20);
  write_png(directory / "photos/a.png", 0);
  const std::string photos = (directory / "photos").string();
  CHECK_THROWS_WITH(data::load(photos, options), ContainsSubstring("no folder \"train\""));
  options.purpose = data::Purpose::prediction;
  const data::Dataset predicted = data::load(photos, options).test;
  REQUIRE(predicted.size() == 2);
  CHECK(predicted.source()->name_of(0) == photos + "/a.png");
  CHECK(sample_of(predicted, 1)[0] == 20);
  CHECK(data::load(folder, options).test.source()->name_of(2) == folder + "/dog/b.png");
  CHECK(data::load(directory.path().string(), options).test.size() == 3);
}
