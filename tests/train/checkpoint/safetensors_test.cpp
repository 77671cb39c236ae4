#include <fmt/ranges.h>

#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/train/safetensors.hpp>

#include <algorithm>
#include <cstring>
#include <fstream>

#include "support/catch.hpp"
#include "support/contents.hpp"
#include "support/seed.hpp"
#include "support/temporary_directory.hpp"

using namespace fast;
using train::Safetensors;

namespace {

struct SmallModel {
  std::vector<float> weight{1, 2, 3, 4, 5, 6};
  std::vector<double> scale{0.5};
  std::vector<std::int64_t> steps{7};
  std::vector<TensorView> views() {
    return {{"fc1.weight", weight.data(), {2, 3}, DType::f32},
            {"scale", scale.data(), {}, DType::f64},
            {"steps", steps.data(), {1}, DType::i64}};
  }
};

std::string file_of(const std::string& header, const std::string& data) {
  std::string length;
  for (int byte = 0; byte < 8; ++byte) {
    length += static_cast<char>(header.size() >> (8 * byte) & 0xff);
  }
  return length + header + data;
}

/// Empty when the bytes are a file, else what is said against them.
std::string complaint(const std::string& bytes) {
  try {
    train::parse_safetensors(std::as_bytes(std::span(bytes)), bytes.size(), "a.safetensors");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::data);
    return error.what();
  }
  return "";
}

std::string tensor(const std::string& name, const std::string& offsets,
                   const std::string& shape = "[2]", const std::string& dtype = "F32") {
  return fmt::format(R"("{}":{{"dtype":"{}","shape":{},"data_offsets":{}}})", name, dtype, shape,
                     offsets);
}

std::string object(const std::vector<std::string>& members) {
  return fmt::format("{{{}}}", fmt::join(members, ","));
}

}  // namespace

TEST_CASE("what is saved is read back, bit for bit") {
  const testing::TemporaryDirectory directory;
  SmallModel model;
  train::save_safetensors(directory / "m.safetensors", model.views(), {{"round", "12"}});
  const Safetensors file(directory / "m.safetensors");
  CHECK(file.tensors().size() == 3);
  CHECK(file.metadata().at("round") == "12");
  SmallModel read{{0, 0, 0, 0, 0, 0}, {0}, {0}};
  file.read(read.views());
  CHECK(read.weight == model.weight);
  CHECK(read.scale == model.scale);
  CHECK(read.steps == model.steps);
  CHECK(std::distance(std::filesystem::directory_iterator(directory.path()), {}) == 1);
}

TEST_CASE("a file of another program is read, in whatever order its header names the tensors") {
  const std::string header =
      object({tensor("b", "[8,16]"), tensor("a", "[0,8]"), R"("__metadata__":{"format":"pt"})"});
  const std::string bytes = file_of(header, std::string(16, 'x'));
  const auto parsed = train::parse_safetensors(std::as_bytes(std::span(bytes)), bytes.size(), "f");
  REQUIRE(parsed.tensors.size() == 2);
  CHECK(parsed.tensors[0].name == "a");
  CHECK(parsed.metadata.at("format") == "pt");
  CHECK(complaint(file_of("{}", "")).empty());
}

TEST_CASE("files that are not as published are refused with what is wrong") {
  const std::string data(16, 'x');
  const std::pair<std::string, std::string> cases[] = {
      {"abc", "3 bytes"},
      {file_of("[]", ""), "not an object"},
      {file_of("{", ""), "not JSON"},
      {std::string(8, '\xff') + "{}", "does not begin with the length of a header"},
      {file_of("{}", "").substr(0, 9), "its header is to have"},
      {std::string("\x08\x08\x12\x04") + "fast:...", "it looks like ONNX"},
      {file_of(object({tensor("a", "[0,8]")}), data), "8 bytes, 16 follow"},
      {file_of(object({tensor("a", "[0,8]"), tensor("b", "[4,12]")}), data), "begins at 4"},
      {file_of(object({tensor("a", "[0,8]"), tensor("b", "[9,17]")}), data), "begins at 9"},
      {file_of(object({tensor("a", "[8,0]")}), ""), "before it begins"},
      {file_of(object({tensor("a", "[0,8]"), tensor("a", "[8,16]")}), data), "twice"},
      {file_of(object({tensor("a", "[0,8]", "[2]", "Q4")}), data), "\"Q4\""},
      {file_of(object({tensor("a", "[0,8]", "[-2]")}), data), "a side"},
      {file_of(object({tensor("a", "[0,8]", "[4294967296,4294967296]")}), data), "shape and type"},
      {file_of(object({tensor("a", "[0,8]", "[[2]]")}), data), "nested"},
      {file_of(R"({"__metadata__":{"a":1}})", ""), "not text"},
      {file_of(fmt::format("{{\"a\":{}", std::string(100000, '[')), ""), "nested"},
  };
  for (const auto& [bytes, text] : cases) {
    INFO(text);
    CHECK_THAT(complaint(bytes), Catch::Contains(text) && Catch::Contains("a.safetensors"));
  }
}

TEST_CASE("a thousand mutations of a file are read or refused, and nothing else happens") {
  const testing::TemporaryDirectory directory;
  SmallModel model;
  const auto path = directory / "m.safetensors";
  train::save_safetensors(path, model.views(), {{"round", "12"}});
  const std::string whole = contents(path);
  const std::uint64_t seed = test_seed(20);
  INFO("seed " << seed);
  Rng rng(seed);
  int refused = 0;
  for (int k = 0; k < 1000; ++k) {
    std::string bytes = whole;
    switch (k % 4) {
      case 0:
        bytes.resize(rng.below(bytes.size()));
        break;
      case 1:
        bytes[rng.below(bytes.size())] ^= static_cast<char>(1 << rng.below(8));
        break;
      case 2:
        bytes.insert(rng.below(bytes.size()),
                     std::string(1 + rng.below(4), "09[{\"-"[rng.below(6)]));
        break;
      default:
        for (std::size_t i = 0; i < 8; ++i) bytes[i] = static_cast<char>(rng.below(256));
    }
    std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
    try {
      Safetensors(path).read(model.views());
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::data);
      ++refused;
    }
  }
  CHECK(refused > 700);
}

TEST_CASE("tensors of another model are not read") {
  const testing::TemporaryDirectory directory;
  SmallModel model;
  train::save_safetensors(directory / "m", model.views());
  const Safetensors file(directory / "m");
  std::vector<float> other(6);
  CHECK_THROWS_WITH(file.read({{"fc1.weight", other.data(), {3, 2}, DType::f32}}),
                    Catch::Contains("[2x3] f32") && Catch::Contains("[3x2] f32"));
  CHECK_THROWS_WITH(file.read({{"fc2.weight", other.data(), {6}, DType::f32}}),
                    Catch::Contains("no tensor \"fc2.weight\""));
  CHECK_THROWS_WITH(file.read({{"optimizer.momentum", other.data(), {6}, DType::f32}}),
                    Catch::Contains("its run had another optimizer"));
  CHECK_THROWS_WITH(file.read({{"ema.packed", other.data(), {6}, DType::f32}}),
                    Catch::Contains("its run had no average of weights: leave --ema out"));
  CHECK(other == std::vector<float>(6));
  CHECK_THROWS_WITH(Safetensors(directory / "none"), Catch::Contains("cannot be read"));
  CHECK_THROWS_WITH(Safetensors(directory.path()), Catch::Contains("cannot be read"));
}

TEST_CASE("a tensor of a type that is not read is named, and the file is called what it is") {
  const testing::TemporaryDirectory directory;
  for (const char* type : {"BOOL", "I16", "U16", "F8_E4M3"}) {
    std::string header =
        fmt::format(R"({{"mask":{{"dtype":"{}","shape":[2],"data_offsets":[0,2]}}}})", type);
    header.resize((header.size() + 7) / 8 * 8, ' ');
    const std::uint64_t length = header.size();
    std::ofstream(directory / "m", std::ios::binary)
        << std::string(reinterpret_cast<const char*>(&length), 8) << header << "ab";
    CHECK_THROWS_WITH(Safetensors(directory / "m"),
                      Catch::Contains(fmt::format("tensor \"mask\" is of type \"{}\";", type)) &&
                          !Catch::Contains("not a safetensors file"));
  }
}

TEST_CASE("a disk that is full leaves the file as it was") {
  SmallModel model;
  CHECK_THROWS_WITH(train::save_safetensors("/proc/m.safetensors", model.views()),
                    Catch::Contains("/proc/m.safetensors") && Catch::Contains("free space"));
}
