#include "fast_train/init_weights.hpp"

#include <fast/core/error.hpp>

#include "support/catch.hpp"

using namespace fast;
using fast_train::init_weights;

namespace {

/// A model of a body of 2 values and a head of `classes`.
struct Model {
  explicit Model(float value, std::int64_t classes = 3)
      : body(2, value), head(static_cast<std::size_t>(classes), value) {}
  std::vector<TensorView> views(const std::string& prefix = {}) {
    return {view_of(prefix + "fc1.weight", std::span(body)),
            view_of(prefix + "fc2.weight", std::span(head))};
  }
  std::vector<float> body, head;
};

}  // namespace

TEST_CASE("tensors of the same name and shape are taken, and a head of another shape is named") {
  Model base(1), same(0), other(0, 5);
  CHECK(init_weights(base.views(), same.views(), "base") ==
        "initial weights: 2 of 2 tensors from base");
  CHECK(same.head == base.head);
  CHECK(init_weights(base.views(), other.views(), "base") ==
        "initial weights: 1 of 2 tensors from base; of another shape, begin anew: fc2.weight [3] "
        "for [5]");
  CHECK(other.body == base.body);
  CHECK(other.head == std::vector<float>(5, 0));
}

TEST_CASE("what all names of a file begin with does not count") {
  Model base(1), model(0);
  CHECK_THAT(init_weights(base.views("net.model."), model.views(), "base"),
             ContainsSubstring("its names begin with net.model."));
  CHECK(model.head == base.head);
  // Equal names go before.
  Model equal(2);
  std::vector<TensorView> both = base.views("model.");
  both.push_back(equal.views()[0]);
  CHECK_THAT(init_weights(both, model.views(), "base"),
             ContainsSubstring("not there, begin anew: fc2.weight; not used: model.fc1.weight, "
                               "model.fc2.weight"));
  CHECK(model.body == equal.body);
}

TEST_CASE("numbers of other types are converted") {
  std::vector<double> doubles{0.5, -2};
  std::vector<Float16> halves{to_float16(0.5F), to_float16(-2)};
  std::vector<BFloat16> brains{to_bfloat16(0.5F), to_bfloat16(-2)};
  std::vector<std::int32_t> wholes{1, 2};
  const auto taken = [](auto& values) {
    Model model(0);
    init_weights({view_of("fc1.weight", std::span(values))}, model.views(), "base");
    return model.body;
  };
  CHECK(taken(doubles) == std::vector<float>{0.5F, -2});
  CHECK(taken(halves) == std::vector<float>{0.5F, -2});
  CHECK(taken(brains) == std::vector<float>{0.5F, -2});
  CHECK_THROWS_WITH(taken(wholes), ContainsSubstring("none of its 1 tensors fits"));
}

TEST_CASE("a file of names says which tensor is which") {
  const auto map =
      fast_train::read_name_map("# theirs ours\n\na.w fc1.weight\n b fc2.weight \n", "m");
  CHECK(map == fast_train::NameMap{{"fc1.weight", "a.w"}, {"fc2.weight", "b"}});
  Model base(1), model(0);
  const std::vector<TensorView> theirs{view_of("a.w", std::span(base.body)),
                                       view_of("b", std::span(base.head))};
  init_weights(theirs, model.views(), "base", map);
  CHECK(model.body == base.body);
  CHECK(model.head == base.head);
  CHECK_THROWS_WITH(init_weights(theirs, model.views(), "base", {{"fc3.weight", "b"}}),
                    ContainsSubstring("the model has no tensor fc3.weight"));
  CHECK_THROWS_WITH(init_weights(theirs, model.views(), "base", {{"fc1.weight", "c"}}),
                    ContainsSubstring("base has no tensor c"));
  for (const char* bad : {"a", "a b c", "a x\nb x"})
    CHECK_THROWS_WITH(fast_train::read_name_map(bad, "m"), ContainsSubstring("--init-map m:"));
}

TEST_CASE("weights of which none fits are refused") {
  Model base(1, 4), model(0);
  const std::vector<TensorView> head{base.views()[1]}, body{view_of("w", std::span(base.body))};
  CHECK_THROWS_WITH(init_weights(body, model.views(), "base"),
                    ContainsSubstring("--init-weights base") && ContainsSubstring("it has w"));
  CHECK_THROWS_WITH(init_weights(head, model.views(), "base"), ContainsSubstring("another shape"));
  CHECK_THROWS_AS(init_weights({}, model.views(), "base"), Error);
}
