#include <fast/core/random.hpp>
#include <fast/core/tensor_view.hpp>
#include <fast/data/loader.hpp>
#include <fast/data/synthetic.hpp>
#include <fast/dlib/backend.hpp>
#include <fast/exchange/local.hpp>
#include <fast/testing/conformance.hpp>
#include <fast/topology/stencil.hpp>

#include "backends/backends.hpp"
#include "support/catch.hpp"

namespace {

using Small = dlib::loss_multiclass_log<
    dlib::fc<4, dlib::relu<dlib::fc<12, dlib::input<dlib::matrix<float>>>>>>;

std::unique_ptr<fast::Backend> small(std::uint64_t seed) {
  return std::make_unique<fast::dlib::Classifier<Small, dlib::sgd>>(
      nullptr, std::vector<std::int64_t>{16}, dlib::sgd(0, 0.9F), 0.05,
      [seed](const std::vector<fast::TensorView>& layers) {
        fast::Rng rng(seed);
        for (const fast::TensorView& layer : layers)
          for (std::size_t i = 0; i < layer.element_count(); ++i)
            static_cast<float*>(layer.data)[i] = 0.2F * static_cast<float>(rng.normal());
      });
}

using Column = dlib::input<dlib::matrix<float>>;

/// All weights 0.
template <class Net>
std::unique_ptr<fast::dlib::Model<Net, dlib::sgd>> from_zero(std::vector<std::int64_t> shape,
                                                             double rate,
                                                             fast::dlib::Task<Net> task = {}) {
  const auto clear = [](const std::vector<fast::TensorView>& layers) {
    for (const fast::TensorView& layer : layers)
      std::fill_n(static_cast<float*>(layer.data), layer.element_count(), 0.0F);
  };
  return std::make_unique<fast::dlib::Model<Net, dlib::sgd>>(
      nullptr, std::move(shape), dlib::sgd(0, 0), rate, clear, std::move(task));
}

/// A loss layer that dlib does not have: the pinball loss of the quantile 3/4, of one output.
struct PinballLayer {
  using training_label_type = float;
  using output_label_type = float;

  template <class Labels, class Below>
  double compute_loss_value_and_gradient(const dlib::tensor&, Labels truth, Below& below) const {
    const dlib::tensor& outputs = below.get_output();
    float* gradient = below.get_gradient_input().host_write_only();
    const float share = 1 / static_cast<float>(outputs.num_samples());
    double loss = 0;
    for (long i = 0; i < outputs.num_samples(); ++i, ++truth) {
      const float above = *truth - outputs.host()[i];
      loss += double{share} * (above > 0 ? 0.75 : -0.25) * double{above};
      gradient[i] = above > 0 ? -0.75F * share : 0.25F * share;
    }
    return loss;
  }
  template <class Below, class Labels>
  void to_label(const dlib::tensor&, const Below& below, Labels to) const {
    for (long i = 0; i < below.get_output().num_samples(); ++i)
      *to++ = below.get_output().host()[i];
  }
  friend void serialize(const PinballLayer&, std::ostream&) {}
  friend void deserialize(PinballLayer&, std::istream&) {}
  friend std::ostream& operator<<(std::ostream& out, const PinballLayer&) {
    return out << "pinball";
  }
  friend void to_xml(const PinballLayer&, std::ostream&) {}
};
using Pinball = dlib::add_loss_layer<PinballLayer, dlib::fc<1, Column>>;

}  // namespace

TEST_CASE("dlib's nets pass the suite") {
  const auto report = fast::testing::check_backend(small, {});
  INFO(report.to_text());
  CHECK(report.passed());
  CHECK(report.backend == "dlib");
}

TEST_CASE("losses of LeNet and of an MLP on dlib are those of nn") {
  fast::data::Loader loader(fast::data::synthetic_classification(640, {1, 28, 28}, 10, 3, 2.0), {},
                            1, 0, 64, 1);
  // dlib counts no sample's loss beyond 23: a small rate
  const fast::nn::BackendOptions options{fast::nn::SgdOptions{0.001, 0.9, 0}};
  for (const auto& spec : {fast::nn::lenet5(), fast::nn::mlp({784, 256, 10})}) {
    const auto own = fast::nn::make_backend<float>(spec, 7, options);
    const auto other = backends::make_dlib(spec, 7, options);
    for (std::size_t step = 0; step < 10; ++step) {
      const fast::Batch& batch = loader.batch(0, step);
      const double expected = own->train(batch);
      INFO(spec.name << ", step " << step);
      REQUIRE(other->train(batch) == Approx(expected).epsilon(1e-4));
    }
  }
}

TEST_CASE("a net without parameters yet, one that lost some and one that moved are refused") {
  Small net;
  CHECK_THROWS_WITH(fast::dlib::Replica<Small>(net), ContainsSubstring("run a sample through it"));
  const dlib::matrix<float> sample = dlib::zeros_matrix<float>(16, 1);
  net(sample);
  const fast::dlib::Replica<Small> replica(net);
  CHECK(fast::ParameterLayout(replica.parameters()).parameter_count() == 17 * 12 + 13 * 4);
  replica.sync();
  Small other;
  other(sample);
  net = other;
  CHECK_THROWS_WITH(replica.sync(), ContainsSubstring("have moved"));
  net = Small();
  CHECK_THROWS_WITH(replica.sync(), ContainsSubstring("0 layers have parameters, 2 had"));
}

TEST_CASE("two lines make a loop decentralized") {
  std::vector<float> found(3);
  fast::local::run(3, [&](const fast::Group& group) {
    using Line = dlib::loss_mean_squared<dlib::fc<1, dlib::input<dlib::matrix<float>>>>;
    Line line;
    std::vector<dlib::matrix<float>> xs;
    std::vector<float> ys;
    for (int i = 0; i < 16; ++i) {
      xs.push_back(dlib::uniform_matrix<float>(1, 1, static_cast<float>(i) / 8 - 1));
      ys.push_back(3 * xs.back()(0) + static_cast<float>(group.rank()));  // intercepts 0, 1, 2
    }
    line(xs.front());
    std::vector<dlib::sgd> solvers(Line::num_computational_layers, dlib::sgd(0, 0));
    dlib::resizable_tensor inputs;
    line.to_tensor(xs.begin(), xs.end(), inputs);
    fast::WorkerOptions options;
    options.deadline = fast::Seconds(60);
    fast::dlib::Worker worker(group, fast::stencil::ring(), line, options);
    for (int step = 0; step < 300; ++step)
      worker.step([&] {
        const double loss = line.compute_parameter_gradients(inputs, ys.begin());
        line.update_parameters(dlib::make_sstack(solvers), step < 200 ? 0.1 : 0.002);
        return loss;
      });
    found[static_cast<std::size_t>(group.rank())] =
        static_cast<const float*>(worker.replica().parameters()[0].data)[1];
    worker->await_finish();
  });
  for (const float bias : found) CHECK(bias == Approx(1).margin(0.05));
}

TEST_CASE("what dlib has not is refused with what has it") {
  using fast::nn::lenet5;
  CHECK_THROWS_WITH(backends::make_dlib(fast::nn::resnet20(), 1),
                    ContainsSubstring("no model resnet20; choose lenet, mlp"));
  CHECK_THROWS_WITH(backends::make_dlib(fast::nn::mlp({784, 256, 64, 10}), 1),
                    ContainsSubstring("no model mlp 784-256-64-10"));
  CHECK_THROWS_WITH(backends::make_dlib(lenet5(), 1, {.threads = 2}),
                    ContainsSubstring("choose nn or torch"));
  CHECK_THROWS_WITH(backends::make_dlib(lenet5(), 1, {fast::nn::SgdOptions{0.1, 0.9, 0, true}}),
                    ContainsSubstring("Nesterov"));
}

TEST_CASE("a regression of dlib finds the least squares lines, measured as a hand does") {
  // Over x = 0, 1, 2, 3: t = 1, 3, 2, 5 has the line 1.1 x + 1.1, and 2 x - 1 is a line itself.
  const std::vector<float> inputs{0, 1, 2, 3}, one{1, 3, 2, 5}, two{1, -1, 3, 1, 2, 3, 5, 5};
  const auto line = from_zero<dlib::loss_mean_squared<dlib::fc<1, Column>>>({1}, 0.2);
  const auto lines = from_zero<dlib::loss_mean_squared_multioutput<dlib::fc<2, Column>>>({1}, 0.2);
  const fast::Evaluation before = line->evaluate({inputs, {}, {1}, one, {}});
  CHECK(before.loss_sum == Approx(1 + 9 + 4 + 25));
  CHECK(before.measures.at(0).value() == Approx(11 / 4.0));
  CHECK(before.measures.at(1).value() == Approx(std::sqrt(39 / 4.0)));
  for (int step = 0; step < 1000; ++step) {
    line->train({inputs, {}, {1}, one, {}}, {});
    lines->train({inputs, {}, {1}, two, {2}}, {});
  }
  const auto* found = static_cast<const float*>(line->parameters()[0].data);
  CHECK(found[0] == Approx(1.1).margin(1e-3));
  CHECK(found[1] == Approx(1.1).margin(1e-3));
  found = static_cast<const float*>(lines->parameters()[0].data);
  for (const float expected : {1.1F, 2.0F, 1.1F, -1.0F})
    CHECK(*found++ == Approx(expected).margin(1e-3));
  CHECK_FALSE(line->correct_in_step());
  CHECK_THROWS_WITH(line->train({inputs, {}, {1}, two, {2}}, {}),
                    ContainsSubstring("2 targets a sample"));
}

TEST_CASE("a loss layer of one's own finds the quantile, with a measure of one's own") {
  // Of 1 to 8, the pinball loss of 3/4 is least between 6 and 7, where it is 6/8.
  const std::vector<float> inputs(8), targets{8, 1, 7, 2, 6, 3, 5, 4};
  const fast::Batch batch{inputs, {}, {1}, targets, {}};
  fast::dlib::Task<Pinball> task;
  task.measures = [](const dlib::tensor& outputs, const fast::Batch& of) {
    double below = 0;
    for (std::size_t i = 0; i < of.count(); ++i)
      below += of.targets[i] <= outputs.host()[i] ? 1 : 0;
    return std::vector<fast::Measure>{
        {"covered", fast::Measure::Form::share, {below, static_cast<double>(of.count())}}};
  };
  const auto net = from_zero<Pinball>({1}, 0.05, task);
  CHECK(net->evaluate(batch).loss_sum == Approx(0.75 * 36));
  for (int step = 0; step < 2000; ++step) net->train(batch, {});
  const fast::Evaluation found = net->evaluate(batch);
  CHECK(found.loss_sum == Approx(6).epsilon(0.01));
  REQUIRE(found.measures.size() == 1);
  CHECK(found.measures[0].value() == Approx(0.75).margin(0.126));
}

TEST_CASE("a net of dlib learns a label for each step") {
  // A step of two values has the class of the larger one: a convolution over a step suffices.
  using Logits = dlib::add_layer<dlib::con_<2, 1, 2, 1, 1, 0, 0>, Column>;  // without padding
  using Steps = dlib::loss_multiclass_log_per_pixel<Logits>;
  fast::Rng rng(3);
  std::vector<float> inputs(40 * 5 * 2);
  std::vector<std::int32_t> labels;
  for (float& value : inputs) value = static_cast<float>(rng.normal());
  for (std::size_t i = 0; i < inputs.size(); i += 2)
    labels.push_back(inputs[i] > inputs[i + 1] ? 0 : 1);
  const fast::Batch batch{inputs, labels, {5, 2}, {}, {5}};
  const auto net = from_zero<Steps>({5, 2}, 1);
  CHECK(net->evaluate(batch).loss_sum == Approx(40 * std::log(2)).epsilon(1e-4));
  for (int step = 0; step < 300; ++step) net->train(batch, {});
  const fast::Measure accuracy = net->evaluate(batch).measures.at(0);
  CHECK(accuracy.name == "accuracy");
  CHECK(accuracy.sums.at(1) == 200);
  CHECK(accuracy.value() > 0.97);
  labels[7] = 2;
  CHECK_THROWS_WITH(net->train(batch, {}), ContainsSubstring("a label of 2"));
  const std::vector<std::int32_t> few(40 * 4);
  CHECK_THROWS_WITH(net->train({inputs, few, {5, 2}, {}, {4}}, {}),
                    ContainsSubstring("4 labels a sample, the net has outputs at 5 places"));
}
