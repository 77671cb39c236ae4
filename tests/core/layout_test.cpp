#include <fast/core/error.hpp>
#include <fast/core/tensor_view.hpp>

#include "support/catch.hpp"

using namespace fast;
using Catch::Matchers::Contains;

namespace {
TensorView tensor(std::string name, void* data, std::vector<std::int64_t> shape,
                  DType dtype = DType::f32, Role role = Role::parameter) {
  return {std::move(name), data, std::move(shape), dtype, role, {}};
}
}  // namespace

TEST_CASE("neighbors in memory become one segment") {
  std::vector<float> arena(20);
  const ParameterLayout flat(
      {tensor("a", arena.data(), {2, 3}), tensor("b", arena.data() + 6, {14})});
  REQUIRE(flat.segments().size() == 1);
  CHECK(flat.segments()[0].element_count == 20);
  CHECK(flat.size_bytes() == 80);
  CHECK(flat.parameter_count() == 20);
}

TEST_CASE("scattered and flat memory have the same packed layout and hash") {
  std::vector<float> arena(20), a(6), b(14);
  const ParameterLayout flat(
      {tensor("a", arena.data(), {2, 3}), tensor("b", arena.data() + 6, {14})});
  const ParameterLayout scattered({tensor("a", a.data(), {2, 3}), tensor("b", b.data(), {14})});
  CHECK(scattered.segments().size() == 2);
  CHECK(scattered.segments()[1].offset_bytes == 24);
  CHECK(scattered.size_bytes() == flat.size_bytes());
  CHECK(scattered.hash() == flat.hash());
}

TEST_CASE("gather and scatter are inverse, types and roles in groups") {
  std::vector<float> a{1, 2, 3}, s{7};
  std::vector<double> b{4, 5};
  std::vector<std::int64_t> steps{9};
  const ParameterLayout layout({tensor("stat", s.data(), {1}, DType::f32, Role::buffer),
                                tensor("b", b.data(), {2}, DType::f64), tensor("a", a.data(), {3}),
                                tensor("steps", steps.data(), {}, DType::i64, Role::buffer)});
  CHECK(layout.views().size() == 3);
  CHECK(layout.views()[0].name == "a");
  CHECK(layout.views()[2].role == Role::buffer);
  std::vector<std::byte> packed(layout.size_bytes());
  layout.gather(packed.data());
  a = {0, 0, 0};
  b = {0, 0};
  s = {0};
  layout.scatter(packed.data());
  CHECK(a == std::vector<float>{1, 2, 3});
  CHECK(b == std::vector<double>{4, 5});
  CHECK(s == std::vector<float>{7});
}

TEST_CASE("tied weights count once, partial overlap is refused") {
  std::vector<float> arena(10);
  const ParameterLayout tied(
      {tensor("embed", arena.data(), {10}), tensor("head", arena.data(), {10})});
  CHECK(tied.parameter_count() == 10);
  CHECK_THROWS_WITH(
      ParameterLayout({tensor("a", arena.data(), {6}), tensor("b", arena.data() + 5, {5})}),
      Contains("\"a\"") && Contains("\"b\"") && Contains("overlap"));
}

TEST_CASE("bad tensors are refused with their name") {
  std::vector<float> arena(10);
  CHECK_THROWS_WITH(ParameterLayout(std::vector<TensorView>{}), Contains("has none"));
  CHECK_THROWS_WITH(ParameterLayout({tensor("", arena.data(), {1})}), Contains("no name"));
  CHECK_THROWS_WITH(ParameterLayout({tensor("w", arena.data(), {0})}), Contains("\"w\" [0] f32"));
  CHECK_THROWS_WITH(ParameterLayout({tensor("w", nullptr, {1})}), Contains("null"));
  CHECK_THROWS_WITH(ParameterLayout({tensor("w", arena.data(), {-1})}), Contains("negative"));
  CHECK_THROWS_WITH(
      ParameterLayout({tensor("w", arena.data(), {1}), tensor("w", arena.data() + 1, {1})}),
      Contains("two tensors are named \"w\""));
}

TEST_CASE(
    "memory with gaps, misaligned or on a device is refused, strides of contiguous memory not") {
  std::vector<float> arena(12);
  TensorView view = tensor("w", arena.data(), {3, 4});
  view.strides = {4, 1};
  CHECK(ParameterLayout({view}).parameter_count() == 12);
  view.strides = {1, 3};
  CHECK_THROWS_WITH(ParameterLayout({view}), Contains("\"w\" [3x4] f32 has strides [1, 3]"));
  view.shape = {1, 12};
  view.strides = {7, 1};  // a side of one has no step
  CHECK(ParameterLayout({view}).parameter_count() == 12);
  CHECK_THROWS_WITH(
      ParameterLayout({tensor("w", reinterpret_cast<std::byte*>(arena.data()) + 2, {4})}),
      Contains("\"w\"") && Contains("aligned memory"));
  view.device = {Device::Kind::cuda, 1};
  CHECK_THROWS_WITH(ParameterLayout({view}), Contains("device 1") && Contains("host memory"));
}

TEST_CASE("memory that moved without telling is named") {
  std::vector<float> a(4), b(4), c(4);
  const ParameterLayout layout({tensor("a", a.data(), {4}), tensor("b", b.data(), {4})});
  layout.require_in_place({tensor("a", a.data(), {4}), tensor("b", b.data(), {4})});
  CHECK_THROWS_WITH(
      layout.require_in_place({tensor("a", a.data(), {4}), tensor("b", c.data(), {4})}),
      Contains("\"b\" [4] f32 has moved") && Contains("rebind()"));
  CHECK_THROWS_WITH(layout.require_in_place({tensor("a", a.data(), {4})}), Contains("has gone"));
}

TEST_CASE("rebinding takes moved memory and refuses another model") {
  std::vector<float> a(4), b(4), c(5);
  const ParameterLayout layout({tensor("w", a.data(), {4})});
  CHECK(layout.rebound({tensor("w", b.data(), {4})}).segments()[0].data == b.data());
  CHECK_THROWS_AS(layout.rebound({tensor("w", c.data(), {5})}), Error);
}
