#include "fast_serve/served_model.hpp"

#include <cstring>
#include <fast/core/error.hpp>
#include <limits>
#include <thread>

#include "fast_serve/request_parser.hpp"
#include "serve/models.hpp"
#include "support/catch.hpp"
#include "support/seed.hpp"

using namespace fast;
using namespace fast::testing;
using serve::ModelVersion;

namespace {

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size_bytes()) == 0;
}

std::size_t size_of(const nn::ModelSpec& spec) {
  std::size_t size = 1;
  for (const auto side : spec.input) size *= static_cast<std::size_t>(side);
  return size;
}

}  // namespace

TEST_CASE("logits are the network's, bit for bit, for one sample and for 64") {
  for (const nn::ModelSpec& spec :
       {nn::lenet5(), nn::mlp({784, 256, 10}), nn::lstm(), nn::resnet20()}) {
    INFO(spec.name);
    const std::size_t size = size_of(spec);
    const auto values = random_values(64 * size, 3);
    const auto version = version_of(spec, 1);
    CHECK(same_bits(version->forward(values, 64), logits_of(spec, 1, values, 64)));
    const auto first = std::span(values).first(size);
    CHECK(same_bits(version->forward(first, 1), logits_of(spec, 1, first, 1)));
  }
}

TEST_CASE("a sample's logits are the same to rounding, whatever batch it is in") {
  for (const nn::ModelSpec& spec :
       {nn::lenet5(), nn::mlp({784, 256, 10}), nn::lstm(), nn::resnet20()}) {
    const std::size_t size = size_of(spec);
    const auto values = random_values(64 * size, 3);
    const auto version = version_of(spec, 1);
    const auto together = version->forward(values, 64);
    bool same = true;
    for (std::size_t i = 0; i < 64; ++i) {
      const auto alone = version->forward(std::span(values).subspan(i * size, size), 1);
      same = same && same_bits(alone, std::span(together).subspan(i * 10, 10));
      for (std::size_t c = 0; c < 10; ++c) {
        CHECK(alone[c] == Approx(together[i * 10 + c]).epsilon(1e-4).margin(1e-4));
      }
    }
    WARN(spec.name << ": the same bits alone and among 64: " << same);
  }
}

TEST_CASE("the hash tells weights and normalization apart, and nothing else") {
  const auto spec = nn::mlp({4, 3, 2});
  CHECK(version_of(spec, 1)->hash() == version_of(spec, 1)->hash());
  CHECK(version_of(spec, 1)->hash() != version_of(spec, 2)->hash());
  CHECK(version_of(spec, 1, data::Normalization{{0.5F}, {1}})->hash() !=
        version_of(spec, 1)->hash());
  CHECK(version_of(spec, 1)->hash().size() == 16);
}

TEST_CASE("values are normalized as a data set does it") {
  const auto spec = nn::mlp({4, 3, 2});
  const data::Normalization own{{0.286F}, {0.353F}};
  const auto version = version_of(spec, 1, own);
  const std::vector<std::uint8_t> bytes{0, 1, 128, 255};
  const data::Dataset set("four", {4}, bytes, {0}, 2);
  std::vector<float> expected(4);
  const std::size_t first = 0;
  set.gather({&first, 1}, own, expected);
  CHECK(same_bits(version->inputs({bytes, 1}), expected));
  const auto floats = version->inputs({std::vector<float>{0, 0.25F, 0.5F, 1}, 1});
  CHECK(floats[1] == Approx((0.25 - 0.286) / 0.353));
  const std::vector<float> taken{-0.0F, 2, 3, 4};
  CHECK(same_bits(version->inputs({taken, 1, true}), taken));
  CHECK(same_bits(version_of(spec, 1)->inputs({taken, 1}), taken));
  CHECK_THROWS_AS(version->inputs({bytes, 1, true}), serve::Refusal);
}

TEST_CASE("a model whose inputs need 64 bits is refused") {
  const data::Normalization times{{0, 0, 0, 0}, {1, 1, 1, 1}, {0, 1.7e9, 0, 0}};
  CHECK_THROWS_WITH(version_of(nn::mlp({4, 3, 2}), 1, times),
                    ContainsSubstring("1700000000") && ContainsSubstring("fast-model export"));
}

TEST_CASE("tokens stay the numbers that they are, as floats and as bytes") {
  const nn::ModelSpec spec{"words", {4}, {nn::Embedding{200, 2}, nn::Flatten{}, nn::Dense{2}}};
  const std::vector<float> tokens{0, 3, 7, 199};
  const std::vector<std::uint8_t> bytes{0, 3, 7, 199};
  // What training on bytes notes, on floats, and files without a note.
  const data::Normalization of_bytes{{0}, {1 / 255.0F}}, of_floats{{0}, {1}};
  for (const serve::Normalizing& own :
       {serve::Normalizing(of_bytes), serve::Normalizing(of_floats), serve::Normalizing()}) {
    const auto version = version_of(spec, 1, own);
    CHECK(same_bits(version->inputs({tokens, 1}), tokens));
    CHECK(same_bits(version->inputs({bytes, 1}), tokens));
  }
}

TEST_CASE("tokens that the model does not have are refused, with the first of them") {
  const nn::ModelSpec spec{"words", {2}, {nn::Embedding{200, 2}, nn::Flatten{}, nn::Dense{2}}};
  const auto version = version_of(spec, 1);
  for (const float bad : {200.0F, -1.0F, 1.5F, std::numeric_limits<float>::quiet_NaN(),
                          std::numeric_limits<float>::infinity()}) {
    INFO(bad);
    const std::vector<float> tokens{0, 199, 7, bad};
    CHECK_THROWS_WITH(version->inputs({tokens, 2}), ContainsSubstring("instance 1: token "));
  }
}

TEST_CASE("weights that are missing, of another shape or not finite are refused") {
  const auto spec = nn::mlp({4, 3, 2});
  nn::Network<float> network(spec, 1);
  auto views = all_tensors(network);
  const auto make = [&](const std::vector<TensorView>& tensors) {
    return ModelVersion(spec, {4}, tensors, {}, "file");
  };
  CHECK_NOTHROW(make(views));
  CHECK_THROWS_WITH(make({views.begin(), views.end() - 1}), ContainsSubstring("fc2.bias"));
  CHECK_THROWS_AS(ModelVersion(nn::mlp({4, 5, 2}), {4}, views, {}, "file"), Error);
  network.parameters()[0] = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_WITH(make(views), ContainsSubstring("not finite"));
}

TEST_CASE("several threads compute with one version") {
  const auto spec = nn::lenet5();
  const auto version = version_of(spec, 1);
  const auto values = random_values(8 * 784, 5);
  const auto expected = logits_of(spec, 1, values, 8);
  std::vector<std::jthread> threads;
  std::atomic<int> same{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 10; ++i) same += same_bits(version->forward(values, 8), expected) ? 1 : 0;
    });
  }
  threads.clear();
  CHECK(same == 40);
}
