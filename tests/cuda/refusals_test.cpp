// What is asked for where there is no GPU is refused with the one reason; skipped where there is.
#include <fast/core/error.hpp>
#include <fast/cuda/device.hpp>
#include <fast/cuda/memory.hpp>
#include <fast/nn/cuda/backend.hpp>
#include <fast/nn/cuda/network.hpp>
#include <fast/nn/cuda/optimizer.hpp>

#include "support/catch.hpp"

using namespace fast;

TEST_CASE("without a GPU streams, events, memory, optimizers and networks say so") {
  const std::string why = cuda::inventory().why_none;
  if (why.empty()) {
    WARN("not checked: there is a GPU here");
    return;
  }
  CHECK_THROWS_WITH(cuda::Stream(), why);
  CHECK_THROWS_WITH(cuda::Event(), why);
  CHECK_THROWS_WITH(cuda::DeviceBuffer(64), why);
  CHECK_THROWS_WITH(cuda::PinnedBuffer(64), why);
  CHECK_THROWS_WITH(cuda::BatchStage(), why);
  std::byte memory[64];
  CHECK_THROWS_WITH(cuda::PinnedRange(memory), why);
  CHECK_THROWS_WITH(cuda::Optimizer<float>(nn::SgdOptions{}, 8), why);
  CHECK_THROWS_WITH(cuda::Network(nn::lenet5()), why);
  CHECK_THROWS_WITH(cuda::make_backend(nn::lenet5(), 1), why);
}

TEST_CASE("precisions have names, and no other is taken") {
  CHECK(cuda::precision_from("bf16") == cuda::Precision::bf16);
  CHECK(cuda::name(cuda::precision_from("tf32")) == "tf32");
  CHECK_THROWS_WITH(cuda::precision_from("f16"),
                    ContainsSubstring("\"f16\"") && ContainsSubstring("f32, tf32 or bf16"));
}

TEST_CASE("models that do not hold together are refused before one is looked for") {
  CHECK_THROWS_WITH(cuda::Network({"misfit", {4}, {nn::MaxPool{}}}), ContainsSubstring("misfit"));
  CHECK_THROWS_WITH(cuda::Network({"none", {4}, {nn::Relu{}}}), ContainsSubstring("no parameters"));
}

TEST_CASE("options out of range are refused before a device is looked for") {
  CHECK_THROWS_WITH(cuda::Optimizer<float>(nn::SgdOptions{.momentum = 1}, 8),
                    ContainsSubstring("momentum 1"));
  CHECK_THROWS_WITH(cuda::Optimizer<double>(nn::AdamOptions{.epsilon = 0}, 8),
                    ContainsSubstring("epsilon 0"));
  CHECK_THROWS_WITH(cuda::make_backend(nn::lenet5(), 1, {nn::SgdOptions{}, -1}),
                    ContainsSubstring("a norm of -1"));
  CHECK_THROWS_WITH(cuda::Network(nn::lenet5(), {.autotune = true, .deterministic = true}),
                    ContainsSubstring("leave one of the two out"));
}
