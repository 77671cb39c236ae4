#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/data/formats.hpp>

#include "support/catch.hpp"
#include "support/idx_files.hpp"
#include "support/seed.hpp"
#include "support/temporary_directory.hpp"

using namespace fast;
using namespace fast::testing;

namespace {

struct Files {
  TemporaryDirectory directory;
  std::filesystem::path images = directory / "images";
  std::filesystem::path labels = directory / "labels";
  Files(const Bytes& image_bytes = idx_images(12, 4, 3),
        const Bytes& label_bytes = idx_labels(12)) {
    write_plain(images, image_bytes);
    write_plain(labels, label_bytes);
  }
  data::Dataset read(int classes = 10) const { return data::read_idx(images, labels, classes); }
};

Bytes with_word(Bytes bytes, std::size_t at, std::uint32_t value) {
  Bytes word;
  append_word(word, value);
  std::copy(word.begin(), word.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
  return bytes;
}

Bytes cut(Bytes bytes, std::size_t count) {
  bytes.resize(bytes.size() - count);
  return bytes;
}

void check_contents(const data::Dataset& set) {
  REQUIRE(set.size() == 12);
  CHECK(set.sample_shape() == std::vector<std::int64_t>{1, 4, 3});
  CHECK(set.classes() == 10);
  CHECK(set.labels()[11] == 1);
  const std::size_t indices[] = {11};
  std::vector<float> sample(12);
  set.gather(indices, {}, sample);
  for (std::size_t i = 0; i < 12; ++i) {
    CHECK(sample[i] == Approx((7 * (11 * 12 + i) % 256) / 255.0));
  }
}

}  // namespace

TEST_CASE("plain and compressed files hold the same samples") {
  const Files files;
  check_contents(files.read());
  write_gzip(files.images, idx_images(12, 4, 3));
  check_contents(files.read());
  write_gzip(files.labels, idx_labels(12));
  check_contents(files.read());
}

TEST_CASE("a missing file is named") {
  const Files files;
  CHECK_THROWS_WITH(data::read_idx(files.directory / "gone", files.labels),
                    ContainsSubstring("gone: there is no such file"));
  CHECK_THROWS_WITH(data::read_idx(files.images, files.directory / "gone"),
                    ContainsSubstring("gone: there is no such file"));
  CHECK_THROWS_WITH(data::read_idx(files.directory.path(), files.labels),
                    ContainsSubstring("it is a directory"));
}

TEST_CASE("files in each other's place are told by their magic numbers") {
  const Files files;
  CHECK_THROWS_WITH(data::read_idx(files.labels, files.images),
                    ContainsSubstring("0x00000801") && ContainsSubstring("0x00000803") &&
                        ContainsSubstring("labels"));
  CHECK_THROWS_WITH(Files(idx_images(12, 4, 3), idx_images(12, 4, 3)).read(),
                    ContainsSubstring("begin with 0x00000801"));
}

TEST_CASE("a truncated file is refused, plain or compressed, wherever it ends") {
  const Bytes whole = idx_images(12, 4, 3);
  for (const std::size_t missing : {1, 100, 144}) {
    CHECK_THROWS_WITH(Files(cut(whole, missing)).read(), ContainsSubstring("truncated"));
  }
  for (const std::size_t missing : {145, 150, 160}) {
    CHECK_THROWS_WITH(Files(cut(whole, missing)).read(),
                      ContainsSubstring("ends within its header"));
  }
  CHECK_THROWS_WITH(Files(whole, cut(idx_labels(12), 1)).read(),
                    ContainsSubstring("labels") && ContainsSubstring("truncated"));
  const Files files;
  write_gzip(files.images, whole);
  const Bytes compressed = read_bytes(files.images);
  for (std::size_t missing = 1; missing <= compressed.size(); ++missing) {
    write_plain(files.images, cut(compressed, missing));
    CHECK_THROWS_AS(files.read(), Error);
  }
}

TEST_CASE("a compressed file that holds less or more than its header says is refused") {
  const Files files;
  write_gzip(files.images, cut(idx_images(12, 4, 3), 5));
  CHECK_THROWS_WITH(files.read(), ContainsSubstring("truncated") && ContainsSubstring("144") &&
                                      ContainsSubstring("139"));
  Bytes longer = idx_images(12, 4, 3);
  longer.push_back(0);
  write_gzip(files.images, longer);
  CHECK_THROWS_WITH(files.read(), ContainsSubstring("more bytes follow after the 144"));
}

TEST_CASE("trailing bytes are refused") {
  Bytes images = idx_images(12, 4, 3), labels = idx_labels(12);
  images.push_back(0);
  CHECK_THROWS_WITH(Files(images).read(),
                    ContainsSubstring("images") && ContainsSubstring("more bytes follow"));
  labels.push_back(0);
  CHECK_THROWS_WITH(Files(idx_images(12, 4, 3), labels).read(),
                    ContainsSubstring("labels") && ContainsSubstring("more bytes follow"));
}

TEST_CASE("absurd sizes in a header are refused before memory is taken") {
  const Bytes images = idx_images(12, 4, 3);
  const std::uint32_t most = 0xffffffff;
  const Bytes huge = with_word(images, 8, 0x10000000);
  CHECK_THROWS_WITH(Files(huge).read(),
                    ContainsSubstring("more than a file of 160 bytes can hold"));
  CHECK_THROWS_WITH(Files(with_word(with_word(images, 8, most), 12, most)).read(),
                    ContainsSubstring("4294967295x4294967295"));
  CHECK_THROWS_WITH(Files(with_word(images, 8, 0)).read(), ContainsSubstring("12 images of 0x3"));
  CHECK_THROWS_WITH(Files(with_word(images, 4, 0), with_word(idx_labels(12), 4, 0)).read(),
                    ContainsSubstring("0 images"));
  CHECK_THROWS_WITH(Files(with_word(images, 4, most), with_word(idx_labels(12), 4, most)).read(),
                    ContainsSubstring("announces 4294967295 bytes"));
  const Files compressed;
  write_gzip(compressed.images, huge);
  CHECK_THROWS_WITH(compressed.read(), ContainsSubstring("can hold"));
}

TEST_CASE("images and labels must be as many, and labels within the classes") {
  CHECK_THROWS_WITH(Files(idx_images(12, 4, 3), idx_labels(11)).read(),
                    ContainsSubstring("12 images") && ContainsSubstring("11 labels"));
  CHECK_THROWS_WITH(Files().read(9),
                    ContainsSubstring("sample 9 has label 9, outside the 9 classes (0..8)"));
  CHECK_NOTHROW(Files().read(10));
}

TEST_CASE("randomly damaged files are read or refused, never worse") {
  const bool compressed = GENERATE(false, true);
  const std::uint64_t seed = test_seed(1);
  CAPTURE(seed, compressed);
  Rng rng(seed);
  const Files files;
  if (compressed) {
    write_gzip(files.images, idx_images(12, 4, 3));
    write_gzip(files.labels, idx_labels(12));
  }
  const Bytes images = read_bytes(files.images), labels = read_bytes(files.labels);
  for (int trial = 0; trial < 200; ++trial) {
    const bool damage_images = rng.below(2) == 0;
    Bytes bytes = damage_images ? images : labels;
    if (rng.below(2) == 0) bytes.resize(rng.below(bytes.size()));
    for (std::uint64_t flips = rng.below(4); flips > 0 && !bytes.empty(); --flips) {
      bytes[rng.below(bytes.size())] ^= static_cast<std::uint8_t>(1U << rng.below(8));
    }
    write_plain(files.images, damage_images ? bytes : images);
    write_plain(files.labels, damage_images ? labels : bytes);
    CAPTURE(trial);
    try {
      const data::Dataset set = files.read();
      CHECK(set.size() == 12);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::data);
    }
  }
}
