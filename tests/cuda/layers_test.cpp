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

namespace {

template <class V>
struct Matrix {
  Index rows, columns;
  std::vector<V> values;

  Matrix(Rng& rng, Index r, Index c, float mean = 0)
      : rows(r), columns(c), values(random_vector<V>(rng, static_cast<std::size_t>(r * c))) {
    for (Index e = 0; e < r * c && mean != 0; ++e) cuda::put(at(e) + mean, values.data(), e);
  }
  float at(Index e) const { return cuda::get(values.data(), e); }
  double sum(Index column, const auto& f) const {
    double total = 0;
    for (Index r = 0; r < rows; ++r) total += f(double{at(r * columns + column)}, r);
    return total;
  }
};

std::vector<float> row(Index count) { return std::vector<float>(static_cast<std::size_t>(count)); }

/// Rows and columns with one part and many, whole packs and not, more lanes than columns, fewer.
const std::vector<std::pair<Index, Index>> shapes = {{1, 1},    {2, 8},   {5, 3},    {300, 8},
                                                     {999, 16}, {130, 6}, {257, 33}, {70, 520}};

}  // namespace

TEMPLATE_TEST_CASE("each place of a matrix is in the share of one thread", "", float, BFloat16) {
  for (const auto& [rows, columns] : shapes) {
    CAPTURE(rows, columns);
    const auto shares = cuda::Shares::of<TestType>(rows, columns);
    const auto strips = cuda::Strips::of<TestType>(rows, columns);
    std::vector<int> summed(static_cast<std::size_t>(rows * columns)),
        swept = summed, left(static_cast<std::size_t>(shares.size()));
    const auto mark = [&](const cuda::Share& share, int width, std::vector<int>& marks) {
      Index count = 0;
      share.each<4>([](Index r) { return r; },
                    [&](Index loaded, Index r) {
                      REQUIRE(loaded == r);
                      ++count;
                      for (int i = 0; i < width; ++i)
                        ++marks.at(static_cast<std::size_t>(r * columns + share.column + i));
                    });
      REQUIRE(count == share.count());
      return count;
    };
    std::vector<Index> rows_of(static_cast<std::size_t>(shares.parts));
    for (Index block = 0; block < shares.blocks(); ++block)
      for (int t = 0; t < cuda::block_size; ++t) {
        const Index count = mark(shares.of(block, t), shares.width, summed);
        if (block % shares.tiles() == 0 && t % shares.lanes == 0)
          rows_of.at(static_cast<std::size_t>(block / shares.tiles())) += count;
        shares.each_sum(block, t,
                        [&](Index place, int) { ++left.at(static_cast<std::size_t>(place)); });
      }
    for (Index e = 0; e < strips.size(); ++e) mark(strips.of(e), strips.width, swept);
    for (Index p = 0; p < shares.parts; ++p)
      REQUIRE(rows_of[static_cast<std::size_t>(p)] == shares.rows_of(p));
    for (const auto* marks : {&summed, &swept, &left})
      for (const int times : *marks) REQUIRE(times == 1);
  }
}

TEST_CASE(
    "every layer of ResNet-50 at batch 128 has the blocks that a large card holds at once, or four "
    "to eight rows for each thread") {
  for (const auto& [side, channels] : std::vector<std::pair<Index, Index>>{{112, 64},
                                                                           {56, 64},
                                                                           {56, 256},
                                                                           {28, 128},
                                                                           {28, 512},
                                                                           {14, 256},
                                                                           {14, 1024},
                                                                           {7, 512},
                                                                           {7, 2048}}) {
    const Index rows = 128 * side * side, packs = channels / 8;
    CAPTURE(side, channels);
    const auto shares = cuda::Shares::of<BFloat16>(rows, channels);
    const auto strips = cuda::Strips::of<BFloat16>(rows, channels);
    CHECK(shares.blocks() * cuda::block_size * 4 <= rows * packs);
    CHECK(shares.blocks() <= cuda::enough_blocks);
    CHECK((shares.blocks() > cuda::enough_blocks - shares.tiles() ||
           shares.blocks() * cuda::block_size * 8 > rows * packs));
    CHECK(strips.size() >= std::min(cuda::enough_blocks * cuda::block_size, rows * packs));
    CHECK(strips.size() * 8 >= rows * packs);
    // What blocks leave is little beside what they read.
    CHECK(2 * sizeof(float) * static_cast<std::size_t>(shares.size()) <
          sizeof(BFloat16) * static_cast<std::size_t>(rows * channels) / 16);
  }
}

TEMPLATE_TEST_CASE("columns are summed as in f64", "", float, BFloat16) {
  Rng rng(21);
  for (const auto& [rows, columns] : shapes) {
    CAPTURE(rows, columns);
    const Matrix<TestType> x(rng, rows, columns);
    const auto shares = cuda::Shares::of<TestType>(rows, columns);
    auto parts = row(shares.size()), totals = row(columns);
    run_on_host(cuda::ColumnShares<TestType>{x.values.data(), parts.data(), shares});
    run_on_host(cuda::ColumnTotals{parts.data(), totals.data(),
                                   cuda::Shares::of_sums(shares.parts, columns)});
    for (Index c = 0; c < columns; ++c)
      CHECK(double{totals[static_cast<std::size_t>(c)]} ==
            Approx(x.sum(c, [](double v, Index) { return v; })).epsilon(1e-5).margin(1e-4));
  }
}

TEMPLATE_TEST_CASE("moments are those of f64, far from 0 and with a first row far from the others",
                   "", float, BFloat16) {
  Rng rng(22);
  for (const auto& [rows, columns] : shapes) {
    for (const float mean : {0.0F, 1000.0F}) {
      CAPTURE(rows, columns, mean);
      Matrix<TestType> x(rng, rows, columns, mean);
      if (rows > 200)
        for (Index c = 0; c < columns; ++c) cuda::put(mean + 40, x.values.data(), c);
      const auto shares = cuda::Shares::of<TestType>(rows, columns);
      auto means = row(shares.size()), squares = means;
      auto center = row(columns), scale = center, shift = center, reciprocal = center,
           running_mean = center, running_variance = center;
      const std::vector<float> weight(static_cast<std::size_t>(columns), 3),
          bias(static_cast<std::size_t>(columns), 4);
      run_on_host(
          cuda::MomentShares<TestType>{x.values.data(), means.data(), squares.data(), shares});
      run_on_host(cuda::MomentTotals{means.data(), squares.data(), weight.data(), bias.data(),
                                     center.data(), scale.data(), shift.data(), reciprocal.data(),
                                     running_mean.data(), running_variance.data(), shares,
                                     cuda::Shares::of_sums(shares.parts, columns), 1.0F, 1e-5F});
      for (Index c = 0; c < columns; ++c) {
        const auto i = static_cast<std::size_t>(c);
        const auto count = static_cast<double>(rows);
        const double expected = x.sum(c, [](double v, Index) { return v; }) / count;
        const double square =
            x.sum(c, [&](double v, Index) { return (v - expected) * (v - expected); });
        const double wanted = 1 / std::sqrt(square / count + 1e-5);
        CHECK(double{center[i]} == Approx(expected).epsilon(1e-6).margin(1e-6));
        CHECK(double{reciprocal[i]} == Approx(wanted).epsilon(2e-4));
        CHECK(double{scale[i]} == Approx(3 * double{reciprocal[i]}));
        CHECK(shift[i] == 4);
        CHECK(running_mean[i] == center[i]);
        CHECK(double{running_variance[i]} ==
              Approx(square / (rows > 1 ? count - 1 : 1)).epsilon(2e-4).margin(1e-9));
      }
    }
  }
}

TEMPLATE_TEST_CASE("gradients pass where the stored result of a ReLU is above 0", "", float,
                   BFloat16) {
  Rng rng(23);
  for (const auto& [rows, columns] : shapes) {
    CAPTURE(rows, columns);
    const Matrix<TestType> x(rng, rows, columns), dy(rng, rows, columns);
    std::vector<TestType> y(x.values.size());
    const auto mean = random_vector<float>(rng, static_cast<std::size_t>(columns)),
               scale = random_vector<float>(rng, static_cast<std::size_t>(columns)),
               shift = random_vector<float>(rng, static_cast<std::size_t>(columns));
    const cuda::Affine affine{mean.data(), scale.data(), shift.data(), true};
    const auto shares = cuda::Shares::of<TestType>(rows, columns);
    run_on_host(cuda::Normalize<TestType>{x.values.data(), y.data(), affine,
                                          cuda::Strips::of<TestType>(rows, columns)});
    auto sums = row(shares.size()), products = sums;
    auto dbias = row(columns), dweight = dbias, alone = dbias, times = dbias;
    const std::vector<float> reciprocal(static_cast<std::size_t>(columns), 0.5F);
    run_on_host(cuda::NormalizeShares<TestType>{
        {x.values.data(), dy.values.data(), affine}, sums.data(), products.data(), shares});
    run_on_host(cuda::NormalizeTotals{sums.data(), products.data(), reciprocal.data(), dbias.data(),
                                      dweight.data(), alone.data(), times.data(),
                                      cuda::Shares::of_sums(shares.parts, columns), rows});
    for (Index c = 0; c < columns; ++c) {
      const auto i = static_cast<std::size_t>(c);
      const auto passing = [&](double grad, Index r) {
        return cuda::get(y.data(), r * columns + c) > 0 ? grad : 0;
      };
      const double weighted = dy.sum(c, [&](double grad, Index r) {
        return passing(grad, r) * (double{x.at(r * columns + c)} - double{mean[i]});
      });
      CHECK(double{dbias[i]} == Approx(dy.sum(c, passing)).epsilon(1e-5).margin(1e-4));
      CHECK(double{dweight[i]} == Approx(0.5 * weighted).epsilon(1e-5).margin(1e-4));
      CHECK(double{alone[i]} == Approx(double{dbias[i]} / static_cast<double>(rows)));
      CHECK(double{times[i]} == Approx(0.5 * double{dweight[i]} / static_cast<double>(rows)));
    }
  }
}

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
    run_on_host(cuda::RectifyGradients<V>{y.data(), b.data(), dx.data(), size});
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

TEMPLATE_TEST_CASE("values are converted in packs and one by one, at any place", "", float,
                   BFloat16) {
  using V = TestType;
  Rng rng(25);
  for (const std::size_t count : {1, 7, 8, 9, 40}) {
    for (const std::size_t begin : {0, 1, 4}) {
      CAPTURE(count, begin);
      const auto from = random_vector<float>(rng, begin + count);
      std::vector<V> there(count + 8);
      std::vector<float> back(begin + count);
      const auto size = static_cast<Index>(count);
      run_on_host(cuda::SwapLast<float, V>{from.data() + begin, there.data(), 1, 1, size});
      run_on_host(cuda::SwapLast<V, float>{there.data(), back.data() + begin, size, 1, 1});
      for (std::size_t e = 0; e < count; ++e) {
        V expected;
        cuda::convert(from[begin + e], expected);
        CHECK(back[begin + e] == cuda::get(&expected, 0));
      }
      for (std::size_t e = count; e < there.size(); ++e) CHECK(cuda::get(&there[e], 0) == 0);
    }
  }
}

TEST_CASE(
    "the first of equal logits is the one that counts, and a NaN makes its sample's loss NaN") {
  constexpr Index classes = 600;
  for (const Index place : {0, 5, 256, 599}) {
    CAPTURE(place);
    std::vector<float> logits(3 * classes), losses(3), grads(3 * classes);
    std::vector<std::int32_t> labels(3, static_cast<std::int32_t>(place)), hits(3);
    const auto at = [&](Index sample, Index c) -> float& {
      return logits[static_cast<std::size_t>(sample * classes + c)];
    };
    at(0, place) = at(0, 599) = 2;
    at(1, place) = std::numeric_limits<float>::quiet_NaN();
    labels[2] = 1;
    run_on_host(cuda::SoftmaxLoss<float>{logits.data(), labels.data(), grads.data(), losses.data(),
                                         hits.data(), 3, classes});
    const double twos = place == 599 ? 1 : 2;
    CHECK(double{losses[0]} == Approx(std::log(twos + (600 - twos) * std::exp(-2.0))));
    CHECK(hits == std::vector<std::int32_t>{1, hits[1], 0});
    CHECK(std::isnan(losses[1]));
    CHECK(double{losses[2]} == Approx(std::log(600.0)));
    CHECK(double{grads[2 * classes]} == Approx(1.0 / 1800));
    CHECK(double{grads[2 * classes + 1]} == Approx((1.0 / 600 - 1) / 3));
  }
}

TEST_CASE(
    "a mixed row has the loss of both labels by their shares, and as gradient softmax - target") {
  constexpr Index classes = 300;  // more than a block has threads
  constexpr double own = 0.75;
  const std::vector<std::int32_t> first{2, 7, 299}, second{0, 7, 280};
  const float share = own;
  std::vector<float> logits = row(3 * classes), losses(3), grads(3 * classes);
  Rng rng(5);
  for (float& logit : logits) logit = static_cast<float>(rng.uniform(-3, 3));
  std::vector<std::int32_t> hits(3);
  const cuda::ClassShape shape{nullptr, 0, classes, second.data(), &share};
  run_on_host(cuda::SoftmaxLoss<float>{logits.data(), first.data(), grads.data(), losses.data(),
                                       hits.data(), 3, classes, shape});
  for (std::size_t s = 0; s < 3; ++s) {
    const auto z = [&](std::size_t c) { return double{logits[s * classes + c]}; };
    double total = 0;
    for (std::size_t c = 0; c < classes; ++c) total += std::exp(z(c));
    const auto a = static_cast<std::size_t>(first[s]), b = static_cast<std::size_t>(second[s]);
    CHECK(double{losses[s]} ==
          Approx(std::log(total) - own * z(a) - (1 - own) * z(b)).epsilon(1e-6));
    for (std::size_t c = 0; c < classes; ++c) {
      const double target = (c == a ? own : 0) + (c == b ? 1 - own : 0);
      CHECK(double{grads[s * classes + c]} ==
            Approx((std::exp(z(c)) / total - target) / 3).margin(1e-7));
    }
  }
}

TEST_CASE("what is no token gives NaN and has no gradient") {
  const float nan = std::numeric_limits<float>::quiet_NaN();
  const std::vector<float> x{3, 0, 1.0005F, 0.5F, 2.4F, -1, 4, nan}, weights{5, 6, 7, 8};
  const auto rows = static_cast<Index>(x.size());
  const cuda::Tokens<float> tokens{x.data(), rows, 4, 1};
  std::vector<float> y = row(rows), dweights = row(4);
  const std::vector<float> dy(x.size(), 1);
  run_on_host(cuda::Lookup<float>{tokens, weights.data(), y.data()});
  run_on_host(cuda::LookupTotals<float>{tokens, dy.data(), dweights.data()});
  CHECK(std::vector<float>(y.begin(), y.begin() + 3) == std::vector<float>{8, 5, 6});
  for (std::size_t e = 3; e < y.size(); ++e) CHECK(std::isnan(y[e]));
  CHECK(dweights == std::vector<float>{1, 1, 0, 1});
}

TEMPLATE_TEST_CASE("of an image stored by pixels, the values of nn's order are dropped", "", float,
                   BFloat16) {
  constexpr Index samples = 3, channels = 4, area = 6;
  const nn::DropoutMask mask(0.5);
  const std::vector<std::uint64_t> noise{11, 12, 13};
  std::vector<TestType> ones(samples * channels * area), y(ones.size());
  for (Index e = 0; e < samples * channels * area; ++e) cuda::put(1, ones.data(), e);
  run_on_host(
      cuda::Drop<TestType>{mask, noise.data(), 9, ones.data(), y.data(), samples, channels, area});
  for (Index s = 0; s < samples; ++s)
    for (Index c = 0; c < channels; ++c)
      for (Index p = 0; p < area; ++p) {
        const std::uint64_t seed = nn::DropoutMask::seed(noise[static_cast<std::size_t>(s)], 9);
        CHECK(cuda::get(y.data(), (s * area + p) * channels + c) ==
              mask.masked(1.0F, seed, c * area + p));
      }
}

TEST_CASE("the order that is swapped is the same by numbers of 32 and 64 bits") {
  const cuda::SwapLast<float, float> swap{nullptr, nullptr, 2, 3, 5};
  std::vector<int> times(30);
  for (Index e = 0; e < 30; ++e) {
    const Index row = e % 3, column = e / 3 % 5, first = e / 15;
    CHECK(swap.source(e) == (first * 3 + row) * 5 + column);
    CHECK(swap.source(static_cast<std::uint32_t>(e)) == swap.source(e));
    ++times[static_cast<std::size_t>(swap.source(e))];
  }
  CHECK(times == std::vector<int>(30, 1));
}
