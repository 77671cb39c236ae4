// The kernels of layers, thread by thread, against sums in f64 and at sizes of which packs of 16
// bytes leave a rest.
#include <cmath>
#include <limits>

#include "cuda/host_works.hpp"
#include "cuda/samples.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::testing;
using cuda::Index;

TEMPLATE_TEST_CASE("ReLUs and sums take every value once, and NaN passes", "", float, BFloat16) {
  using V = TestType;
  Rng rng(24);
  for (const std::size_t count : {1, 3, 4, 7, 8, 9, 31, 64}) {
    CAPTURE(count);
    const auto size = static_cast<Index>(count);
    auto a = random_vector<V>(rng, count);
    const auto b = random_vector<V>(rng, count);
    for (const std::size_t e : {std::size_t{0}, count - 1})
      cuda::put(std::numeric_limits<float>::quiet_NaN(), a.data(), static_cast<Index>(e));
    std::vector<V> y(count), dx(count), sum(count);
    run_on_host(cuda::Rectify<V>{a.data(), y.data(), size});
    run_on_host(cuda::RectifySlopes<V>{y.data(), b.data(), dx.data(), size});
    run_on_host(cuda::Add<V>{a.data(), b.data(), sum.data(), size, true});
    for (Index e = 0; e < size; ++e) {
      const float from = cuda::get(a.data(), e), more = cuda::get(b.data(), e);
      if (e == 0 || e == size - 1) {
        CHECK(std::isnan(cuda::get(y.data(), e)));
        CHECK(std::isnan(cuda::get(sum.data(), e)));
        continue;
      }
      V total;
      cuda::convert(std::max(from + more, 0.0F), total);
      CHECK(cuda::get(y.data(), e) == std::max(from, 0.0F));
      CHECK(cuda::get(dx.data(), e) == (from > 0 ? more : 0));
      CHECK(cuda::get(sum.data(), e) == cuda::get(&total, 0));
    }
  }
}
