#include "data/files/image.hpp"

#include <fast/core/error.hpp>
#include <fast/data/load.hpp>
#include <fstream>

#include "support/catch.hpp"
#include "support/image_files.hpp"
#include "support/temporary_directory.hpp"

using namespace fast;
using namespace fast::testing;

namespace {

void save(const std::filesystem::path& path, const std::string& bytes) {
  std::filesystem::create_directories(path.parent_path());
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace

TEST_CASE("JPEG images of one and of three channels are read as three") {
  for (const int channels : {1, 3}) {
    const data::Image image = data::decode_image(jpeg_bytes(9, 17, 120, channels), "a.jpg");
    CHECK(image.rows == 9);
    CHECK(image.columns == 17);
    REQUIRE(image.pixels.size() == 9 * 17 * 3);
    for (const std::uint8_t value : image.pixels) CHECK(std::abs(value - 120) <= 2);
  }
}

TEST_CASE("the first bytes of an image tell its format") {
  const data::Image image = data::decode_image(png_bytes(1, 2, {1, 2, 3, 4, 5, 6}), "a.jpg");
  CHECK(image.pixels == std::vector<std::uint8_t>{1, 2, 3, 4, 5, 6});
  std::vector<std::uint8_t> planes(6);
  image.copy_planes(planes);
  CHECK(planes == std::vector<std::uint8_t>{1, 4, 2, 5, 3, 6});
  CHECK(data::has_image_ending("a/B.JPEG"));
  CHECK(data::has_image_ending("a.png"));
  CHECK_FALSE(data::has_image_ending("a.png.txt"));
}

TEST_CASE("a damaged image is refused by name, wherever it is cut") {
  const std::string jpeg = jpeg_bytes(16, 16, 99),
                    png = png_bytes(2, 2, std::vector<std::uint8_t>(12));
  CHECK_THROWS_WITH(data::decode_image("", "a.jpg"),
                    ContainsSubstring("image a.jpg: cannot be read"));
  CHECK_THROWS_WITH(data::decode_image("GIF89a", "a.jpg"),
                    ContainsSubstring("neither as a PNG nor"));
  // A PNG image is whole without its last chunk, which has 12 bytes and says that it ends.
  for (const auto& [whole, ends] :
       {std::pair(&jpeg, std::size_t{2}), std::pair(&png, std::size_t{12})}) {
    for (std::size_t cut = 4; cut < whole->size() - ends; cut += 3) {
      INFO("cut at " << cut << " of " << whole->size());
      CHECK_THROWS_WITH(data::decode_image(whole->substr(0, cut), "a.jpg"),
                        ContainsSubstring("image a.jpg: cannot be read"));
    }
  }
  std::string wrong = jpeg;
  for (std::size_t i = 20; i < 60; ++i) wrong[i] = '\x55';
  CHECK_THROWS_WITH(data::decode_image(wrong, "b.jpg"), ContainsSubstring("image b.jpg"));
}

TEST_CASE("folders of images may have any usual split, and JPEG beside PNG") {
  const TemporaryDirectory directory;
  for (const char* split : {"train", "val", "valid"}) {
    save(directory / split / "cat/a.png", png_bytes(2, 2, std::vector<std::uint8_t>(12, 5)));
    save(directory / split / "dog/b.JPG", jpeg_bytes(2, 2, split == std::string("val") ? 200 : 50));
  }
  const std::string path = directory.path().string();
  const auto dog = [](const data::Dataset& part) {
    return std::get<std::span<const std::uint8_t>>(part.values())[12];
  };
  CHECK(data::load(path).train.classes() == 2);
  CHECK(dog(data::load(path).test) > 190);  // "val" goes before "valid"
  data::LoadOptions options;
  options.test_split = "valid";
  CHECK(dog(data::load(path, options).test) < 60);
  options.train_split = "val";
  CHECK(dog(data::load(path, options).train) > 190);
  options.test_split = "val";
  CHECK_THROWS_WITH(data::load(path, options),
                    ContainsSubstring("the training and the test split"));
  options.test_split = "vall";
  CHECK_THROWS_WITH(data::load(path, options), ContainsSubstring("did you mean \"val"));
  std::filesystem::create_directories(directory / "test/cat");
  std::filesystem::create_directories(directory / "test/dog");
  CHECK_THROWS_WITH(data::load(path), ContainsSubstring("test/cat has no .png, .jpg or .jpeg"));
  save(directory / "train/dog/b.JPG", "no image");
  CHECK_THROWS_WITH(data::load(path, {.test_split = "val"}),
                    ContainsSubstring("train/dog/b.JPG: cannot be read"));
}

TEST_CASE("options that a format does not have are refused") {
  const TemporaryDirectory directory;
  save(directory / "train/cat/a.png", png_bytes(2, 2, std::vector<std::uint8_t>(12)));
  const auto refused = [&](const data::LoadOptions& options, const char* name) {
    CHECK_THROWS_WITH(data::load(directory.path().string(), options),
                      ContainsSubstring(name) && ContainsSubstring("without effect"));
  };
  refused({.target = "y"}, "--target");
  refused({.features = {"y"}}, "--features");
  refused({.test_data = "y"}, "--test-data");
  refused({.test_share = 0.1}, "--test-share");
  CHECK_THROWS_WITH(data::load("fashion-mnist", {.train_split = "x"}),
                    ContainsSubstring("--train-split: without effect"));
}

TEST_CASE("an image is laid upright in the eight ways of EXIF") {
  // Two rows of three pixels: abc, def.
  const std::string pixels = "abcdef";
  data::Image image{2, 3, {}};
  for (const char c : pixels)
    image.pixels.insert(image.pixels.end(), 3, static_cast<std::uint8_t>(c));
  const auto laid = [&](int orientation) {
    const data::Image result = data::upright(image, orientation);
    std::string rows;
    for (std::int64_t row = 0; row < result.rows; ++row) {
      if (row > 0) rows += '/';
      for (std::int64_t column = 0; column < result.columns; ++column)
        rows += static_cast<char>(
            result.pixels[3 * static_cast<std::size_t>(row * result.columns + column)]);
    }
    return rows;
  };
  const char* expected[] = {"abc/def",  "abc/def",  "cba/fed",  "fed/cba",  "def/abc",
                            "ad/be/cf", "da/eb/fc", "fc/eb/da", "cf/be/ad", "abc/def"};
  for (int orientation = 0; orientation < 10; ++orientation)
    CHECK(laid(orientation) == expected[orientation]);
}

TEST_CASE("folders of images skip hidden files, read deeper ones and count other formats") {
  const TemporaryDirectory directory;
  for (const char* split : {"train", "test"}) {
    save(directory / split / "cat/more/a.png", png_bytes(2, 2, std::vector<std::uint8_t>(12, 5)));
    save(directory / split / "dog/b.png", png_bytes(2, 2, std::vector<std::uint8_t>(12, 6)));
    save(directory / split / "dog/.b.png", "hidden");
    save(directory / split / ".ipynb_checkpoints/c.png", "hidden");
  }
  save(directory / "train/dog/c.TIFF", "other");
  save(directory / "train/cat/more/b.bmp", "other");
  const data::Splits splits = data::load(directory.path().string());
  CHECK(splits.train.size() == 2);
  CHECK(splits.train.classes() == 2);
  REQUIRE(splits.notes.size() == 1);
  CHECK_THAT(splits.notes[0],
             ContainsSubstring("2 of other formats") && ContainsSubstring("cat/more/b.bmp"));
}

TEST_CASE("a file that is there is no pattern, whatever its name") {
  const TemporaryDirectory directory;
  const std::string table = "a,y\n1,0\n2,1\n3,0\n4,1\n";
  for (const char* name : {"data[1].csv", "DATA.CSV", "a{1,2}.csv", "b*.csv"}) {
    save(directory / name, table);
    CHECK(data::load((directory / name).string(), {.target = "y"}).train.classes() == 2);
  }
}
