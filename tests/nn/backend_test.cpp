#include <cmath>
#include <fast/core/error.hpp>
#include <fast/core/tensor_view.hpp>
#include <fast/exchange/local.hpp>
#include <fast/nn/backend.hpp>
#include <fast/nn/network.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/worker.hpp>

#include "nn/samples.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::nn;

namespace {

/// Images of a bright half, upper or lower, left or right, in noise: four classes.
Samples halves(std::int64_t count) {
  Samples samples(count, {1, 8, 8}, 4, 21);
  for (std::size_t i = 0; i < samples.inputs.size(); ++i) {
    const std::size_t row = i / 8 % 8, column = i % 8;
    const bool bright[] = {row < 4, row >= 4, column < 4, column >= 4};
    samples.inputs[i] = 0.5F * samples.inputs[i] + (bright[samples.labels[i / 64]] ? 1.0F : 0.0F);
  }
  return samples;
}

ModelSpec tiny() {
  return {"tiny", {1, 8, 8}, {Conv2d{4, 3, 1, 1}, Relu{}, MaxPool{}, Flatten{}, Dense{4}}};
}

/// A residual network in small: a plain block, then one that halves the image.
ModelSpec tiny_resnet() {
  const auto conv = [](std::int64_t channels, std::int64_t stride) {
    return Conv2d{channels, 3, stride, 1, false};
  };
  return {"tiny resnet",
          {1, 8, 8},
          {conv(4, 1), BatchNorm{}, Relu{},
           Residual{{conv(4, 1), BatchNorm{}, Relu{}, conv(4, 1), BatchNorm{}}, {}}, Relu{},
           Residual{{conv(6, 2), BatchNorm{}, Relu{}, conv(6, 1), BatchNorm{}},
                    {Conv2d{6, 1, 2, 0, false}, BatchNorm{}}},
           Relu{}, GlobalAveragePool{}, Dense{4}}};
}

std::vector<float> running_statistics(Backend& backend) {
  const std::vector<TensorView> views = backend.parameters();
  std::vector<float> values;
  for (const TensorView& view : views)
    if (view.role == Role::buffer) {
      const auto* first = static_cast<const float*>(view.data);
      values.insert(values.end(), first, first + view.element_count());
    }
  return values;
}

float& first_weight(Backend& backend) { return *static_cast<float*>(backend.parameters()[0].data); }

}  // namespace

TEST_CASE("a tiny convolutional network learns a tiny problem") {
  const Samples train = halves(256), test = halves(64);
  const auto backend = make_backend<float>(tiny(), 1, {SgdOptions{0.05, 0.9, 1e-4}});
  CHECK(backend->name() == "nn");
  const double before = backend->train(train.batch(0, 32));
  double after = before;
  for (int epoch = 0; epoch < 10; ++epoch)
    for (std::size_t first = 0; first < 256; first += 32)
      after = backend->train(train.batch(first, 32));
  CHECK(after < before / 5);
  const Evaluation result = backend->evaluate(test.batch());
  CHECK(result.correct >= 60);
  CHECK(result.loss_sum / 64 < 0.3);
}

TEST_CASE("train is gradients, hook, SGD step, in this order") {
  const Samples samples(6, {1, 8, 8}, 4);
  const auto backend = make_backend<double>(tiny(), 1, {SgdOptions{0.5, 0, 0}});
  Network<double> oracle(tiny(), 1);
  const double loss = oracle.loss_and_gradients(samples.batch());
  bool called = false;
  CHECK(backend->train(samples.batch(), [&](const std::vector<TensorView>& gradients) {
    called = true;
    REQUIRE(gradients.size() == backend->parameters().size());
    CHECK(gradients[0].name == "conv1.weight");
    const auto* first = static_cast<const double*>(gradients[0].data);
    CHECK(std::equal(oracle.gradients().begin(), oracle.gradients().end(), first));
    for (const TensorView& view : gradients)
      std::fill_n(static_cast<double*>(view.data), view.element_count(), 1.0);
  }) == loss);
  CHECK(called);
  const auto* w = static_cast<const double*>(backend->parameters()[0].data);
  for (std::size_t i = 0; i < oracle.parameter_count(); ++i)
    CHECK(w[i] == Approx(oracle.parameters()[i] - 0.5));
}

TEST_CASE("evaluate counts correct samples, sums losses and changes nothing") {
  const Samples samples(40, {1, 8, 8}, 4);
  const auto backend = make_backend<float>(tiny(), 1);
  Network<float> oracle(tiny(), 1);
  const std::span<const float> logits = oracle.forward(samples.batch());
  std::size_t correct = 0;
  double loss = 0;
  for (std::size_t i = 0; i < 40; ++i) {
    const std::span<const float> row = logits.subspan(i * 4, 4);
    const auto label = static_cast<std::size_t>(samples.labels[i]);
    correct +=
        static_cast<std::size_t>(std::max_element(row.begin(), row.end()) - row.begin()) == label;
    double sum = 0;
    for (const float z : row) sum += std::exp(z);
    loss += std::log(sum) - row[label];
  }
  for (int again = 0; again < 2; ++again) {
    const Evaluation result = backend->evaluate(samples.batch());
    CHECK(result.correct == correct);
    CHECK(result.loss_sum == Approx(loss).epsilon(1e-5));
  }
}

/// Logits w x + b of three samples of two values in two classes, by hand: with w = [[1, 0], [0, 1]]
/// and b = 0 the samples (2, 0), (0, 1), (1, 0) of classes 0, 1, 1 have logits of their own values.
TEST_CASE("a step tells its correct samples and the norm of its gradients, as computed by hand") {
  Samples samples(3, {2}, 2);
  samples.inputs = {2, 0, 0, 1, 1, 0};
  samples.labels = {0, 1, 1};
  const ModelSpec linear{"linear", {2}, {Dense{2}}};
  // Probabilities of class 0; the gradient of the mean loss is (p - y) / 3 for each sample.
  const auto p = [](double z) { return 1 / (1 + std::exp(-z)); };
  const double a = (p(2) - 1) / 3, b = p(-1) / 3, c = p(1) / 3;
  const double of_weights = 2 * (std::pow(2 * a + c, 2) + b * b);  // both rows, opposite signs
  const double norm = std::sqrt(of_weights + 2 * std::pow(a + b + c, 2));
  for (const BackendOptions& options :
       {BackendOptions{.optimizer = SgdOptions{0.5, 0, 0}},
        BackendOptions{.optimizer = SgdOptions{0.5, 0, 0}, .clip_norm = 1e-3},
        BackendOptions{.optimizer = SgdOptions{0.5, 0, 0}, .accumulate = 3},
        BackendOptions{.optimizer = SgdOptions{0.5, 0, 0}, .threads = 2}}) {
    const auto backend = make_backend<double>(linear, 1, options);
    CHECK_FALSE(backend->correct_in_step());
    CHECK_FALSE(backend->gradient_norm());
    const std::vector<double> identity{1, 0, 0, 1, 0, 0};
    std::copy(identity.begin(), identity.end(),
              static_cast<double*>(backend->parameters()[0].data));
    backend->train(samples.batch());
    CHECK(backend->correct_in_step() == 2);
    CHECK(backend->gradient_norm().value() == Approx(norm).epsilon(1e-12));
    backend->evaluate(samples.batch());
    CHECK(backend->correct_in_step() == 2);
    CHECK(backend->gradient_norm().value() == Approx(norm).epsilon(1e-12));
  }
}

TEST_CASE("several threads count the correct samples of the whole batch") {
  const Samples samples(83, {1, 8, 8}, 4);
  const auto one = make_backend<float>(tiny(), 8),
             three = make_backend<float>(tiny(), 8, {.threads = 3});
  const std::size_t correct = one->evaluate(samples.batch()).correct;
  one->train(samples.batch());
  three->train(samples.batch());
  CHECK(one->correct_in_step() == correct);
  CHECK(three->correct_in_step() == correct);
}

TEST_CASE("the same seed trains to the same bits") {
  const Samples samples(50, {1, 8, 8}, 4);
  const auto run = [&] {
    const auto backend = make_backend<float>(tiny(), 8);
    for (const std::size_t count : {32, 18, 32}) backend->train(samples.batch(0, count));
    return first_weight(*backend);
  };
  CHECK(run() == run());
}

TEST_CASE("a step on weights elsewhere is the step on its own, which stay as they were") {
  const Samples samples = halves(32);
  const auto trained = make_backend<float>(tiny(), 3), elsewhere = make_backend<float>(tiny(), 3);
  const ParameterLayout own(elsewhere->parameters()), of_trained(trained->parameters());
  REQUIRE(own.segments().size() == 1);
  const AlignedBuffer initial(own.size_bytes()), slot(own.size_bytes()), wanted(own.size_bytes());
  own.gather(initial.data());
  own.gather(slot.data());
  SlotStep* const step = elsewhere->in_slots();
  REQUIRE(step != nullptr);
  const std::span<float> weights = slot.as<float>().first(own.parameter_count());
  for (int t = 0; t < 3; ++t) {
    CHECK(trained->train(samples.batch()) == step->find_gradients(weights.data(), samples.batch()));
    CHECK(elsewhere->correct_in_step() == trained->correct_in_step());
    CHECK(elsewhere->gradient_norm() == trained->gradient_norm());
    const std::size_t half = weights.size() / 2;
    step->add_step(0, weights.data(), half);
    step->add_step(half, weights.data() + half, weights.size() - half);
    of_trained.gather(wanted.data());
    CHECK(std::equal(weights.begin(), weights.end(), wanted.as<float>().begin()));
  }
  own.gather(slot.data());
  CHECK(std::ranges::equal(slot.as<float>(), initial.as<float>()));
  CHECK(make_backend<float>(tiny_resnet(), 3)->in_slots() == nullptr);
}

TEST_CASE("momentum is handed out for checkpoints, and none without it") {
  const auto backend = make_backend<float>(tiny(), 8, {SgdOptions{0.1, 0.9, 0}});
  REQUIRE(backend->optimizer_state().size() == 1);
  CHECK(backend->optimizer_state()[0].element_count() == parameter_count(tiny()));
  CHECK(make_backend<float>(tiny(), 8, {SgdOptions{0.1, 0, 0}})->optimizer_state().empty());
}

TEST_CASE("a learning rate of zero stands still") {
  const Samples samples(8, {1, 8, 8}, 4);
  const auto backend = make_backend<float>(tiny(), 8);
  const float before = first_weight(*backend);
  backend->set_learning_rate(0);
  backend->train(samples.batch());
  CHECK(first_weight(*backend) == before);
  CHECK_THROWS_AS(backend->set_learning_rate(-1), Error);
}

TEST_CASE("Adam's state is two moments and the count of its steps") {
  const Samples samples(8, {1, 8, 8}, 4);
  const auto backend = make_backend<float>(tiny(), 8, {AdamOptions{}});
  backend->train(samples.batch());
  backend->train(samples.batch());
  const std::vector<TensorView> state = backend->optimizer_state();
  REQUIRE(state.size() == 3);
  CHECK(state[1].name == "adam.v");
  CHECK(state[1].element_count() == parameter_count(tiny()));
  CHECK(*static_cast<const std::int64_t*>(state[2].data) == 2);
}

TEST_CASE("a batch taken in parts gives the step of the whole batch") {
  const Samples samples(29, {1, 8, 8}, 4);
  const auto whole = make_backend<double>(tiny(), 8),
             parts = make_backend<double>(tiny(), 8, {.accumulate = 4});
  for (const std::size_t count : {29, 3, 1})
    CHECK(parts->train(samples.batch(0, count)) ==
          Approx(whole->train(samples.batch(0, count))).epsilon(1e-12));
  const auto* a = static_cast<const double*>(whole->parameters()[0].data);
  const auto* b = static_cast<const double*>(parts->parameters()[0].data);
  for (std::size_t i = 0; i < parameter_count(tiny()); ++i)
    CHECK(b[i] == Approx(a[i]).epsilon(1e-10).margin(1e-12));
}

TEST_CASE("gradients of a larger norm are scaled down to it, smaller ones left alone") {
  const Samples samples(6, {1, 8, 8}, 4);
  const std::size_t count = parameter_count(tiny());
  const auto stepped_by = [&](double gradient, double norm) {
    const auto backend =
        make_backend<double>(tiny(), 1, {.optimizer = SgdOptions{1, 0, 0}, .clip_norm = norm});
    const auto* w = static_cast<const double*>(backend->parameters()[0].data);
    const double before = w[3];
    backend->train(samples.batch(), [&](const std::vector<TensorView>& views) {
      std::fill_n(static_cast<double*>(views[0].data), count, gradient);
    });
    return before - w[3];
  };
  const double root = std::sqrt(static_cast<double>(count));
  CHECK(stepped_by(2, root) == Approx(1));
  CHECK(stepped_by(2, 2.01 * root) == Approx(2));
  CHECK(stepped_by(2, 0) == Approx(2));
  CHECK_THROWS_WITH(make_backend<float>(tiny(), 1, {.clip_norm = -1}),
                    ContainsSubstring("a norm of -1"));
  CHECK_THROWS_WITH(make_backend<float>(tiny(), 1, {.accumulate = 0}),
                    ContainsSubstring("in 0 parts"));
}

TEST_CASE("a small residual network learns, and evaluation leaves its running statistics alone") {
  const Samples train = halves(256), test = halves(64);
  for (const OptimizerSpec& optimizer :
       {OptimizerSpec(SgdOptions{0.05, 0.9, 1e-4, true}), OptimizerSpec(AdamOptions{0.01})}) {
    const auto backend = make_backend<float>(tiny_resnet(), 1, {optimizer});
    for (int epoch = 0; epoch < 25; ++epoch)
      for (std::size_t first = 0; first < 256; first += 32) backend->train(train.batch(first, 32));
    const std::vector<float> before = running_statistics(*backend);
    REQUIRE(before.size() == 2 * (4 * 3 + 6 * 3));
    CHECK(backend->evaluate(test.batch()).correct >= 58);
    CHECK(running_statistics(*backend) == before);
  }
}

TEST_CASE("neighbors average running statistics") {
  const Samples samples(64, {1, 8, 8}, 4);
  std::array<std::vector<float>, 2> initial, alone, together;
  local::run(2, [&](const Group& group) {
    const auto rank = static_cast<std::size_t>(group.rank());
    const Batch batch = samples.batch(32 * rank, 32);
    const auto single = make_backend<float>(tiny_resnet(), 1),
               backend = make_backend<float>(tiny_resnet(), 1);
    initial[rank] = running_statistics(*single);
    single->train(batch);
    alone[rank] = running_statistics(*single);
    WorkerOptions options;
    options.deadline = Seconds(30);
    options.weights = WeightRule::uniform_rows;
    Worker worker(group, stencil::complete(), backend->parameters(), options);
    worker.step([&] { return backend->train(batch); });
    together[rank] = running_statistics(*backend);
  });
  CHECK(alone[0] != alone[1]);
  for (std::size_t rank = 0; rank < 2; ++rank)  // own ones after the step, the other's before it
    for (std::size_t i = 0; i < alone[0].size(); ++i)
      REQUIRE(together[rank][i] ==
              Approx((alone[rank][i] + initial[1 - rank][i]) / 2).epsilon(1e-6).margin(1e-7));
}

TEST_CASE("several threads give one thread's step, and the same bits every time") {
  const Samples samples(83, {1, 8, 8}, 4);
  const auto weights_after = [&](int threads) {
    const auto backend = make_backend<double>(tiny(), 8, {.threads = threads});
    for (const std::size_t count : {83, 64, 7, 20}) {
      backend->train(samples.batch(0, count));
      backend->evaluate(samples.batch(0, count));
    }
    const auto* w = static_cast<const double*>(backend->parameters()[0].data);
    return std::vector<double>(w, w + parameter_count(tiny()));
  };
  const std::vector<double> alone = weights_after(1);
  for (const int threads : {2, 3, 16}) {
    const std::vector<double> found = weights_after(threads);
    for (int again = 0; again < 3; ++again) CHECK(weights_after(threads) == found);
    for (std::size_t i = 0; i < alone.size(); ++i)
      REQUIRE(found[i] == Approx(alone[i]).epsilon(1e-9).margin(1e-12));
  }
  CHECK_THROWS_WITH(make_backend<float>(tiny(), 8, {.threads = 0}), ContainsSubstring("0 threads"));
}

TEST_CASE("several threads evaluate as one, and average the running statistics of their parts") {
  const Samples samples(32, {1, 8, 8}, 4);
  const auto two = make_backend<float>(tiny_resnet(), 8, {.threads = 2});
  const auto one = make_backend<float>(tiny_resnet(), 8);
  CHECK(two->evaluate(samples.batch()).loss_sum ==
        Approx(one->evaluate(samples.batch()).loss_sum).epsilon(1e-6));
  const auto other = make_backend<float>(tiny_resnet(), 8);
  two->train(samples.batch());
  one->train(samples.batch(0, 16));
  other->train(samples.batch(16, 16));
  const auto found = running_statistics(*two), a = running_statistics(*one),
             b = running_statistics(*other);
  for (std::size_t i = 0; i < found.size(); ++i)
    REQUIRE(found[i] == Approx((a[i] + b[i]) / 2).epsilon(1e-5).margin(1e-7));
}
