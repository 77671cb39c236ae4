#include <cmath>
#include <fast/core/memory.hpp>
#include <fast/core/random.hpp>
#include <fast/mixing/kernels.hpp>
#include <limits>
#include <vector>

#include "support/catch.hpp"
#include "support/seed.hpp"

using namespace fast;

namespace {

template <class T>
std::vector<T> random_vector(Rng& rng, std::size_t count) {
  std::vector<T> values(count);
  for (T& value : values) value = static_cast<T>(rng.normal());
  return values;
}

/// A worker's own and its neighbors' values, with weights, of odd counts and misaligned starts.
template <class T>
struct Problem {
  std::vector<T> own, current;
  std::vector<std::vector<T>> neighbors;
  std::vector<const T*> values;
  std::vector<T> weights;
  Problem(Rng& rng, std::size_t count, std::size_t degree)
      : own(random_vector<T>(rng, count)), current(random_vector<T>(rng, count)) {
    for (std::size_t j = 0; j < degree; ++j) {
      neighbors.push_back(random_vector<T>(rng, count));
      weights.push_back(static_cast<T>(rng.uniform()));
    }
    for (const auto& neighbor : neighbors) values.push_back(neighbor.data());
  }
  double expected_difference(std::size_t e) const {
    double sum = 0;
    for (std::size_t j = 0; j < values.size(); ++j)
      sum += double(weights[j]) * (double(values[j][e]) - double(own[e]));
    return sum;
  }
};

}  // namespace

TEMPLATE_TEST_CASE("kernels equal the sums they stand for", "", float, double) {
  const double tolerance = std::is_same_v<TestType, float> ? 1e-5 : 1e-13;
  Rng rng(5);
  for (const std::size_t count : {1, 2, 3, 7, 8, 31, 64, 1001}) {
    for (const std::size_t degree : {0, 1, 2, 3, 4, 5, 8}) {
      const Problem<TestType> p(rng, count, degree);
      std::vector<TestType> out(count + 1), sum(count), next(count + 1);
      mixing::weighted_differences(out.data() + 1, p.own.data(), p.values, p.weights, count);
      mixing::weighted_sum(sum.data(), p.values, p.weights, count);
      auto current = p.current;
      mixing::average(current.data(), next.data() + 1, p.own.data(), p.values, p.weights, count);
      mixing::stream_fence();
      for (std::size_t e = 0; e < count; ++e) {
        const double expected = p.expected_difference(e);
        REQUIRE(double(out[e + 1]) == Approx(expected).margin(tolerance));
        REQUIRE(double(current[e]) == Approx(double(p.current[e]) + expected).margin(tolerance));
        REQUIRE(next[e + 1] == current[e]);
        double total = 0;
        for (std::size_t j = 0; j < degree; ++j)
          total += double(p.weights[j]) * double(p.values[j][e]);
        REQUIRE(double(sum[e]) == Approx(total).margin(tolerance));
      }
    }
  }
}

TEMPLATE_TEST_CASE("an average apart adds the sum of the differences, and writes scratch alone", "",
                   float, double) {
  Rng rng(7);
  for (const std::size_t count : {1, 2, 3, 7, 8, 31, 64, 1001}) {
    for (const std::size_t degree : {0, 1, 2, 3, 4, 5, 8}) {
      const Problem<TestType> p(rng, count, degree);
      for (const bool has_current : {true, false}) {
        auto current = p.current;
        std::vector<TestType> expected(count), out(count + 2, 7);
        const auto of = [&](std::vector<TestType>& x) { return has_current ? x.data() : nullptr; };
        CHECK(mixing::average_apart(out.data() + 1, of(current), p.own.data(), p.values, p.weights,
                                    count));
        CHECK(current == p.current);
        mixing::weighted_differences(expected.data(), p.own.data(), p.values, p.weights, count);
        for (std::size_t e = 0; e < count; ++e) expected[e] += (has_current ? current : p.own)[e];
        CHECK(std::vector<TestType>(out.begin() + 1, out.end() - 1) == expected);
        CHECK((out.front() == 7 && out.back() == 7));
      }
    }
  }
}

TEST_CASE("averages of bfloat16 slots are those of their values") {
  Rng rng(6);
  for (const std::size_t count : {1, 2, 3, 7, 8, 31, 64, 1001}) {
    for (const std::size_t degree : {0, 1, 2, 3, 4, 5, 8}) {
      for (const std::size_t shift : {0, 1, 9}) {
        Problem<float> p(rng, count, degree);
        const auto rounded = [](std::vector<float>& values) {
          std::vector<BFloat16> narrow;
          for (float& value : values) {
            narrow.push_back(to_bfloat16(value));
            value = to_float(narrow.back());
          }
          return narrow;
        };
        const auto own = rounded(p.own);
        std::vector<std::vector<BFloat16>> neighbors;
        std::vector<const BFloat16*> values;
        for (auto& neighbor : p.neighbors) neighbors.push_back(rounded(neighbor));
        for (const auto& neighbor : neighbors) values.push_back(neighbor.data());
        std::vector<float> expected = p.current, next(count), current = p.current;
        mixing::average(expected.data(), next.data(), p.own.data(), p.values, p.weights, count);
        std::vector<BFloat16> narrow_next(count + shift, BFloat16{7});
        mixing::average(current.data(), narrow_next.data() + shift, own.data(), values, p.weights,
                        count);
        mixing::stream_fence();
        REQUIRE(current == expected);
        std::vector<float> apart(count);
        mixing::average_apart(apart.data(), p.current.data(), own.data(), values, p.weights, count);
        mixing::weighted_differences(expected.data(), p.own.data(), p.values, p.weights, count);
        for (std::size_t e = 0; e < count; ++e) REQUIRE(apart[e] == p.current[e] + expected[e]);
        for (std::size_t e = 0; e < count; ++e) {
          REQUIRE(narrow_next[shift + e].bits == to_bfloat16(current[e]).bits);
        }
        for (std::size_t e = 0; e < shift; ++e) REQUIRE(narrow_next[e].bits == 7);
      }
    }
  }
}

TEST_CASE("bfloat16 slots carry what is not finite") {
  const float bad[] = {std::numeric_limits<float>::infinity(),
                       -std::numeric_limits<float>::infinity(),
                       std::numeric_limits<float>::quiet_NaN()};
  std::vector<float> current(67);
  std::vector<BFloat16> own(67), next(67);
  for (std::size_t e = 0; e < 67; ++e) current[e] = bad[e % 3];
  mixing::average(current.data(), next.data(), own.data(), {}, {}, 67);
  for (std::size_t e = 0; e < 67; ++e) {
    CHECK(std::isnan(to_float(next[e])) == (e % 3 == 2));
    if (e % 3 < 2) CHECK(to_float(next[e]) == bad[e % 3]);
  }
}

TEST_CASE("sums and averages of 2^-256 are exact") {
  const double tiny = 0x1p-256;
  const std::vector<double> own(5, tiny), other(5, 3 * tiny);
  const std::vector<const double*> values{other.data()};
  const std::vector<double> half{0.5}, one{1};
  std::vector<double> out(5);
  mixing::weighted_differences(out.data(), own.data(), values, half, 5);
  CHECK(out == std::vector<double>(5, tiny));
  mixing::weighted_sum(out.data(), values, one, 5);
  CHECK(out == other);
}

TEST_CASE("streaming copies copy every byte and no other") {
  for (const std::size_t count : {0, 1, 15, 63, 64, 65, 1000}) {
    for (const std::size_t shift : {0, 1, 7, 32}) {
      std::vector<std::uint8_t> from(count), to(count + 100, 0xee);
      for (std::size_t i = 0; i < count; ++i) from[i] = static_cast<std::uint8_t>(i * 7);
      mixing::stream_copy(to.data() + shift, from.data(), count);
      mixing::stream_fence();
      CHECK(std::equal(from.begin(), from.end(), to.begin() + shift));
      for (std::size_t i = 0; i < to.size(); ++i) {
        if (i < shift || i >= shift + count) REQUIRE(to[i] == 0xee);
      }
    }
  }
}

TEMPLATE_TEST_CASE("distances accumulate in double, finiteness sees every element", "", float,
                   double) {
  for (const std::size_t count : {1, 5, 8, 33}) {
    std::vector<TestType> a(count, 3), b(count, 1);
    CHECK(mixing::squared_distance(a.data(), b.data(), count) == 4.0 * static_cast<double>(count));
    for (std::size_t e = 0; e < count; ++e) {
      for (const TestType bad : {std::numeric_limits<TestType>::infinity(),
                                 std::numeric_limits<TestType>::quiet_NaN()}) {
        CHECK(mixing::all_finite(a.data(), count));
        a[e] = bad;
        CHECK_FALSE(mixing::all_finite(a.data(), count));
        a[e] = 3;
      }
    }
  }
}

TEMPLATE_TEST_CASE("sums over replicas are those of doubles, and round once", "", float, double) {
  Rng rng(17);
  for (const std::size_t count : {1, 2, 3, 7, 8, 31, 64, 1001}) {
    const auto first = random_vector<TestType>(rng, count + 1);
    const auto second = random_vector<TestType>(rng, count + 1);
    std::vector<double> sums(count), differences(count);
    const TestType *a_first = first.data() + 1, *b_first = second.data() + 1;
    const TestType* both[] = {a_first, b_first};
    mixing::add(sums.data(), both, count);
    const double squares = mixing::add_differences(differences.data(), 0, both, a_first, count);
    std::vector<TestType> third(count + 1);
    mixing::divide(third.data() + 1, sums.data(), 3, count);
    double expected_squares = 0;
    for (std::size_t e = 0; e < count; ++e) {
      const double a = first[e + 1], b = second[e + 1];
      REQUIRE(sums[e] == a + b);
      REQUIRE(differences[e] == b - a);
      REQUIRE(third[e + 1] == static_cast<TestType>((a + b) / 3));
      expected_squares += (b - a) * (b - a);
    }
    CHECK(squares == Approx(expected_squares).epsilon(1e-13));
    CHECK(mixing::sum_of_squares(differences.data(), count) ==
          Approx(expected_squares).epsilon(1e-13));
  }
}

TEMPLATE_TEST_CASE("sums over replicas have the same bits however many are given at once", "",
                   float, double) {
  const std::uint64_t seed = test_seed(12);
  INFO("FAST_TEST_SEED=" << seed);
  Rng rng(seed);
  for (const std::size_t count : {1, 7, 515, 3001}) {
    std::vector<std::vector<TestType>> replicas;
    std::vector<const TestType*> values;
    for (int j = 0; j < 37; ++j) replicas.push_back(random_vector<TestType>(rng, count));
    for (const auto& replica : replicas) values.push_back(replica.data());
    const auto summed = [&](std::size_t at_once) {
      std::vector<double> sums(count), differences(count);
      double squares = 0;
      for (std::size_t first = 0; first < values.size(); first += at_once) {
        const auto some =
            std::span(values).subspan(first, std::min(at_once, values.size() - first));
        mixing::add(sums.data(), some, count);
        squares = mixing::add_differences(differences.data(), squares, some, values[0], count);
      }
      sums.insert(sums.end(), differences.begin(), differences.end());
      sums.push_back(squares);
      return sums;
    };
    const std::vector<double> one_by_one = summed(1);
    for (const std::size_t at_once : {2, 16, 17, 37}) CHECK(summed(at_once) == one_by_one);
  }
}

TEST_CASE("what is not finite stays so in sums over replicas") {
  const std::vector<float> values{1, HUGE_VALF, std::nanf("")}, origin{1, 1, 1};
  std::vector<double> sums(3);
  const float* at = values.data();
  CHECK(std::isnan(mixing::add_differences(sums.data(), 0, std::span(&at, 1), origin.data(), 3)));
  CHECK(sums[0] == 0);
  CHECK(std::isinf(sums[1]));
  CHECK(std::isnan(sums[2]));
}

TEMPLATE_TEST_CASE("an average says whether every element is finite", "", float, double) {
  for (const std::size_t count : {1, 5, 16, 33, 100}) {
    const std::vector<TestType> own(count, 1), other(count, 3);
    const std::vector<const TestType*> values{other.data()};
    const std::vector<TestType> weights{0.5};
    std::vector<TestType> next(count + 1);
    for (std::size_t e = 0; e < count; ++e) {
      for (const TestType bad : {std::numeric_limits<TestType>::infinity(),
                                 std::numeric_limits<TestType>::quiet_NaN()}) {
        std::vector<TestType> current(count, std::numeric_limits<TestType>::max() / 2);
        CHECK(mixing::average(current.data(), next.data() + 1, own.data(), values, weights, count));
        current[e] = bad;
        CHECK_FALSE(mixing::average_apart(next.data() + 1, current.data(), own.data(), values,
                                          weights, count));
        CHECK_FALSE(
            mixing::average(current.data(), next.data() + 1, own.data(), values, weights, count));
      }
    }
  }
}

TEST_CASE("an average in bfloat16 slots says whether every element is finite") {
  std::vector<float> current(100, 1);
  const std::vector<BFloat16> own(100);
  std::vector<BFloat16> next(100);
  for (std::size_t e = 0; e < current.size(); ++e) {
    CHECK(mixing::average(current.data(), next.data(), own.data(), {}, {}, current.size()));
    current[e] = std::numeric_limits<float>::quiet_NaN();
    CHECK_FALSE(mixing::average(current.data(), next.data(), own.data(), {}, {}, current.size()));
    current[e] = 1;
  }
}
