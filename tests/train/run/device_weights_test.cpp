// Training whose weights are averaged on a device ends as training in host memory does.
#include <fast/exchange/local.hpp>
#include <fast/nn/backend.hpp>
#include <fast/topology/stencil.hpp>

#include "support/catch.hpp"
#include "support/device_backend.hpp"
#include "support/temporary_directory.hpp"
#include "train/training.hpp"

using namespace fast;
using namespace fast::testing;

namespace {

enum class Where { host, device, mixed };
using Change = std::function<void(train::TrainerOptions&)>;

std::vector<Trained> train_on(Where where, const std::string& algorithm, const Change& change,
                              bool on_device = true) {
  constexpr int workers = 3;
  std::vector<Trained> all(workers);
  local::run(workers, [&](const Group& group) {
    train::TrainerOptions options = trainer_options();
    options.worker.algorithm = algorithm::by_name(algorithm);
    change(options);
    auto backend = small_backend();
    DeviceBackend* device = nullptr;
    if (where == Where::device || (where == Where::mixed && group.rank() == 1)) {
      auto made = std::make_unique<DeviceBackend>(std::move(backend));
      device = made.get();
      backend = std::move(made);
    }
    const auto each_round = options.worker.on_round;
    options.worker.on_round = [&, each_round](std::int64_t round) {
      if (each_round) each_round(round);
      if (device != nullptr && device->mirrors() == on_device) throw std::runtime_error("where");
    };
    all[static_cast<std::size_t>(group.rank())] =
        train_small(group, stencil::ring(), options, *backend);
    if (device != nullptr && !device->mirrors()) throw std::runtime_error("no mirror is kept");
  });
  return all;
}

void check_same(const std::vector<Trained>& found, const std::vector<Trained>& expected) {
  for (std::size_t w = 0; w < found.size(); ++w) {
    const bool same_bits = found[w].mean_model == expected[w].mean_model;
    if (__builtin_cpu_supports("fma")) CHECK(same_bits);
    CHECK(found[w].summary.test_accuracy_mean_model ==
          Approx(expected[w].summary.test_accuracy_mean_model));
    CHECK(found[w].summary.consensus_distance ==
          Approx(expected[w].summary.consensus_distance).margin(1e-9));
  }
}

void nothing(train::TrainerOptions&) {}

}  // namespace

TEST_CASE("a Trainer averages on the device what is there, and ends with the host's bits") {
  for (const char* name : {"awc", "atc", "gossip_pga", "push_sum", "d2"}) {
    INFO(name);
    const auto expected = train_on(Where::host, name, nothing);
    check_same(train_on(Where::device, name, nothing), expected);
    check_same(train_on(Where::mixed, name, nothing), expected);
  }
}

TEST_CASE("messages of weights on a device are coded as those on the host") {
  const auto coded = [](train::TrainerOptions& options) {
    options.worker.codec = codec::by_name("int8");
  };
  const auto expected = train_on(Where::host, "awc", coded);
  check_same(train_on(Where::device, "awc", coded), expected);
  check_same(train_on(Where::mixed, "awc", coded), expected);
}

TEST_CASE("what a device does not do is averaged in its mirror") {
  check_same(train_on(Where::device, "choco", nothing, false),
             train_on(Where::host, "choco", nothing));
}

TEST_CASE("the best weights on a device are found by validation") {
  // Which ones they are hangs on when worker 0 looks, on the host, too.
  const auto validate = [](train::TrainerOptions& options) { options.validation = 0.2; };
  const auto found = train_on(Where::device, "awc", validate);
  const auto expected = train_on(Where::host, "awc", validate);
  for (const Trained& each : found) {
    CHECK(each.mean_model == found[0].mean_model);
    CHECK(each.summary.test_accuracy_mean_model ==
          Approx(expected[0].summary.test_accuracy_mean_model).margin(0.05));
  }
}

TEST_CASE("weights on a device are averaged over time and all-reduced as on the host") {
  const std::vector<Change> changes = {
      [](train::TrainerOptions& options) { options.ema_decay = 0.9; },
      [](train::TrainerOptions& options) { options.all_reduce = true; },
      [](train::TrainerOptions& options) { options.evaluate_every = 7; },
      [](train::TrainerOptions& options) { options.closing_rounds = 0; }};
  for (std::size_t k = 0; k < changes.size(); ++k) {
    INFO("change " << k);
    check_same(train_on(Where::device, "awc", changes[k]),
               train_on(Where::host, "awc", changes[k]));
  }
}

TEST_CASE("a run on a device is stopped and resumed, on the host or there, with the same bits") {
  for (const char* name : {"awc", "push_sum"}) {
    INFO(name);
    const auto whole = train_on(Where::host, name, nothing);
    for (const Where next : {Where::host, Where::device}) {
      const TemporaryDirectory directory;
      const auto cut = [&](train::TrainerOptions& options) {
        options.checkpoints.directory = directory.path();
        options.checkpoints.every_rounds = 25;
        options.worker.on_round = [](std::int64_t round) {
          if (round == 37) throw std::runtime_error("the power is cut");
        };
      };
      const auto resume = [&](train::TrainerOptions& options) {
        options.checkpoints.resume = directory.path();
      };
      CHECK_THROWS_WITH(train_on(Where::device, name, cut), ContainsSubstring("the power is cut"));
      check_same(train_on(next, name, resume), whole);
    }
  }
}
