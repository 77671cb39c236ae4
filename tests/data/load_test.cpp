#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/data/load.hpp>
#include <fstream>

#include "support/catch.hpp"
#include "support/idx_files.hpp"
#include "support/temporary_directory.hpp"

using namespace fast;
using namespace fast::testing;

namespace {

void write_four(const std::filesystem::path& directory) {
  std::filesystem::create_directories(directory);
  write_gzip(directory / "train-images-idx3-ubyte.gz", idx_images(20, 2, 2));
  write_plain(directory / "train-labels-idx1-ubyte", idx_labels(20));
  write_plain(directory / "t10k-images-idx3-ubyte", idx_images(8, 2, 2));
  write_gzip(directory / "t10k-labels-idx1-ubyte.gz", idx_labels(8));
}

}  // namespace

TEST_CASE("a directory is loaded, compressed or not, and its moments measured") {
  const TemporaryDirectory directory;
  write_four(directory.path());
  const data::Splits splits = data::load(directory.path().string());
  CHECK(splits.train.size() == 20);
  CHECK(splits.test.size() == 8);
  CHECK(splits.normalization.mean == splits.train.measure().mean);
  const data::Splits few = data::load(directory.path().string(), {.limit = 10});
  CHECK(few.train.size() == 10);
  CHECK(few.test.size() == 8);
  CHECK_THROWS_WITH(data::load(directory.path().string(), {.classes = 3}),
                    ContainsSubstring("3 classes"));
}

TEST_CASE("classes.txt beside IDX files has a name for each class") {
  const TemporaryDirectory directory;
  const std::filesystem::path raw = directory / "MNIST/raw";
  write_four(raw);
  const auto names = [&](int classes) {
    return data::load(directory.path().string(), {.classes = classes}).class_names;
  };
  CHECK(names(0).empty());
  std::ofstream(raw / "classes.txt") << "a\r\nb c\n\nd\ne\nf\ng\nh\ni\nj\nk";
  CHECK(names(0) == std::vector<std::string>{"a", "b c", "d", "e", "f", "g", "h", "i", "j", "k"});
  CHECK_THROWS_WITH(names(11), ContainsSubstring("classes.txt has 10 names, 10 of them different, "
                                                 "for 11 classes"));
  std::ofstream(raw / "classes.txt", std::ios::app) << "\na\n";
  CHECK_THROWS_WITH(names(0), ContainsSubstring("has 11 names, 10 of them different, for 10"));
  CHECK_THROWS_WITH(names(11), ContainsSubstring("has 11 names, 10 of them different, for 11"));
}

TEST_CASE("names that are not UTF-8, and would not be found again, are refused") {
  const TemporaryDirectory directory;
  const std::string path = (directory / "t.csv").string();
  const auto loaded = [&](const std::string& column, const std::string& label) {
    std::ofstream file(path);
    file << column << ",y\n";
    for (int i = 0; i < 10; ++i) file << i << ',' << (i % 2 == 0 ? label : "other") << '\n';
    file.close();
    data::LoadOptions options;
    options.target = "y";
    return data::load(path, options);
  };
  CHECK(loaded("größe", "schön").features == std::vector<std::string>{"größe"});
  CHECK_THROWS_WITH(loaded("gr\xf6sse", "u"),
                    ContainsSubstring("t.csv: the name \"gr\\xf6sse\" is not UTF-8"));
  CHECK_THROWS_WITH(loaded("a", "sch\xf6n"), ContainsSubstring("\"sch\\xf6n\" is not UTF-8"));
}

TEST_CASE("a directory without the files says which are wanted") {
  const TemporaryDirectory directory;
  write_four(directory.path());
  std::filesystem::remove(directory / "t10k-labels-idx1-ubyte.gz");
  CHECK_THROWS_WITH(
      data::load(directory.path().string()),
      ContainsSubstring("has no t10k-labels-idx1-ubyte and no t10k-labels-idx1-ubyte.gz"));
  write_plain(directory / "t10k-labels-idx1-ubyte", idx_labels(8));
  write_plain(directory / "t10k-images-idx3-ubyte", idx_images(8, 2, 3));
  CHECK_THROWS_WITH(data::load(directory.path().string()),
                    ContainsSubstring("1x2x2") && ContainsSubstring("1x2x3"));
}

TEST_CASE("of a compressed file only what a limit asks for is read") {
  const TemporaryDirectory directory;
  write_four(directory.path());
  constexpr std::uint32_t count = 2000;  // of 28x28 bytes that deflate cannot make less
  Bytes images = idx_images(count, 28, 28);
  Rng rng(11);
  std::generate(images.begin() + 16, images.end(),
                [&] { return static_cast<std::uint8_t>(rng.below(256)); });
  const auto path = directory / "train-images-idx3-ubyte.gz";
  write_gzip(path, images);
  write_plain(directory / "train-labels-idx1-ubyte", idx_labels(count));
  write_plain(directory / "t10k-images-idx3-ubyte", idx_images(8, 28, 28));
  std::filesystem::resize_file(path, std::filesystem::file_size(path) / 2);
  CHECK_THROWS_WITH(data::load(directory.path().string()), ContainsSubstring("truncated"));
  CHECK(data::load(directory.path().string(), {.limit = 10}).train.size() == 10);
}

TEST_CASE("an empty directory is refused as such") {
  const TemporaryDirectory directory;
  CHECK_THROWS_WITH(data::load(directory.path().string()), ContainsSubstring("is empty"));
}

TEST_CASE("targets of one class are refused, with --classes they are not") {
  const TemporaryDirectory directory;
  const std::string path = (directory / "t.csv").string();
  std::ofstream(path) << "x,kind,zero\n1,a,0\n2,a,0\n3,a,0\n4,a,0\n5,a,0\n";
  CHECK_THROWS_WITH(data::load(path, {.target = "kind"}),
                    ContainsSubstring("t.csv: all targets are of one class"));
  CHECK_THROWS_WITH(data::load(path, {.target = "zero"}), ContainsSubstring("of one class"));
  CHECK(data::load(path, {.classes = 2, .target = "zero"}).train.classes() == 2);
  CHECK(data::load(path, {.targets = data::TargetKind::numbers, .target = "zero"}).test.size() ==
        1);
}

TEST_CASE("compressed files are named as such") {
  for (const char* name : {"train-0.tar.gz", "prices.csv.zst", "all.zip"})
    CHECK_THROWS_WITH(data::load(name), ContainsSubstring("is compressed; unpack it"));
}

TEST_CASE("a file of another form says what is read in its place") {
  const TemporaryDirectory directory;
  for (const char* name : {"table.xlsx", "photo.JPG"}) std::ofstream(directory / name) << "1";
  CHECK_THROWS_WITH(data::load((directory / "table.xlsx").string()),
                    ContainsSubstring("is a file of no kind that is read: .csv, .tsv"));
  CHECK_THROWS_WITH(data::load((directory / "photo.JPG").string()),
                    ContainsSubstring("photo.JPG\" is one image; give the folder"));
}

TEST_CASE("an unknown name lists the choices") {
  CHECK_THROWS_WITH(data::load("imagenet"),
                    ContainsSubstring("\"imagenet\"") && ContainsSubstring("fashion-mnist"));
  CHECK_THROWS_WITH(data::load("/dev/null"), ContainsSubstring("it is not a directory"));
  CHECK_THROWS_WITH(data::load("/no/such"), ContainsSubstring("there is no such directory"));
}

TEST_CASE("a named data set that is not installed says how to install it") {
  const TemporaryDirectory directory;
  CHECK_THROWS_WITH(data::load("fashion-mnist", {.system_root = directory.path()}),
                    ContainsSubstring("apt-get install dataset-fashion-mnist"));
  write_four(directory / "fashion-mnist");
  const data::Splits splits = data::load("fashion-mnist", {.system_root = directory.path()});
  CHECK(splits.train.size() == 20);
  REQUIRE(splits.class_names.size() == 10);  // github.com/zalandoresearch/fashion-mnist
  CHECK(splits.class_names[0] == "T-shirt/top");
  CHECK(splits.class_names[9] == "Ankle boot");
  CHECK_THROWS_WITH(data::load("fashion-mnist", {.classes = 12, .system_root = directory.path()}),
                    ContainsSubstring("--classes: without effect"));
}

TEST_CASE("a missing Fashion-MNIST is no obstacle: the digits are beside the program") {
  CHECK_THROWS_WITH(data::load("fashion-mnist", {.system_root = "/no/such"}),
                    ContainsSubstring("take the small set \"digits\""));
  const data::Splits splits = data::load("digits");
  CHECK(splits.train.size() == 1437);
  CHECK(splits.test.size() == 360);
  CHECK(splits.train.sample_shape() == std::vector<std::int64_t>{1, 8, 8});
  for (const data::Dataset& part : {splits.train, splits.test}) {
    std::vector<std::size_t> count(10);
    for (const std::int32_t label : part.labels()) ++count[static_cast<std::size_t>(label)];
    for (const std::size_t each : count) CHECK(each >= part.size() / 11);
  }
  const data::Normalization measured = splits.train.measure();
  CHECK(measured.mean[0] == Approx(splits.normalization.mean[0]).margin(1e-4));
  CHECK(measured.stddev[0] == Approx(splits.normalization.stddev[0]).margin(1e-4));
}

TEST_CASE("the system's digits go before those beside the program") {
  const TemporaryDirectory directory;
  write_four(directory / "digits");
  CHECK(data::load("digits", {.system_root = directory.path()}).train.size() == 20);
}

TEST_CASE("the real Fashion-MNIST is whole") {
  if (!std::filesystem::exists("/usr/share/datasets/fashion-mnist")) {
    WARN("skipped: the package dataset-fashion-mnist is not installed");
    return;
  }
  const data::Splits splits = data::load("fashion-mnist");
  CHECK(splits.train.size() == 60000);
  CHECK(splits.test.size() == 10000);
  CHECK(splits.train.sample_shape() == std::vector<std::int64_t>{1, 28, 28});
  for (const data::Dataset& part : {splits.train, splits.test}) {
    std::vector<std::size_t> count(10);
    for (const std::int32_t label : part.labels()) ++count[static_cast<std::size_t>(label)];
    CHECK(count == std::vector<std::size_t>(10, part.size() / 10));
  }
  const data::Normalization measured = splits.train.measure();
  CHECK(measured.mean[0] == Approx(splits.normalization.mean[0]).margin(1e-4));
  CHECK(measured.stddev[0] == Approx(splits.normalization.stddev[0]).margin(1e-4));
}
