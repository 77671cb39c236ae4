// The seed of a random test: FAST_TEST_SEED, or a fixed one. Print it with INFO.
#pragma once

#include <cstdint>
#include <cstdlib>

inline std::uint64_t test_seed(std::uint64_t otherwise) {
  const char* text = std::getenv("FAST_TEST_SEED");
  return text == nullptr ? otherwise : std::strtoull(text, nullptr, 10);
}
