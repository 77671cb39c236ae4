#include "train/run/weight_storage.hpp"

#include <fast/core/tensor_view.hpp>
#include <fast/data/loader.hpp>

#include "support/catch.hpp"
#include "support/device_backend.hpp"
#include "train/run/run_parts.hpp"

using namespace fast;
using namespace fast::testing;

namespace {

std::vector<double> packed(Backend& backend) {
  const ParameterLayout layout(backend.parameters());
  std::vector<double> values(layout.size_bytes() / sizeof(double));
  layout.gather(reinterpret_cast<std::byte*>(values.data()));
  return values;
}

}  // namespace

TEST_CASE("weights live on a device where it can average them, else in the model's memory") {
  DeviceBackend backend(small_backend());
  train::TrainerOptions options = trainer_options();
  CHECK(train::weights_home(options, backend)->accelerator() != nullptr);
  options.worker.algorithm = algorithm::by_name("choco");
  CHECK(train::weights_home(options, backend)->accelerator() == nullptr);
  const auto on_host = small_backend();
  options = trainer_options();
  const auto home = train::weights_home(options, *on_host);
  CHECK(home->accelerator() == nullptr);
  CHECK(home->tensors().front().data == on_host->parameters().front().data);
}

TEST_CASE("weights on a device are downloaded and uploaded, and have a mirror afterwards") {
  DeviceBackend backend(small_backend());
  auto home = train::device_weights(backend);
  home->accelerator();
  CHECK_FALSE(backend.mirrors());
  const auto before = packed(backend);
  auto* first = static_cast<double*>(backend.parameters().front().data);
  first[0] = 42;
  home->download();
  CHECK(packed(backend) == before);
  first[0] = 42;
  home->upload();
  first[0] = 0;
  home->download();
  CHECK(first[0] == 42);
  home.reset();
  CHECK(backend.mirrors());
}

TEST_CASE("weights in slots come to the model's memory by a download, and at the end") {
  local::run(2, [](const Group& group) {
    const auto backend = small_backend();
    train::TrainerOptions options = trainer_options();
    options.arena = train::Arena::rotating;
    const auto home = train::weights_home(options, *backend);
    Worker worker(group, stencil::ring(), home->tensors(), train::worker_options(options));
    train::TrainingStep step(*backend, {}, group.rank(), nullptr, 16);
    data::Loader loader(made_up_data().train, {}, 16);
    const auto initial = packed(*backend);
    home->download();
    const bool unchanged = packed(*backend) == initial;
    home->round(worker, step, loader.batch(0, 0), {.learning_rate = 0.1});
    const bool still_unchanged = packed(*backend) == initial;
    home->download();
    const auto trained = packed(*backend);
    home->finish(worker);
    home->download();
    const bool is_final = packed(*backend) == trained;
    if (!unchanged || !still_unchanged || trained == initial || !is_final)
      throw std::runtime_error("the weights are not where they should be");
  });
}
