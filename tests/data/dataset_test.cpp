#include <fast/core/error.hpp>
#include <fast/data/dataset.hpp>

#include "support/catch.hpp"

using namespace fast;
using data::Dataset;

namespace {

/// Two samples of two channels with two pixels each.
Dataset two_channels() {
  return {
      "two", {2, 1, 2}, std::vector<std::uint8_t>{0, 51, 102, 153, 204, 255, 0, 255}, {0, 1}, 2};
}

std::vector<float> gathered(const Dataset& set, std::vector<std::size_t> indices,
                            const data::Normalization& normalization = {}) {
  std::vector<float> out(indices.size() * set.sample_size());
  set.gather(indices, normalization, out);
  return out;
}

void check_close(const std::vector<float>& found, const std::vector<double>& wanted) {
  REQUIRE(found.size() == wanted.size());
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    CHECK(static_cast<double>(found[i]) == Approx(wanted[i]).margin(1e-6));
  }
}

}  // namespace

TEST_CASE("bytes become fractions, floats stay as they are") {
  check_close(gathered(two_channels(), {1, 0}), {0.8, 1, 0, 1, 0, 0.2, 0.4, 0.6});
  const Dataset floats("floats", {2}, std::vector<float>{1, -2, 3, 4}, {0, 0}, 1);
  check_close(gathered(floats, {1, 1, 0}), {3, 4, 3, 4, 1, -2});
}

TEST_CASE("normalization subtracts the mean and divides by the deviation") {
  check_close(gathered(two_channels(), {0}, {{0.2F}, {0.4F}}), {-0.5, 0, 0.5, 1});
  check_close(gathered(two_channels(), {0}, {{0.2F, 0.6F}, {0.4F, 0.1F}}), {-0.5, 0, -2, 0});
  check_close(gathered(two_channels(), {0}, {{0.2F, 0.6F}, {0.5F}}), {-0.4, 0, -0.4, 0});
}

TEST_CASE("a normalization that does not fit is refused") {
  CHECK_THROWS_WITH(gathered(two_channels(), {0}, {{0, 0, 0}, {1}}),
                    ContainsSubstring("3 means and 1 standard deviations for 2 channels"));
  CHECK_THROWS_WITH(gathered(two_channels(), {0}, {{0}, {1, 0}}),
                    ContainsSubstring("0 of channel 1"));
  CHECK_THROWS_WITH(gathered(two_channels(), {0}, {{NAN}, {1}}), ContainsSubstring("finite"));
}

TEST_CASE("measured moments normalize to mean zero and deviation one, a channel each") {
  const Dataset set = two_channels();
  const data::Normalization measured = set.measure();
  REQUIRE(measured.mean.size() == 2);
  CHECK(measured.mean[0] == Approx(0.5));
  CHECK(measured.stddev[0] == Approx(std::sqrt((0 + 0.04 + 0.64 + 1) / 4 - 0.25)));
  const auto values = gathered(set, {0, 1}, measured);
  CHECK(values[2] + values[3] + values[6] + values[7] == Approx(0).margin(1e-6));
  const Dataset constant("c", {1}, std::vector<float>{2, 2}, {0, 0}, 1);
  check_close(gathered(constant, {0, 1}, constant.measure()), {0, 0});
}

TEST_CASE("slices and copies share their storage") {
  const Dataset set = two_channels();
  const Dataset second = set.slice(1, 1);
  CHECK(second.size() == 1);
  CHECK(second.labels().data() == set.labels().data() + 1);
  CHECK(gathered(second, {0}) == gathered(set, {1}));
  CHECK(second.slice(1, 0).size() == 0);
  CHECK_THROWS_WITH(second.slice(0, 2),
                    ContainsSubstring("\"two\"") && ContainsSubstring("which has 1"));
  CHECK_THROWS_WITH(set.slice(3, 0), ContainsSubstring("3"));
  CHECK_THROWS_WITH(gathered(second, {1}), ContainsSubstring("sample 1"));
}

TEST_CASE("an empty data set answers") {
  const Dataset none;
  CHECK(none.size() == 0);
  CHECK(none.labels().empty());
  CHECK(none.sample_size() == 0);
  CHECK(none.measure().mean.size() == 1);
  CHECK_THROWS_AS(gathered(none, {0}), Error);
}

TEST_CASE(
    "a selection has the samples of its indices, in memory and of files, and can be divided") {
  std::vector<float> values;
  for (int i = 0; i < 20; ++i) values.push_back(static_cast<float>(i));
  const Dataset all("numbers", {2}, values, std::vector<std::int32_t>{0, 1, 2, 3, 4, 5, 6, 7, 8, 9},
                    10);
  const Dataset some = all.slice(1, 9).select({0, 3, 4, 8});  // 1, 4, 5, 9
  CHECK(some.size() == 4);
  CHECK(std::vector<std::int32_t>(some.labels().begin(), some.labels().end()) ==
        std::vector<std::int32_t>{1, 4, 5, 9});
  const std::vector<std::size_t> order{3, 0, 2};
  std::vector<float> out(6);
  some.gather(order, {}, out);
  CHECK(out == std::vector<float>{18, 19, 2, 3, 10, 11});
  const Dataset again = some.select({1, 3}).slice(1, 1);
  float sample[2];
  again.copy(0, std::as_writable_bytes(std::span(sample)));
  CHECK((again.labels()[0] == 9 && sample[0] == 18 && sample[1] == 19));
  CHECK(some.measure().mean[0] == Approx((2 + 8 + 10 + 18) / 4.0));
  CHECK_THROWS_WITH(some.values(), ContainsSubstring("selected"));
  CHECK_THROWS_WITH(all.select({1, 1}), ContainsSubstring("ascend"));
  CHECK_THROWS_WITH(all.select({10}), ContainsSubstring("sample 10"));
  CHECK(all.select({}).size() == 0);
}

TEST_CASE("float targets belong to their samples, in slices too") {
  const Dataset set("prices", {2}, std::vector<float>{1, 2, 3, 4, 5, 6},
                    data::Targets{std::vector<float>{10, 11, 20, 21, 30, 31}, {2}});
  CHECK(set.size() == 3);
  CHECK(set.classes() == 0);
  CHECK(set.labels().empty());
  CHECK(set.target_shape() == std::vector<std::int64_t>{2});
  CHECK(set.target_size() == 2);
  const Dataset last = set.slice(1, 2);
  REQUIRE(last.targets().size() == 4);
  CHECK(last.targets()[0] == 20);
  CHECK(last.targets()[3] == 31);
  check_close(gathered(last, {1}), {5, 6});
  CHECK(set.slice(3, 0).targets().empty());
}

TEST_CASE("one number a sample needs no target shape") {
  const Dataset set("heights", {1}, std::vector<std::uint8_t>{0, 255},
                    data::Targets{std::vector<float>{-1.5F, 2}});
  CHECK(set.size() == 2);
  CHECK(set.target_shape().empty());
  CHECK(set.target_size() == 1);
  CHECK(set.targets()[0] == -1.5F);
}

TEST_CASE("a label each step makes one sample of so many labels") {
  const Dataset set("tags", {3}, std::vector<float>{1, 2, 3, 4, 5, 6},
                    data::Targets{std::vector<std::int32_t>{0, 1, 2, 2, 1, 0}, {3}, 3});
  CHECK(set.size() == 2);
  CHECK(set.classes() == 3);
  CHECK(set.targets().empty());
  REQUIRE(set.slice(1, 1).labels().size() == 3);
  CHECK(set.slice(1, 1).labels().data() == set.labels().data() + 3);
}

TEST_CASE("targets that do not fit the samples are refused") {
  using Floats = std::vector<float>;
  const Floats values(4);
  const auto make = [&](data::Targets targets) { return Dataset("d", {2}, values, targets); };
  CHECK_THROWS_WITH(make({Floats(3)}), ContainsSubstring("4 values for 3 targets of 2"));
  CHECK_THROWS_WITH(make({Floats(5), {2}}), ContainsSubstring("5 targets for samples of 2"));
  CHECK_THROWS_WITH(make({Floats(4), {0}}), ContainsSubstring("target shape has a side 0"));
  CHECK_THROWS_WITH(make({Floats{0, 0, 0, NAN}, {2}}),
                    ContainsSubstring("sample 1 has the target nan"));
  CHECK_THROWS_WITH(make({Floats(2), {}, 2}), ContainsSubstring("2 classes for float targets"));
  CHECK_THROWS_WITH(make({std::vector<std::int32_t>{0, 1, 2, 3}, {2}, 3}),
                    ContainsSubstring("sample 1 has label 3"));
}

TEST_CASE("values, shapes and labels that do not fit each other are refused") {
  const std::vector<float> values(4);
  CHECK_THROWS_WITH(Dataset("d", {3}, values, {0, 0}, 1),
                    ContainsSubstring("4 values for 2 labels of 3"));
  CHECK_THROWS_WITH(Dataset("d", {0}, values, {0, 0}, 1), ContainsSubstring("side 0"));
  CHECK_THROWS_WITH(Dataset("d", {2}, values, {0, -1}, 3),
                    ContainsSubstring("sample 1 has label -1"));
  CHECK_THROWS_WITH(Dataset("d", {2}, values, {3, 0}, 3), ContainsSubstring("0..2"));
}
