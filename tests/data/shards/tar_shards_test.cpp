#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/data/shards.hpp>
#include <fstream>

#include "data/shards/tar_index.hpp"
#include "support/catch.hpp"
#include "support/image_files.hpp"
#include "support/npy_files.hpp"
#include "support/tar_files.hpp"
#include "support/temporary_directory.hpp"

using namespace fast;
using namespace fast::testing;
namespace fs = std::filesystem;

namespace {

/// A 2×2 image of one color.
std::string plain_png(int value) {
  return png_bytes(2, 2, std::vector<std::uint8_t>(12, static_cast<std::uint8_t>(value)));
}

std::string tar_sample(int key, int label) {
  return tar_member(fmt::format("d/{:04}.png", key), plain_png(key)) +
         tar_member(fmt::format("d/{:04}.cls", key), fmt::format("{}\n", label));
}

fs::path write_tar(const fs::path& path, const std::string& members) {
  std::ofstream(path, std::ios::binary) << members << tar_end();
  return path;
}

std::vector<data::TarMember> members_of(const std::string& archive) {
  std::vector<data::TarMember> members;
  data::for_each_member(archive, "a.tar",
                        [&](data::TarMember member) { members.push_back(member); });
  return members;
}

int value_of(const data::Dataset& samples, std::size_t index) {
  std::vector<std::byte> values(samples.sample_size());
  samples.copy(index, values);
  return static_cast<int>(values[0]);
}

}  // namespace

TEST_CASE("the members of a tar archive are found with their contents") {
  const std::string archive = tar_member("a.txt", "hello") + tar_member("dir/", "", '5') +
                              tar_member("b.txt", std::string(600, 'b')) + tar_end();
  const auto members = members_of(archive);
  REQUIRE(members.size() == 2);
  CHECK(members[0].name == "a.txt");
  CHECK(archive.substr(members[0].at, members[0].bytes) == "hello");
  CHECK(archive.substr(members[1].at, members[1].bytes) == std::string(600, 'b'));
}

TEST_CASE("long names of a tar archive are read in pax and in GNU form") {
  const std::string name = std::string(150, 'n') + ".png";
  const std::string record = fmt::format("{} path={}\n", name.size() + 10, name);
  const auto pax = members_of(tar_member("PaxHeader", record, 'x') + tar_member("short", "1") +
                              tar_member("next", "2") + tar_end());
  REQUIRE(pax.size() == 2);
  CHECK(pax[0].name == name);
  CHECK(pax[1].name == "next");
  const auto gnu = members_of(tar_member("././@LongLink", name + '\0', 'L') +
                              tar_member("short", "1") + tar_end());
  REQUIRE(gnu.size() == 1);
  CHECK(gnu[0].name == name);
}

TEST_CASE("what is no whole tar archive is refused by name") {
  const std::string good = tar_member("a.txt", std::string(700, 'a')) + tar_end();
  CHECK_THROWS_WITH(members_of(good.substr(0, 900)),
                    ContainsSubstring("a.tar: truncated within \"a.txt\": 388 of its 700 bytes"));
  CHECK_THROWS_WITH(members_of(good.substr(0, 1536)),
                    ContainsSubstring("a.tar: truncated after \"a.txt\": it has 1536 bytes and no "
                                      "end mark"));
  CHECK_THROWS_WITH(members_of(""), ContainsSubstring("truncated: it has 0 bytes"));
  CHECK_THROWS_WITH(members_of(std::string(2000, 'x')),
                    ContainsSubstring("the header at byte 0 is damaged, or the file is not a tar"));
  CHECK_THROWS_WITH(members_of("\x1f\x8b" + good), ContainsSubstring("compressed"));
  CHECK_THROWS_WITH(members_of(tar_member("a", "", 'S') + tar_end()), ContainsSubstring("sparse"));
}

TEST_CASE("samples of several tar files are read in their order") {
  const TemporaryDirectory directory;
  const auto a = write_tar(directory / "a.tar", tar_sample(1, 4) + tar_sample(2, 0));
  const auto b = write_tar(directory / "b.tar", tar_sample(3, 1));
  const data::Dataset samples = data::open_tar({a, b}, {});
  CHECK(samples.size() == 3);
  CHECK(samples.classes() == 5);
  CHECK(samples.sample_shape() == std::vector<std::int64_t>{3, 2, 2});
  CHECK(samples.shards() == std::vector<std::size_t>{2, 1});
  CHECK(std::ranges::equal(samples.labels(), std::vector{4, 0, 1}));
  for (int i = 0; i < 3; ++i) CHECK(value_of(samples, static_cast<std::size_t>(i)) == i + 1);
  CHECK(samples.source()->left_out() == 0);
}

TEST_CASE("values may be arrays and JPEG images, and labels JSON") {
  const TemporaryDirectory directory;
  const auto arrays =
      write_tar(directory / "arrays.tar",
                tar_member("0.npy", npy_bytes("<f4", "(3,)", std::vector<float>{1, 2, 3})) +
                    tar_member("0.json", R"({"label": 2, "price": 1.5})") +
                    tar_member("1.json", R"({"label": 0, "price": -3})") +
                    tar_member("1.npy", npy_bytes("<f4", "(3,)", std::vector<float>{4, 5, 6})));
  const data::Dataset classes = data::open_tar({arrays}, {});
  CHECK(std::ranges::equal(classes.labels(), std::vector{2, 0}));
  CHECK_FALSE(classes.is_bytes());
  CHECK(classes.sample_shape() == std::vector<std::int64_t>{3});
  const data::Dataset prices = data::open_tar({arrays}, {.target = "price"});
  CHECK(std::ranges::equal(prices.targets(), std::vector<float>{1.5, -3}));
  std::vector<float> values(6);
  prices.gather(std::vector<std::size_t>{1, 0}, {}, values);
  CHECK(values == std::vector<float>{4, 5, 6, 1, 2, 3});
  const auto photos =
      write_tar(directory / "photos.tar",
                tar_member("x.JPG", jpeg_bytes(4, 6, 77)) + tar_member("x.json", "3"));
  CHECK(data::open_tar({photos}, {}).sample_shape() == std::vector<std::int64_t>{3, 4, 6});
}

TEST_CASE("arrays and targets that floats cannot tell apart are refused") {
  const TemporaryDirectory directory;
  const auto opened = [&](const std::vector<double>& first, const std::vector<double>& second,
                          const char* target) {
    const auto file = write_tar(
        directory / "times.tar",
        tar_member("0.npy", npy_bytes("<f8", "(2,)", first)) + tar_member("0.json", target) +
            tar_member("1.npy", npy_bytes("<f8", "(2,)", second)) + tar_member("1.json", "0.25"));
    return data::open_tar({file}, {}).size();
  };
  CHECK(opened({1.7e9, 0.1}, {1.7e9 + 5e7, 0.2}, "0.5") == 2);
  CHECK_THROWS_WITH(opened({1, 1.7e9}, {2, 1.7e9 + 5}, "0.5"),
                    ContainsSubstring("column 2") && ContainsSubstring("near 1700000000"));
  const auto file =
      write_tar(directory / "targets.tar",
                tar_member("0.npy", npy_bytes("<f4", "(1,)", std::vector<float>{1})) +
                    tar_member("0.json", "1700000000.5") +
                    tar_member("1.npy", npy_bytes("<f4", "(1,)", std::vector<float>{2})) +
                    tar_member("1.json", "1700000003"));
  CHECK_THROWS_WITH(data::open_tar({file}, {}), ContainsSubstring("the target has values from"));
}

TEST_CASE("samples that are not complete are left out and counted") {
  const TemporaryDirectory directory;
  const auto file = write_tar(directory / "a.tar",
                              tar_sample(1, 0) + tar_member("d/0002.png", plain_png(2)) +
                                  tar_member("d/0003.cls", "1") + tar_member("README", "text") +
                                  tar_member("d/0004.png", plain_png(4)) +
                                  tar_member("d/0004.cls", "cat") + tar_sample(5, 1));
  const data::Dataset samples = data::open_tar({file}, {});
  CHECK(samples.size() == 2);
  CHECK(samples.source()->left_out() == 3);
  CHECK_THAT(samples.source()->why_left_out(), ContainsSubstring("a.tar: d/0002: it has no label"));
  CHECK(value_of(samples, 1) == 5);
  const auto none = write_tar(directory / "none.tar", tar_member("README", "text"));
  CHECK_THROWS_WITH(data::open_tar({none}, {}), ContainsSubstring("none.tar: no samples"));
}

TEST_CASE("a damaged image or one of another size names its file and member") {
  const TemporaryDirectory directory;
  const std::string cut = plain_png(9).substr(0, 40);
  const auto file = write_tar(
      directory / "a.tar", tar_member("9.png", cut) + tar_member("9.cls", "0") + tar_sample(1, 0) +
                               tar_member("w.png", png_bytes(1, 2, {1, 2, 3, 4, 5, 6})) +
                               tar_member("w.cls", "1"));
  const data::Dataset samples = data::open_tar({file}, {});
  CHECK(samples.size() == 3);
  std::vector<std::byte> values(12);
  CHECK_THROWS_WITH(samples.copy(0, values), ContainsSubstring("a.tar: 9.png: cannot be read"));
  CHECK_THROWS_WITH(samples.copy(2, values),
                    ContainsSubstring("a.tar: w.png: its shape is 3x1x2, that of the first"));
  std::vector<float> out(36);
  std::vector<std::uint8_t> damaged(3);
  samples.gather(std::vector<std::size_t>{2}, {}, std::span(out).first(12), damaged);
  CHECK_THAT(samples.first_damage(), ContainsSubstring("w.png"));
  samples.gather(std::vector<std::size_t>{0, 1, 2}, {}, out, damaged);
  CHECK(damaged == std::vector<std::uint8_t>{1, 0, 1});
  CHECK_THAT(samples.first_damage(), ContainsSubstring("9.png"));
  const auto all =
      write_tar(directory / "b.tar", tar_member("9.png", cut) + tar_member("9.cls", "0"));
  CHECK_THROWS_WITH(data::open_tar({all}, {}), ContainsSubstring("b.tar: 9.png: cannot be read"));
}

TEST_CASE("test shards have the classes of the training shards") {
  const TemporaryDirectory directory;
  write_tar(directory / "train-0.tar", tar_sample(1, 4) + tar_sample(2, 0));
  write_tar(directory / "test-0.tar", tar_sample(3, 1));
  CHECK(data::load(directory.path().string()).test.classes() == 5);
  write_tar(directory / "test-0.tar", tar_sample(3, 7));
  CHECK_THROWS_WITH(data::load(directory.path().string()),
                    ContainsSubstring("sample 0 has label 7"));
  CHECK(data::load(directory.path().string(), {.classes = 8}).train.classes() == 8);
}
