#include <atomic>
#include <fast/core/error.hpp>
#include <fast/nn/backend.hpp>
#include <fast/testing/conformance.hpp>
#include <mutex>

#include "support/catch.hpp"

using namespace fast;
using testing::check_backend;

namespace {

nn::ModelSpec small() { return {"small", {16}, {nn::Dense{12}, nn::Relu{}, nn::Dense{4}}}; }

nn::ModelSpec small_residual() {
  const nn::Conv2d conv{4, 3, 1, 1, false};
  return {"small residual",
          {1, 8, 8},
          {conv, nn::BatchNorm{}, nn::Relu{}, nn::Residual{{conv, nn::BatchNorm{}}, {}}, nn::Relu{},
           nn::GlobalAveragePool{}, nn::Dense{4}}};
}

template <class T>
testing::BackendMaker network(const nn::ModelSpec& spec) {
  return [spec](std::uint64_t seed) { return nn::make_backend<T>(spec, seed); };
}

/// A replica that passes all calls on; each fault below breaks one of them.
struct Wrapper : Backend {
  explicit Wrapper(std::uint64_t seed)
      : inner(nn::make_backend<float>(small(), seed, {nn::SgdOptions{0.05, 0, 0}})) {}
  std::string name() const override { return inner->name(); }
  std::vector<TensorView> parameters() override { return inner->parameters(); }
  double train(const Batch& batch, const GradientHook& hook) override {
    return inner->train(batch, hook);
  }
  Evaluation evaluate(const Batch& batch) override { return inner->evaluate(batch); }
  void set_learning_rate(double rate) override { inner->set_learning_rate(rate); }
  std::shared_ptr<Backend> inner;
};

struct Nameless : Wrapper {
  using Wrapper::Wrapper;
  std::string name() const override { return ""; }
};

struct TwiceTheName : Wrapper {
  using Wrapper::Wrapper;
  std::vector<TensorView> parameters() override {
    auto views = inner->parameters();
    views[1].name = views[0].name;
    return views;
  }
};

struct Transposed : Wrapper {
  using Wrapper::Wrapper;
  std::vector<TensorView> parameters() override {
    auto views = inner->parameters();
    views[0].strides = {1, views[0].shape[0]};
    return views;
  }
};

struct OtherType : Wrapper {
  using Wrapper::Wrapper;
  std::vector<TensorView> parameters() override {
    auto views = inner->parameters();
    for (TensorView& view : views) {
      view.dtype = DType::bf16;
      view.shape.push_back(2);
    }
    return views;
  }
};

struct Forgetful : Wrapper {
  using Wrapper::Wrapper;
  std::vector<TensorView> parameters() override {
    auto views = inner->parameters();
    views.erase(views.begin());
    return views;
  }
};

/// Hands out copies.
struct Copies : Wrapper {
  using Wrapper::Wrapper;
  std::vector<TensorView> parameters() override {
    auto views = inner->parameters();
    copies.resize(views.size());
    for (std::size_t i = 0; i < views.size(); ++i) {
      const auto* data = static_cast<const float*>(views[i].data);
      if (copies[i].empty()) copies[i].assign(data, data + views[i].element_count());
      views[i].data = copies[i].data();
    }
    return views;
  }
  std::vector<std::vector<float>> copies;
};

struct Moving : Copies {
  using Copies::Copies;
  std::vector<TensorView> parameters() override {
    old.push_back(std::move(copies));
    copies.clear();
    return Copies::parameters();
  }
  std::vector<std::vector<std::vector<float>>> old;
};

struct SummedLoss : Wrapper {
  using Wrapper::Wrapper;
  double train(const Batch& batch, const GradientHook& hook) override {
    return inner->train(batch, hook) * static_cast<double>(batch.count());
  }
};

struct Frozen : Wrapper {
  using Wrapper::Wrapper;
  double train(const Batch& batch, const GradientHook& hook) override {
    inner->set_learning_rate(0);
    return inner->train(batch, hook);
  }
  void set_learning_rate(double) override {}
};

struct OwnRate : Wrapper {
  using Wrapper::Wrapper;
  void set_learning_rate(double) override {}
};

struct LearnsFromTests : Wrapper {
  using Wrapper::Wrapper;
  Evaluation evaluate(const Batch& batch) override {
    const Evaluation result = inner->evaluate(batch);
    inner->train(batch);
    return result;
  }
};

struct MeanEvaluation : Wrapper {
  using Wrapper::Wrapper;
  Evaluation evaluate(const Batch& batch) override {
    Evaluation result = inner->evaluate(batch);
    result.loss_sum /= static_cast<double>(batch.count());
    return result;
  }
};

struct NoHook : Wrapper {
  using Wrapper::Wrapper;
  double train(const Batch& batch, const GradientHook&) override { return inner->train(batch); }
};

struct LateHook : Wrapper {
  using Wrapper::Wrapper;
  double train(const Batch& batch, const GradientHook& hook) override {
    std::vector<std::vector<float>> copies;
    std::vector<TensorView> seen;
    const double loss = inner->train(batch, [&](const std::vector<TensorView>& gradients) {
      seen = gradients;
      for (TensorView& view : seen) {
        const auto* data = static_cast<const float*>(view.data);
        copies.emplace_back(data, data + view.element_count());
      }
    });
    for (std::size_t i = 0; i < seen.size(); ++i) seen[i].data = copies[i].data();
    if (hook) hook(seen);
    return loss;
  }
};

struct ClippedNorm : Wrapper {
  using Wrapper::Wrapper;
  std::optional<double> gradient_norm() override { return 1; }
};

struct CountsAll : Wrapper {
  using Wrapper::Wrapper;
  double train(const Batch& batch, const GradientHook& hook) override {
    count = batch.count();
    return inner->train(batch, hook);
  }
  std::optional<std::size_t> correct_in_step() override { return count; }
  std::size_t count = 0;
};

struct OneForAll : Wrapper {
  explicit OneForAll(std::uint64_t seed) : Wrapper(seed) {
    static const std::shared_ptr<Backend> only = inner;
    inner = only;
  }
  double train(const Batch& batch, const GradientHook& hook) override {
    const std::lock_guard lock(mutex);
    return inner->train(batch, hook);
  }
  Evaluation evaluate(const Batch& batch) override {
    const std::lock_guard lock(mutex);
    return inner->evaluate(batch);
  }
  static inline std::mutex mutex;
};

struct Unseeded : Wrapper {
  explicit Unseeded(std::uint64_t) : Wrapper(1000 + ++made) {}
  static inline std::atomic<std::uint64_t> made;
};

struct TakesAnything : Wrapper {
  using Wrapper::Wrapper;
  double train(const Batch& batch, const GradientHook& hook) override {
    try {
      return inner->train(batch, hook);
    } catch (const Error&) {
      return 0;
    }
  }
};

template <class Faulty>
std::string failures() {
  const auto report =
      check_backend([](std::uint64_t seed) { return std::make_unique<Faulty>(seed); });
  CHECK_FALSE(report.passed());
  CHECK(report.to_text().find("FAILED") != std::string::npos);
  std::string names;
  for (const testing::Check& check : report.checks)
    if (!check.failure.empty()) names += check.name + ": " + check.failure + "\n";
  return names;
}

}  // namespace

TEST_CASE("the library's own networks pass, in f32 and f64, with and without running statistics") {
  for (const auto& make : {network<float>(small()), network<double>(small())}) {
    const auto report = check_backend(make);
    INFO(report.to_text());
    CHECK(report.passed());
    CHECK(report.backend == "nn");
    CHECK(report.checks.size() == 21);
  }
  const auto report = check_backend(network<float>(small_residual()), {.sample_shape = {1, 8, 8}});
  INFO(report.to_text());
  CHECK(report.passed());
}

TEST_CASE("an adapter that breaks a rule fails the check of that rule") {
  CHECK_THAT(failures<Nameless>(), ContainsSubstring("the framework has a name"));
  CHECK_THAT(failures<TwiceTheName>(), ContainsSubstring("two tensors are named \"fc1.weight\""));
  CHECK_THAT(failures<Transposed>(), ContainsSubstring("strides [1, 12]"));
  CHECK_THAT(failures<OtherType>(), ContainsSubstring("is its dtype true?"));
  CHECK_THAT(failures<Forgetful>(), ContainsSubstring("all parameters handed out"));
  CHECK_THAT(failures<Copies>(), ContainsSubstring("is what the model computes with"));
  CHECK_THAT(failures<Moving>(), ContainsSubstring("views stay where they are"));
  CHECK_THAT(failures<SummedLoss>(), ContainsSubstring("the loss a mean?"));
  CHECK_THAT(failures<Frozen>(), ContainsSubstring("changed nothing in the views"));
  CHECK_THAT(failures<OwnRate>(), ContainsSubstring("a learning rate of 0 stands still"));
  CHECK_THAT(failures<LearnsFromTests>(), ContainsSubstring("evaluating changes nothing"));
  CHECK_THAT(failures<MeanEvaluation>(), ContainsSubstring("is loss_sum a sum?"));
  CHECK_THAT(failures<NoHook>(), ContainsSubstring("called 0 times"));
  CHECK_THAT(failures<LateHook>(), ContainsSubstring("yet the step moved the parameters"));
  CHECK_THAT(failures<ClippedNorm>(), ContainsSubstring("gradient_norm() is 1,"));
  CHECK_THAT(failures<CountsAll>(), ContainsSubstring("correct_in_step() is 32 of 32 samples"));
  CHECK_THAT(failures<OneForAll>(), ContainsSubstring("training one replica changed another"));
  CHECK_THAT(failures<Unseeded>(), ContainsSubstring("a seed decides"));
  CHECK_THAT(failures<TakesAnything>(), ContainsSubstring("an empty batch was taken"));
}

TEST_CASE("a maker that throws fails every check, and none ends the program") {
  const auto report = check_backend([](std::uint64_t) -> std::unique_ptr<Backend> {
    throw std::runtime_error("no such device");
  });
  for (const testing::Check& check : report.checks)
    CHECK_THAT(check.failure, ContainsSubstring("no such device"));
  const auto odd = check_backend([](std::uint64_t) -> std::unique_ptr<Backend> { throw 1; });
  for (const testing::Check& check : odd.checks)
    CHECK_THAT(check.failure, ContainsSubstring("not a std::exception"));
}

TEST_CASE("a problem out of range is refused") {
  CHECK_THROWS_WITH(check_backend(network<float>(small()), {.classes = 1}),
                    ContainsSubstring("1 classes"));
  CHECK_THROWS_WITH(check_backend(network<float>(small()), {.sample_shape = {0}}),
                    ContainsSubstring("a sample's side of 0"));
}
