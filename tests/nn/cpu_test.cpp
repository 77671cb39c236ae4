#include "nn/checks.hpp"

#include "support/catch.hpp"

TEST_CASE("a processor without AVX2 is told how to rebuild") {
  CHECK_THROWS_WITH(fast::nn::require_processor(false), ContainsSubstring("-DFAST_PORTABLE=ON"));
  CHECK_NOTHROW(fast::nn::require_processor(fast::nn::processor_fits()));
}
