#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <numeric>

#include "nn/cuda/recurrence.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::cuda;

namespace {

/// The parts one after the other in an order of the seed, with gaps.
RecurrentOffsets shuffled_offsets(const RecurrentSizes& sizes, std::uint64_t seed, Index& space) {
  RecurrentOffsets offsets{};
  std::vector<std::pair<Index*, Index>> parts;
  for (Index gate = 0; gate < sizes.gates; ++gate) {
    parts.emplace_back(&offsets.inputs[gate], sizes.hidden * sizes.inputs);
    parts.emplace_back(&offsets.hidden[gate], sizes.hidden * sizes.hidden);
    for (Index bias = 0; bias < sizes.biases; ++bias)
      parts.emplace_back(&offsets.bias[bias][gate], sizes.hidden);
  }
  Rng rng(seed);
  space = 0;
  while (!parts.empty()) {
    const auto chosen = parts.begin() + static_cast<std::ptrdiff_t>(rng.below(parts.size()));
    *chosen->first = space;
    space += chosen->second + static_cast<Index>(rng.below(3));
    parts.erase(chosen);
  }
  return offsets;
}

template <class Elements>
void run(const Elements& work) {
  for (Index e = work.size(); e-- > 0;) work.at(e);
}

}  // namespace

TEST_CASE("a layer's weights lie gate by gate where cuDNN says, and come back") {
  const RecurrentShape lstm{1, 1, 3, 2}, gru{1, 1, 3, 2, Cell::gru};
  REQUIRE(lstm.sizes().count() == 48);
  REQUIRE(gru.sizes().count() == 42);
  for (const RecurrentSizes& sizes : {lstm.sizes(), gru.sizes()})
    for (const std::uint64_t seed : {1, 2, 3}) {
      INFO(sizes.gates << " gates, seed " << seed);
      Index space = 0;
      const RecurrentOffsets offsets = shuffled_offsets(sizes, seed, space);
      std::vector<float> weights(static_cast<std::size_t>(sizes.count())), back(weights.size()),
          there(static_cast<std::size_t>(space), -1);
      std::iota(weights.begin(), weights.end(), 1.0F);
      run(PackRecurrent<float>{weights.data(), there.data(), sizes, offsets});
      const auto at = [&](Index offset) { return there.at(static_cast<std::size_t>(offset)); };
      const Index rows = 2 * sizes.gates;
      for (Index gate = 0; gate < sizes.gates; ++gate)
        for (Index unit = 0; unit < 2; ++unit) {
          const Index row = gate * 2 + unit;
          for (Index i = 0; i < 3; ++i)
            CHECK(at(offsets.inputs[gate] + unit * 3 + i) == static_cast<float>(1 + row * 3 + i));
          for (Index j = 0; j < 2; ++j)
            CHECK(at(offsets.hidden[gate] + unit * 2 + j) ==
                  static_cast<float>(1 + rows * 3 + row * 2 + j));
          for (Index bias = 0; bias < sizes.biases; ++bias)
            CHECK(at(offsets.bias[bias][gate] + unit) ==
                  static_cast<float>(1 + rows * (5 + bias) + row));
        }
      run(UnpackRecurrent<float>{there.data(), back.data(), sizes, offsets});
      CHECK(back == weights);
    }
}

TEST_CASE("the parameters of a recurrent layer are those of nn, which the list names in order") {
  for (const nn::LayerSpec& layer : {nn::LayerSpec(nn::Lstm{4}), nn::LayerSpec(nn::Gru{4})}) {
    const nn::ModelSpec spec{"recurrent", {5, 3}, {layer, nn::Dense{2}}};
    const std::vector<nn::ParameterSpec> list = nn::parameters(spec);
    const bool is_lstm = std::holds_alternative<nn::Lstm>(layer);
    const RecurrentShape shape{1, 5, 3, 4, is_lstm ? Cell::lstm : Cell::gru};
    const RecurrentSizes sizes = shape.sizes();
    const Index rows = 4 * sizes.gates;
    REQUIRE(list.size() == static_cast<std::size_t>(2 + sizes.biases + 2));
    CHECK(list[0].name == (is_lstm ? "lstm1.weight_ih" : "gru1.weight_ih"));
    CHECK(list[0].shape == nn::Shape{rows, 3});
    CHECK(list[1].shape == nn::Shape{rows, 4});
    for (Index bias = 0; bias < sizes.biases; ++bias)
      CHECK(list[static_cast<std::size_t>(2 + bias)].shape == nn::Shape{rows});
    if (!is_lstm) CHECK(list[2].name == "gru1.bias_ih");
    if (!is_lstm) CHECK(list[3].name == "gru1.bias_hh");
    CHECK(list[static_cast<std::size_t>(2 + sizes.biases)].offset ==
          static_cast<std::size_t>(sizes.count()));
  }
}

TEST_CASE("the last step is taken from sequences, and its gradients go back there alone") {
  std::vector<float> sequences(2 * 3 * 2), last(4);
  std::iota(sequences.begin(), sequences.end(), 0.0F);
  run(TakeLast<float>{sequences.data(), last.data(), 2, 3, 2});
  CHECK(last == std::vector<float>{4, 5, 10, 11});
  run(SpreadLast<float>{last.data(), sequences.data(), 2, 3, 2});
  CHECK(sequences == std::vector<float>{0, 0, 0, 0, 4, 5, 0, 0, 0, 0, 10, 11});
}

TEST_CASE("cuDNN takes the description of every LSTM and GRU, in f32, TF32 and bf16") {
  for (const RecurrentShape& shape : {RecurrentShape{64, 28, 28, 64},
                                      {1, 1, 1, 1},
                                      {7, 5, 3, 129},
                                      {64, 28, 28, 64, Cell::gru},
                                      {1, 1, 1, 1, Cell::gru},
                                      {7, 5, 3, 129, Cell::gru}})
    for (const bool tf32 : {false, true})
      for (const DType type : {DType::f32, DType::bf16}) {
        RecurrentShape typed = shape;
        typed.type = type;
        if (type == DType::bf16 && cudnnGetVersion() < 91300)
          CHECK_THROWS_WITH(RecurrentDescription(typed, tf32),
                            ContainsSubstring("no recurrent layers of bf16"));
        else
          CHECK_NOTHROW(RecurrentDescription(typed, tf32));
      }
}

TEST_CASE("sizes that cuDNN cannot count are refused") {
  CHECK_THROWS_WITH(RecurrentDescription({1, 1, Index{1} << 31, 1}, false),
                    ContainsSubstring("a size of 2147483648"));
}
