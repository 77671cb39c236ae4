#include <fast/cuda/accelerator.hpp>
#include <fast/data/synthetic.hpp>
#include <fast/nn/cuda/backend.hpp>
#include <fast/train/trainer.hpp>
#include <fast/worker/device_replica.hpp>

#include "worker/device_rounds.hpp"

using namespace fast;
using namespace fast::testing;

namespace {

std::shared_ptr<Accelerator> on_card(int) { return cuda::accelerator(0, Seconds(30)); }

/// A backend of which nobody knows that its weights are on a card.
class Mirrored final : public Backend {
 public:
  explicit Mirrored(std::unique_ptr<Backend> inner) : inner_(std::move(inner)) {}
  std::string name() const override { return inner_->name(); }
  std::vector<TensorView> parameters() override { return inner_->parameters(); }
  double train(const Batch& batch, const GradientHook& hook) override {
    return inner_->train(batch, hook);
  }
  Evaluation evaluate(const Batch& batch) override { return inner_->evaluate(batch); }
  void set_learning_rate(double rate) override { inner_->set_learning_rate(rate); }

 private:
  std::unique_ptr<Backend> inner_;
};

/// What worker 0 of two is left with.
std::vector<float> trained(bool on_device) {
  const data::Dataset all = data::synthetic_classification(1200, {16}, 4, 7);
  const data::Splits splits{all.slice(0, 960), all.slice(960, 240), {}};
  std::vector<float> values;
  local::run(2, [&](const Group& group) {
    auto backend = cuda::make_backend(nn::mlp({16, 24, 4}), 5);
    CHECK(dynamic_cast<DeviceReplica*>(backend.get()) != nullptr);
    if (!on_device) backend = std::make_unique<Mirrored>(std::move(backend));
    train::TrainerOptions options;
    options.epochs = 2;
    options.batch_size = 16;
    options.progress = false;
    options.worker.deadline = Seconds(30);
    train::train(group, stencil::ring(), *backend, splits, options);
    if (group.rank() != 0) return;
    for (const TensorView& view : backend->parameters()) {
      const auto* first = static_cast<const float*>(view.data);
      values.insert(values.end(), first, first + view.element_count());
    }
  });
  return values;
}

}  // namespace

TEMPLATE_TEST_CASE("workers on one card go the rounds of workers on the host, bit for bit", "",
                   float, double, BFloat16, Float16, Mixed) {
  const int workers = GENERATE(2, 4);
  check_device_rounds<TestType>(on_card, workers);
}

TEST_CASE("workers on a card and on the host average with each other") {
  check_device_rounds<float>([](int rank) { return rank % 2 == 1 ? on_card(rank) : nullptr; }, 3);
}

TEST_CASE("a Trainer averages on the card as in the mirror") {
  const auto found = trained(true), expected = trained(false);
  REQUIRE(found.size() == expected.size());
  for (std::size_t e = 0; e < found.size(); ++e) {
    REQUIRE(found[e] == Approx(expected[e]).epsilon(1e-4).margin(1e-5));
  }
}
