#include <algorithm>
#include <cmath>
#include <cstring>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/data/load.hpp>
#include <fast/data/loader.hpp>
#include <fast/data/shards.hpp>
#include <fast/data/synthetic.hpp>
#include <fstream>
#include <iterator>

#include "data/shards/packed_shard.hpp"
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

using namespace fast;
using data::Dataset;
using fast::testing::TemporaryDirectory;
namespace fs = std::filesystem;

namespace {

constexpr std::size_t sample_values = 12;

/// Bytes that a generator draws, of 5 classes.
Dataset drawn_images(std::size_t samples) {
  Rng rng(3);
  std::vector<std::uint8_t> values(samples * sample_values);
  for (std::uint8_t& value : values) value = static_cast<std::uint8_t>(rng.below(256));
  std::vector<std::int32_t> labels;
  for (std::size_t i = 0; i < samples; ++i)
    labels.push_back(static_cast<std::int32_t>(rng.below(5)));
  return {"images", {3, 2, 2}, std::move(values), std::move(labels), 5};
}

void refuse_faults(const std::string& why) { FAIL(why); }

std::vector<fs::path> write_set(const Dataset& samples, const fs::path& directory,
                                std::size_t samples_a_shard, const std::string& split = "train") {
  const std::size_t bytes = samples.sample_size() * (samples.is_bytes() ? 1 : 4);
  return data::write_packed(samples, directory, split, samples_a_shard * bytes, refuse_faults);
}

/// Adds 1 to a byte of a file.
void damage(const fs::path& path, std::size_t at) {
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  file.seekg(static_cast<std::streamoff>(at));
  const int value = file.get();
  file.seekp(static_cast<std::streamoff>(at));
  file.put(static_cast<char>(value + 1));
}

constexpr std::size_t head_bytes = 64;

/// The shard as programs wrote it whose descriptions had no origins.
void leave_out_origins(const fs::path& path) {
  std::ifstream in(path, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), {}};
  const std::size_t tail = bytes.size() - 24;
  std::uint64_t length = 0;
  std::memcpy(&length, bytes.data() + tail, sizeof length);
  std::string text = bytes.substr(tail - length, length);
  const std::size_t origins = text.find("\"origins\"");
  REQUIRE(origins != std::string::npos);
  text.erase(origins, text.find("],", origins) + 2 - origins);
  const std::uint64_t words[] = {text.size(), data::sum_of(std::as_bytes(std::span(text)))};
  std::ofstream out(path, std::ios::binary);
  out << bytes.substr(0, tail - length) << text;
  out.write(reinterpret_cast<const char*>(words), sizeof words) << bytes.substr(tail + 16);
}

data::Loader windowed(const Dataset& samples, const std::vector<std::size_t>& shards, int workers,
                      int rank, std::size_t window) {
  data::Loader loader(samples, {{0.4F, 0.5F, 0.6F}, {0.1F, 0.2F, 0.3F}},
                      data::WindowSampler({shards, workers, rank, 8, 21, window}));
  loader.augment({.padding = 1}, 4);
  return loader;
}

}  // namespace

TEST_CASE("shards have the samples that were written, bit for bit") {
  const TemporaryDirectory directory;
  const Dataset bytes = drawn_images(103);
  const Dataset floats = data::synthetic_classification(40, {7}, 3, 1);
  const Dataset numbers("prices", {2}, std::vector<float>{1, 2, 3, 4, 5, 6},
                        data::Targets{std::vector<float>{1, 2, 3, 4, 5, 6}, {2}});
  for (const Dataset* samples : {&bytes, &floats, &numbers}) {
    fs::create_directories(directory / samples->name());
    const auto files = write_set(*samples, directory / samples->name(), 20);
    CHECK(files.size() == (samples->size() + 19) / 20);
    const Dataset found = data::open_packed(files);
    REQUIRE(found.size() == samples->size());
    CHECK(found.is_streamed());
    CHECK(found.shards().size() == files.size());
    CHECK(found.sample_shape() == samples->sample_shape());
    CHECK(found.target_shape() == samples->target_shape());
    CHECK(found.classes() == samples->classes());
    CHECK(std::ranges::equal(found.labels(), samples->labels()));
    CHECK(std::ranges::equal(found.targets(), samples->targets()));
    std::vector<std::byte> a(samples->sample_size() * (samples->is_bytes() ? 1 : 4)), b(a.size());
    for (std::size_t i = 0; i < samples->size(); ++i) {
      samples->copy(i, a);
      found.copy(i, b);
      REQUIRE(a == b);
    }
    const data::Normalization moments = data::packed_moments(files), exact = samples->measure();
    for (std::size_t c = 0; c < exact.mean.size(); ++c) {
      CHECK(moments.mean[c] == Approx(exact.mean[c]).margin(1e-6));
      CHECK(moments.stddev[c] == Approx(exact.stddev[c]).margin(1e-6));
    }
    CHECK(found.measure().mean.size() == exact.mean.size());
  }
}

TEST_CASE("shards keep the moments of large values that are close together") {
  const TemporaryDirectory directory;
  // Times, half of them 1024 s later than the others, and a constant. f32 has each value exactly.
  std::vector<float> values;
  for (std::size_t i = 0; i < 12; ++i) {
    values.push_back(1.7e9F + (i % 2 == 0 ? 0 : 1024));
    values.push_back(1.7e9F);
  }
  const Dataset times("times", {2}, values, data::Targets{std::vector<float>(12), {}});
  // The first values of the shards differ.
  const data::Normalization moments = data::packed_moments(write_set(times, directory.path(), 5));
  CHECK(moments.mean == std::vector<float>{1.7e9F + 512, 1.7e9F});
  CHECK(moments.stddev == std::vector<float>{512, 1});
}

TEST_CASE("sums of shards without origins are those of the values") {
  const TemporaryDirectory directory;
  std::vector<float> values{0, 3, 0, 3, 6, 6};  // mean 3, variance 6; the first values are 0
  const Dataset samples("numbers", {1}, values, data::Targets{std::vector<float>(6), {}});
  const auto files = write_set(samples, directory.path(), 2);
  leave_out_origins(files[0]);
  leave_out_origins(files[1]);
  const data::Normalization moments = data::packed_moments(files);
  CHECK(moments.mean[0] == Approx(3));
  CHECK(moments.stddev[0] == Approx(std::sqrt(6.0)));
}

TEST_CASE("batches of shards are those of memory with the same windows, bit for bit") {
  const TemporaryDirectory directory;
  const Dataset memory = drawn_images(203);
  const Dataset shards = data::open_packed(write_set(memory, directory.path(), 30));
  for (const int workers : {1, 3}) {
    for (const std::size_t window : {1, 17, 1000}) {
      for (int rank = 0; rank < workers; ++rank) {
        data::Loader expected = windowed(memory, shards.shards(), workers, rank, window);
        data::Loader found = windowed(shards, shards.shards(), workers, rank, window);
        found.threads(3);
        REQUIRE(found.rounds() == 203 / static_cast<std::size_t>(workers) / 8);
        for (std::size_t epoch = 0; epoch < 3; ++epoch) {
          for (std::size_t round = 0; round < found.rounds(); ++round) {
            const Batch &a = expected.batch(epoch, round), &b = found.batch(epoch, round);
            REQUIRE(std::ranges::equal(a.inputs, b.inputs));
            REQUIRE(std::ranges::equal(a.labels, b.labels));
          }
        }
      }
    }
  }
}

TEST_CASE("a loader of shards that starts anew goes on with the same batches") {
  const TemporaryDirectory directory;
  const Dataset shards = data::open_packed(write_set(drawn_images(203), directory.path(), 30));
  data::Loader whole = windowed(shards, shards.shards(), 2, 1, 17);
  for (std::size_t epoch = 0; epoch < 3; ++epoch) {
    for (std::size_t round = 0; round < whole.rounds(); ++round) {
      data::Loader resumed = windowed(shards, shards.shards(), 2, 1, 17);
      REQUIRE(
          std::ranges::equal(whole.batch(epoch, round).inputs, resumed.batch(epoch, round).inputs));
    }
  }
}

TEST_CASE("a slice of shards has the parts of shards that are in it") {
  const TemporaryDirectory directory;
  const Dataset memory = drawn_images(100);
  const Dataset shards = data::open_packed(write_set(memory, directory.path(), 30));
  CHECK(shards.shards() == std::vector<std::size_t>{30, 30, 30, 10});
  const Dataset part = shards.slice(20, 45);
  CHECK(part.shards() == std::vector<std::size_t>{10, 30, 5});
  std::vector<float> a(sample_values), b(sample_values);
  memory.gather(std::vector<std::size_t>{25}, {}, a);
  part.gather(std::vector<std::size_t>{5}, {}, b);
  CHECK(a == b);
  CHECK(memory.shards() == std::vector<std::size_t>{100});
  CHECK_THROWS_WITH(shards.values(), ContainsSubstring("in files"));
}

TEST_CASE("a damaged sample is left out of its batch, and only it") {
  const TemporaryDirectory directory;
  const Dataset memory = drawn_images(40);
  const auto files = write_set(memory, directory.path(), 20);
  damage(files[1], head_bytes + 3 * sample_values + 5);  // sample 23 of the set
  CHECK(data::damaged_in(files[0]).empty());
  CHECK(data::damaged_in(files[1]) == std::vector<std::size_t>{3});
  const Dataset shards = data::open_packed(files);
  CHECK(shards.first_damage().empty());
  data::Loader expected(memory, {}, data::WindowSampler({{20, 20}, 1, 0, 8, 1, 40}));
  data::Loader found(shards, {}, data::WindowSampler({{20, 20}, 1, 0, 8, 1, 40}));
  data::WindowSampler order({{20, 20}, 1, 0, 8, 1, 40});
  std::size_t left_out = 0;
  for (std::size_t round = 0; round < found.rounds(); ++round) {
    const auto samples = order.batch(0, round);
    const Batch &a = expected.batch(0, round), &b = found.batch(0, round);
    std::vector<float> inputs;
    std::vector<std::int32_t> labels;
    for (std::size_t i = 0; i < samples.size(); ++i) {
      if (samples[i] == 23) continue;
      const auto from = a.inputs.subspan(i * sample_values, sample_values);
      inputs.insert(inputs.end(), from.begin(), from.end());
      labels.push_back(a.labels[i]);
    }
    left_out += 8 - b.count();
    CHECK(std::ranges::equal(b.inputs, inputs));
    CHECK(std::ranges::equal(b.labels, labels));
  }
  CHECK(left_out == 1);
  CHECK_THAT(shards.first_damage(),
             ContainsSubstring("train-00001-of-00002.packed: sample 3 is damaged"));
  std::vector<float> out(sample_values);
  CHECK_THROWS_WITH(shards.gather(std::vector<std::size_t>{23}, {}, out),
                    ContainsSubstring("sample 3 is damaged"));
}

TEST_CASE("a batch without a whole sample is an error in training, and empty in evaluation") {
  const TemporaryDirectory directory;
  const auto files = write_set(drawn_images(4), directory.path(), 4);
  for (std::size_t i = 0; i < 4; ++i) damage(files[0], head_bytes + i * sample_values);
  const Dataset shards = data::open_packed(files);
  data::Loader windows(shards, {}, data::WindowSampler({{4}, 1, 0, 4, 1, 4}));
  data::Loader shuffled(shards, {}, 1, 0, 4, 1);
  for (data::Loader* loader : {&windows, &shuffled})
    CHECK_THROWS_WITH(loader->batch(0, 0), ContainsSubstring("none of the 4 samples"));
  CHECK(data::Loader(shards, {}, 4).batch(0, 0).count() == 0);
}

TEST_CASE("damaged samples are left out of a conversion, and reported") {
  const TemporaryDirectory directory;
  fs::create_directories(directory / "from");
  fs::create_directories(directory / "to");
  const auto files = write_set(drawn_images(40), directory / "from", 20);
  damage(files[0], head_bytes);
  std::vector<std::string> faults;
  const auto written = data::write_packed(data::open_packed(files), directory / "to", "train", 240,
                                          [&](const std::string& why) { faults.push_back(why); });
  REQUIRE(faults.size() == 1);
  CHECK_THAT(faults[0], ContainsSubstring("sample 0 is damaged"));
  CHECK(data::open_packed(written).shards() == std::vector<std::size_t>{19, 20});
}

TEST_CASE("shards that are cut, changed or of other sets are refused by name") {
  const TemporaryDirectory directory;
  fs::create_directories(directory / "other");
  const auto files = write_set(drawn_images(60), directory.path(), 20);
  const auto other = write_set(drawn_images(61), directory / "other", 21);
  const auto refused = [](std::vector<fs::path> these, const char* message) {
    CHECK_THROWS_WITH(data::open_packed(these), ContainsSubstring(message));
  };
  refused({files[0], files[2]}, "train-00002-of-00003.packed: shard 1 of 3 is missing");
  refused({files[0], files[1]}, "the last of 3 shards is missing");
  refused({files[0], files[1], files[1]}, "twice there");
  refused({files[0], other[1], files[2]}, "different sets");
  refused({directory / "none.packed"}, "there is no such file");
  CHECK(data::open_packed({files[2], files[0], files[1]}).size() == 60);
  const auto size = fs::file_size(files[1]);
  const auto copy = directory / "copy.packed";
  for (const std::size_t cut : {0UL, 7UL, 63UL, 100UL, 300UL, size - 30, size - 1}) {
    fs::copy_file(files[1], copy, fs::copy_options::overwrite_existing);
    fs::resize_file(copy, cut);
    CHECK_THROWS_WITH(data::read_packed_info(copy), ContainsSubstring("copy.packed"));
  }
  fs::copy_file(files[1], copy, fs::copy_options::overwrite_existing);
  damage(copy, size - 40);
  CHECK_THROWS_WITH(data::read_packed_info(copy), ContainsSubstring("description is damaged"));
  damage(copy, 0);
  CHECK_THROWS_WITH(data::read_packed_info(copy),
                    ContainsSubstring("does not begin with FASTPACK"));
  CHECK_THROWS_WITH(write_set(drawn_images(2), directory / "none", 1),
                    ContainsSubstring("cannot be written"));
}

TEST_CASE("a directory of shards is a data set, with its moments") {
  const TemporaryDirectory directory;
  const Dataset memory = drawn_images(64);
  write_set(memory, directory.path(), 30, "train");
  write_set(memory.slice(0, 20), directory.path(), 30, "val");
  const data::Splits splits = data::load(directory.path().string());
  CHECK(splits.train.size() == 64);
  CHECK(splits.test.size() == 20);
  CHECK(splits.normalization.mean[1] == Approx(memory.measure().mean[1]));
  CHECK(data::load(directory.path().string(), {.limit = 31}).train.shards() ==
        std::vector<std::size_t>{30, 1});
  CHECK_THROWS_WITH(data::load((directory / "train-*.packed").string()),
                    ContainsSubstring("--test-data"));
  data::LoadOptions options;
  options.test_data = (directory / "val-{00000..00000}-of-00001.packed").string();
  CHECK(data::load((directory / "train-*.packed").string(), options).test.size() == 20);
}

TEST_CASE("shards keep the names of features, classes and target") {
  const TemporaryDirectory directory;
  const data::PackedNames names{{"x", "y"}, {"a", "b", "c", "d", "e"}, "kind"};
  for (const char* split : {"train", "test"})
    data::write_packed(drawn_images(20), directory.path(), split, 100, refuse_faults, names);
  const data::Splits splits = data::load(directory.path().string());
  CHECK(splits.features == names.features);
  CHECK(splits.class_names == names.class_names);
  CHECK(splits.target == "kind");
  const TemporaryDirectory bad;
  const auto files = data::write_packed(drawn_images(20), bad.path(), "train", 100, refuse_faults,
                                        {{}, {"a"}, ""});
  CHECK_THROWS_WITH(data::read_packed_info(files.front()),
                    ContainsSubstring("do not fit its description"));
}
