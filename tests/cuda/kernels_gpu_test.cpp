#include <fast/core/error.hpp>
#include <fast/cuda/kernels.hpp>
#include <fast/cuda/memory.hpp>
#include <fast/nn/cuda/optimizer.hpp>
#include <limits>
#include <tuple>

#include "cuda/samples.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::testing;

namespace {

const Seconds limit{30};

/// A copy on the device, `shift` elements from where memory is aligned.
template <class T>
class OnDevice {
 public:
  OnDevice(const std::vector<T>& values, const cuda::Stream& stream, std::size_t shift = 0)
      : count_(values.size()), shift_(shift), buffer_((count_ + shift) * sizeof(T)) {
    cuda::copy(data(), values.data(), count_ * sizeof(T), stream);
    stream.synchronize(Deadline(limit));
  }
  T* data() const { return buffer_.template as<T>().data() + shift_; }
  std::span<T> span() const { return {data(), count_}; }
  std::vector<T> back(const cuda::Stream& stream) const {
    std::vector<T> values(count_);
    cuda::copy(values.data(), data(), count_ * sizeof(T), stream);
    stream.synchronize(Deadline(limit));
    return values;
  }

 private:
  std::size_t count_, shift_;
  cuda::DeviceBuffer buffer_;
};

template <class T, class Stored>
void check_average(Rng& rng, const cuda::Stream& stream, std::size_t count, std::size_t degree,
                   std::size_t shift) {
  AverageSample<T, Stored> sample(rng, count, degree);
  const OnDevice<Stored> own(sample.own, stream), next(sample.next, stream, shift);
  std::vector<OnDevice<Stored>> neighbors;
  std::vector<const Stored*> values;
  for (const auto& neighbor : sample.neighbors) neighbors.emplace_back(neighbor, stream, shift);
  for (const auto& neighbor : neighbors) values.push_back(neighbor.data());
  for (const bool rotating : {false, true}) {
    const OnDevice<T> current(sample.current, stream);
    cuda::average(cuda::Average<T, Stored>{rotating ? nullptr : current.data(), next.data(),
                                           own.data(), values, sample.weights, count},
                  stream);
    std::vector<T> expected = sample.current;
    std::vector<Stored> expected_next(count);
    sample.average_on_host(rotating ? nullptr : expected.data(), expected_next.data());
    CAPTURE(count, degree, shift, rotating);
    REQUIRE(differing(current.back(stream), expected) == 0);
    REQUIRE(differing(next.back(stream), expected_next) == 0);
  }
}

}  // namespace

TEMPLATE_TEST_CASE("averages on the device equal the host's, bit for bit", "",
                   (std::tuple<float, float>), (std::tuple<double, double>),
                   (std::tuple<float, BFloat16>)) {
  using T = std::tuple_element_t<0, TestType>;
  using Stored = std::tuple_element_t<1, TestType>;
  const cuda::Stream stream;
  Rng rng(21);
  for (const std::size_t count : {1, 7, 64, 1001, 300000}) {
    for (const std::size_t degree : {0, 1, 2, 3, 4, 8}) {
      for (const std::size_t shift : {0, 1})
        check_average<T, Stored>(rng, stream, count, degree, shift);
    }
  }
  check_average<T, Stored>(rng, stream, 1001, cuda::max_neighbors, 0);
}

TEMPLATE_TEST_CASE("optimizers on the device are nn's", "", float, double) {
  using T = TestType;
  const std::size_t count = 1003;
  const double unit = 8 * double{std::numeric_limits<T>::epsilon()};
  const cuda::Stream stream;
  const nn::OptimizerSpec specs[] = {nn::SgdOptions{0.1, 0, 0},
                                     nn::SgdOptions{0.1, 0.9, 0.01, true},
                                     nn::optimizer_spec("adam"), nn::optimizer_spec("adamw")};
  for (const nn::OptimizerSpec& spec : specs) {
    Rng rng(23);
    auto expected = random_vector<T>(rng, count);
    const OnDevice<T> weights(expected, stream);
    nn::Optimizer<T> reference(spec, count);
    cuda::Optimizer<T> optimizer(spec, count);
    for (int step = 0; step < 5; ++step) {
      const auto gradients = random_vector<T>(rng, count);
      const OnDevice<T> grads(gradients, stream);
      reference.step(expected, gradients);
      optimizer.step(weights.span(), grads.span(), stream);
      const auto found = weights.back(stream);
      for (std::size_t e = 0; e < count; ++e)
        REQUIRE(double{found[e]} == Approx(double{expected[e]}).epsilon(unit).margin(unit));
    }
  }
}

TEST_CASE("more neighbors than a kernel takes are refused") {
  const cuda::Stream stream;
  const OnDevice<float> x(std::vector<float>(8), stream);
  const std::vector<const float*> many(cuda::max_neighbors + 1, x.data());
  const std::vector<float> weights(many.size());
  CHECK_THROWS_WITH(
      cuda::average(cuda::Average<float, float>{nullptr, x.data(), x.data(), many, weights, 8},
                    stream),
      ContainsSubstring("129 neighbors") && ContainsSubstring("at most 128"));
}
