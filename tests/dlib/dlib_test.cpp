#include <fast/core/layout.hpp>
#include <fast/core/random.hpp>
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
