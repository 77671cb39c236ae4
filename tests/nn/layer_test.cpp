#include "nn/probe.hpp"

using namespace fast;
using namespace fast::nn;

namespace {

/// The definition of a convolution, sample by sample.
Values naive_convolution(const Conv2d& conv, const Shape& in, Index count, const Values& parameters,
                         const Values& x) {
  const Shape out = shapes({"naive", in, {conv, Flatten{}}})[1];
  const Index k = conv.kernel, weights = conv.channels * in[0] * k * k;
  Values y;
  const auto input = [&](Index n, Index c, Index row, Index column) {
    const bool inside = row >= 0 && row < in[1] && column >= 0 && column < in[2];
    return inside ? x.at(static_cast<std::size_t>(((n * in[0] + c) * in[1] + row) * in[2] + column))
                  : 0.0;
  };
  for (Index n = 0; n < count; ++n)
    for (Index o = 0; o < out[0]; ++o)
      for (Index row = 0; row < out[1]; ++row)
        for (Index column = 0; column < out[2]; ++column) {
          double sum = parameters.at(static_cast<std::size_t>(weights + o));
          for (Index c = 0; c < in[0]; ++c)
            for (Index i = 0; i < k; ++i)
              for (Index j = 0; j < k; ++j)
                sum += parameters.at(static_cast<std::size_t>(((o * in[0] + c) * k + i) * k + j)) *
                       input(n, c, row * conv.stride - conv.padding + i,
                             column * conv.stride - conv.padding + j);
          y.push_back(sum);
        }
  return y;
}

struct ConvCase {
  Conv2d conv;
  Shape in;
};
std::vector<ConvCase> conv_cases() {
  return {{{1, 1}, {1, 1, 1}},       {{6, 5, 1, 2}, {1, 7, 6}}, {{7, 3, 1, 1}, {4, 5, 7}},
          {{3, 3, 2, 1}, {2, 7, 8}}, {{2, 2, 3, 1}, {3, 6, 5}}, {{13, 1, 2}, {5, 4, 3}},
          {{4, 5, 2, 4}, {1, 2, 3}}, {{5, 4, 3}, {2, 9, 8}}};
}

}  // namespace

TEST_CASE("the gradients of a dense layer are those of finite differences") {
  for (const Index count : {1, 3})
    for (const auto& [inputs, units] : {std::pair<Index, Index>{1, 1}, {7, 3}, {5, 11}})
      check_gradients(Dense{units}, {inputs}, count);
}

TEST_CASE("the gradients of a convolution are those of finite differences") {
  for (const Index count : {1, 3, 9})
    for (const ConvCase& c : conv_cases())
      if (count < 9 || c.conv.channels < 7) check_gradients(c.conv, c.in, count);
}

TEST_CASE("the gradients of layers without parameters are those of finite differences") {
  for (const Index count : {1, 3}) {
    check_gradients(Relu{}, {7}, count);
    check_gradients(Relu{}, {2, 3, 5}, count);
    check_gradients(Flatten{}, {2, 3, 5}, count);
    for (const MaxPool& pool :
         {MaxPool{2, 2}, {3, 2}, {2, 3}, {3, 1}, {1, 1}, {3, 2, 1}, {2, 1, 1}})
      check_gradients(pool, {2, 7, 5}, count);
  }
}

TEST_CASE("the gradients of normalization, averages and residual blocks are those of differences") {
  const LayerSpec conv = Conv2d{4, 3, 1, 1, false};
  for (const Index count : {1, 3, 9}) {
    check_gradients(Conv2d{3, 3, 1, 1, false}, {2, 4, 3}, count);
    check_gradients(BatchNorm{0.1, 0.1}, {2, 3, 3}, count);
    for (const Index groups : {1, 2, 4}) check_gradients(GroupNorm{groups, 0.1}, {4, 2, 3}, count);
    check_gradients(GlobalAveragePool{}, {3, 2, 5}, count);
    check_gradients(Residual{{conv, GroupNorm{2}, Relu{}, conv}, {}}, {4, 3, 3}, count);
    check_gradients(Residual{{Relu{}, conv}, {}}, {4, 3, 2}, count);
    check_gradients(Residual{{conv, Relu{}}, {Relu{}}}, {4, 3, 2}, count);
    check_gradients(Residual{{Residual{{conv}, {}}, conv}, {}}, {4, 3, 2}, count);
    check_gradients(Residual{{Conv2d{6, 3, 2, 1, false}, BatchNorm{}, Relu{}, Conv2d{6, 3, 1, 1}},
                             {Conv2d{6, 1, 2, 0, false}, BatchNorm{}}},
                    {3, 4, 5}, count);
  }
}

TEST_CASE("batch normalization leaves mean 0 and variance 1, and averages what it saw") {
  const Index count = 11;
  Rng rng(2);
  Probe probe(BatchNorm{0.25, 1e-12}, {2, 3, 2}, count);
  const Values x = random_values(probe.inputs(), rng);
  const Values y = probe.forward({1, 3, 0, 5}, x);
  for (std::size_t c = 0; c < 2; ++c) {
    double sum = 0, squares = 0, in_sum = 0, in_squares = 0;
    for (std::size_t n = 0; n < 11; ++n)
      for (std::size_t i = 0; i < 6; ++i) {
        const std::size_t at = (n * 2 + c) * 6 + i;
        sum += y[at];
        squares += y[at] * y[at];
        in_sum += x[at];
        in_squares += x[at] * x[at];
      }
    const double mean = sum / 66, in_mean = in_sum / 66;
    CHECK(mean == Approx(c == 0 ? 0 : 5).margin(1e-12));
    CHECK(squares / 66 - mean * mean == Approx(c == 0 ? 1 : 9));
    CHECK(probe.buffers()[c] == Approx(0.25 * in_mean));
    CHECK(probe.buffers()[2 + c] ==
          Approx(0.75 + 0.25 * (in_squares - 66 * in_mean * in_mean) / 65));
  }
}

TEST_CASE("in evaluation batch normalization uses its running statistics and keeps them") {
  Probe probe(BatchNorm{0.1, 1}, {1, 1, 2}, 1);
  probe.buffers() = {2, 8};
  CHECK(probe.forward({6, 1}, {5, -1}, false) == Values{6 * 3 / 3.0 + 1, 6 * -3 / 3.0 + 1});
  CHECK(probe.buffers() == Values{2, 8});
}

TEST_CASE("group normalization of a sample does not depend on the others") {
  Rng rng(3);
  const LayerSpec norm = GroupNorm{2};
  Probe three(norm, {4, 2, 2}, 3), one(norm, {4, 2, 2}, 1);
  const Values parameters = random_values(8, rng), x = random_values(48, rng);
  const Values all = three.forward(parameters, x);
  const Values alone = one.forward(parameters, {x.begin() + 16, x.begin() + 32});
  check_close({all.begin() + 16, all.begin() + 32}, alone);
}

TEST_CASE("the average pool gives each channel's mean") {
  Probe probe(GlobalAveragePool{}, {2, 1, 3}, 2);
  CHECK(probe.forward({}, {1, 2, 3, 4, 5, 9, 0, 0, 3, -1, 1, 3}) == Values{2, 6, 1, 1});
}

TEST_CASE("a residual block whose body gives zeros is its shortcut") {
  Probe identity(Residual{{Conv2d{1, 1, 1, 0, false}}, {}}, {1, 2, 2}, 2);
  const Values x{1, -2, 3, 4, 5, 6, -7, 8};
  CHECK(identity.forward({0}, x) == x);
  Probe projected(Residual{{Conv2d{1, 1, 2, 0, false}}, {Conv2d{1, 1, 2, 0, false}}}, {1, 2, 2}, 2);
  CHECK(projected.forward({0, 3}, x) == Values{3, 15});
}

TEST_CASE("a convolution is what its definition says, with any stride and padding") {
  for (const Index count : {1, 3, 9})
    for (const ConvCase& c : conv_cases()) {
      INFO(describe(LayerSpec(c.conv)) << " on " << count << " x " << describe(c.in));
      Rng rng(3);
      Probe probe(c.conv, c.in, count);
      const Values parameters = random_values(probe.parameters(), rng);
      const Values x = random_values(probe.inputs(), rng);
      check_close(probe.forward(parameters, x),
                  naive_convolution(c.conv, c.in, count, parameters, x));
    }
}

TEST_CASE("the largest of equals is the first: only it gets the gradient") {
  Probe probe(MaxPool{2, 2}, {1, 2, 2}, 1);
  CHECK(probe.forward({}, {1, 4, 4, 2}) == Values{4});
  CHECK(probe.backward({}, {3}).inputs == Values{0, 3, 0, 0});
}

TEST_CASE("padding of a pool is less than any value") {
  Probe probe(MaxPool{3, 2, 1}, {1, 3, 3}, 1);
  CHECK(probe.forward({}, {-1, -2, -3, -4, -5, -6, -7, -8, -9}) == Values{-1, -2, -4, -5});
  CHECK(probe.backward({}, {1, 2, 3, 4}).inputs == Values{1, 2, 0, 3, 4, 0, 0, 0, 0});
}

TEST_CASE("a NaN passes through ReLU and pooling, so that the loss shows it") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  CHECK(std::isnan(Probe(Relu{}, {1}, 1).forward({}, {nan})[0]));
  for (int place = 0; place < 4; ++place) {
    Values x{1, 2, 3, 4};
    x.at(static_cast<std::size_t>(place)) = nan;
    CHECK(std::isnan(Probe(MaxPool{2, 2}, {1, 2, 2}, 1).forward({}, x)[0]));
  }
}
