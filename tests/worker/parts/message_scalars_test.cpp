#include "combine/message_scalars.hpp"

#include <array>
#include <cstring>
#include <vector>

#include "combine/model_memory.hpp"
#include "support/catch.hpp"

using namespace fast;
using combine::MessageScalars;
using combine::Neighborhood;

namespace {

algorithm::RuleTraits declares(int scalars, bool remembers) {
  algorithm::RuleTraits traits;
  traits.messages.scalars = scalars;
  traits.memory.remembers_neighbors = remembers;
  return traits;
}

Payload message_of(const std::array<double, 3>& scalars) {
  Payload payload;
  payload.scalars = scalars.data();
  return payload;
}

Neighborhood between(const std::array<double, 3>& own, const std::array<double, 3>& left,
                     const std::array<double, 3>& right) {
  return {message_of(own), {4, 7}, {message_of(left), message_of(right)}, {.25, .5}, .25};
}

}  // namespace

TEST_CASE("a rule without scalars and memory sends none") {
  MessageScalars scalars(declares(0, false), nullptr);
  CHECK(scalars.count() == 0);
  scalars.begin(3);
  CHECK(scalars.epoch() == 0);
  CHECK(scalars.epoch_of(Payload{}) == 0);
}

TEST_CASE("what is pulled is the weighted sum of differences from the own message") {
  MessageScalars scalars(declares(2, false), nullptr);
  const std::array<double, 3> own{1, 10, 0}, left{3, 20, 0}, right{-1, 30, 0};
  scalars.look_at(between(own, left, right));
  CHECK(scalars.pulled()[0] == .25 * 2 + .5 * -2);
  CHECK(scalars.pulled()[1] == .25 * 10 + .5 * 20);
  algorithm::RuleTraits alike = declares(2, false);
  alike.topology.mixing = algorithm::MixingRequirement::unit;
  MessageScalars unit(alike, nullptr);
  unit.look_at(between(own, left, right));
  CHECK(unit.pulled()[0] == 0);
  CHECK(unit.pulled()[1] == 30);
}

TEST_CASE("the epoch travels behind the scalars") {
  MessageScalars scalars(declares(2, true), nullptr);
  CHECK(scalars.count() == 3);
  scalars.begin(6);
  scalars.own()[0] = 1;
  scalars.own()[1] = 2;
  std::array<double, 3> written{};
  scalars.write({.data = nullptr, .scalars = written.data()});
  CHECK(written == std::array<double, 3>{1, 2, 6});
  CHECK(scalars.epoch_of(message_of(written)) == 6);
}

TEST_CASE("sums: what has been taken before is not pulled again, and nothing of another epoch") {
  const auto traits = declares(1, true);
  combine::RunningSums sums(0, 0, 0);
  MessageScalars scalars(traits, &sums);
  scalars.own()[0] = 1;
  scalars.add_to_sums();
  scalars.add_to_sums();
  std::array<double, 3> written{};
  scalars.write({.data = nullptr, .scalars = written.data()});
  CHECK(written[0] == 2);

  const std::array<double, 3> own{}, left{5, 0, 0}, right{9, 1, 0};  // right is of epoch 1
  scalars.look_at(between(own, left, right));
  CHECK(scalars.pulled()[0] == .25 * (5 - 1) + .5 * (0 - 1));
  sums.take({4, 7});
  const std::array<double, 3> later{7, 0, 0};
  scalars.look_at(between(own, later, right));
  CHECK(scalars.pulled()[0] == .25 * (2 - 1) + .5 * (0 - 1));
}

TEST_CASE("model memory copies to a packed vector and back, and to other tensors") {
  std::vector<float> weights{1, 2, 3}, bias{4};
  const combine::HostMemory memory(
      ParameterLayout({view_of("w", std::span(weights)), view_of("b", std::span(bias))}));
  std::vector<std::byte> packed(memory.layout().size_bytes());
  memory.copy_weights_to(packed.data());
  weights = {0, 0, 0};
  bias = {0};
  memory.copy_weights_from(packed.data());
  CHECK(weights == std::vector<float>{1, 2, 3});
  CHECK(bias == std::vector<float>{4});

  std::vector<float> other_weights(3), other_bias(1);
  memory.copy_weights_from(packed.data(), ParameterLayout({view_of("w", std::span(other_weights)),
                                                           view_of("b", std::span(other_bias))}));
  CHECK(other_weights == weights);
  CHECK(other_bias == bias);
}
