#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <numeric>

#include "cuda/network/recurrence.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::cuda;

namespace {

/// The parts one after the other in an order of the seed, with gaps.
LstmOffsets shuffled_offsets(const LstmSizes& sizes, std::uint64_t seed, Index& space) {
  LstmOffsets offsets{};
  std::vector<std::pair<Index*, Index>> parts;
  for (int gate = 0; gate < 4; ++gate) {
    parts.emplace_back(&offsets.inputs[gate], sizes.hidden * sizes.inputs);
    parts.emplace_back(&offsets.hidden[gate], sizes.hidden * sizes.hidden);
    parts.emplace_back(&offsets.bias[gate], sizes.hidden);
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

TEST_CASE("an LSTM's weights lie gate by gate where cuDNN says, and come back") {
  const LstmSizes sizes{3, 2};
  REQUIRE(sizes.count() == 48);
  for (const std::uint64_t seed : {1, 2, 3}) {
    INFO("seed " << seed);
    Index space = 0;
    const LstmOffsets offsets = shuffled_offsets(sizes, seed, space);
    std::vector<float> weights(48), there(static_cast<std::size_t>(space), -1), back(48);
    std::iota(weights.begin(), weights.end(), 1.0F);
    run(PackLstm<float>{weights.data(), there.data(), sizes, offsets});
    const auto at = [&](Index offset) { return there.at(static_cast<std::size_t>(offset)); };
    for (Index gate = 0; gate < 4; ++gate)
      for (Index unit = 0; unit < 2; ++unit) {
        for (Index i = 0; i < 3; ++i)
          CHECK(at(offsets.inputs[gate] + unit * 3 + i) ==
                static_cast<float>(1 + (gate * 2 + unit) * 3 + i));
        for (Index j = 0; j < 2; ++j)
          CHECK(at(offsets.hidden[gate] + unit * 2 + j) ==
                static_cast<float>(25 + (gate * 2 + unit) * 2 + j));
        CHECK(at(offsets.bias[gate] + unit) == static_cast<float>(41 + gate * 2 + unit));
      }
    run(UnpackLstm<float>{there.data(), back.data(), sizes, offsets});
    CHECK(back == weights);
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

TEST_CASE("cuDNN takes the description of every LSTM, in f32, TF32 and bf16") {
  for (const LstmShape& shape : {LstmShape{64, 28, 28, 64}, {1, 1, 1, 1}, {7, 5, 3, 129}})
    for (const bool tf32 : {false, true})
      for (const DType type : {DType::f32, DType::bf16}) {
        LstmShape typed = shape;
        typed.type = type;
        if (type == DType::bf16 && cudnnGetVersion() < 91300)
          CHECK_THROWS_WITH(LstmDescription(typed, tf32), ContainsSubstring("no LSTMs of bf16"));
        else
          CHECK_NOTHROW(LstmDescription(typed, tf32));
      }
}

TEST_CASE("sizes that cuDNN cannot count are refused") {
  CHECK_THROWS_WITH(LstmDescription({1, 1, Index{1} << 31, 1}, false),
                    ContainsSubstring("a size of 2147483648"));
}
