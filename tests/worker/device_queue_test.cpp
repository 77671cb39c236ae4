// Rounds of a worker whose step only enqueues its work on a device: the outcome in every order that
// the device may do it in, and what a round asks of the device.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <fast/core/error.hpp>
#include <limits>
#include <thread>

#include "exchange/device/image.hpp"
#include "support/catch.hpp"
#include "support/golden.hpp"
#include "support/host_accelerator.hpp"
#include "worker/device_rounds.hpp"

using namespace fast;
using namespace fast::testing;

namespace {

constexpr Sharing mapped{.on_host = true, .on_all = true};

/// Tensors on a device, and a step that is enqueued in a queue of the program.
class QueuedModel {
 public:
  explicit QueuedModel(int rank, const std::shared_ptr<HostAccelerator>& accelerator)
      : accelerator_(accelerator),
        queue_(accelerator->program_queue()),
        model_(rank, accelerator) {}

  std::vector<TensorView> views() { return model_.views(); }
  void* queue() const { return queue_.get(); }
  /// As DeviceModel::step().
  void step(int round, int rank) {
    queue_->enqueue([views = views(), round, rank] {
      Rng rng(mix_seed(7, static_cast<std::uint64_t>(round), static_cast<std::uint64_t>(rank)));
      for (const TensorView& view : views) {
        auto* values = static_cast<float*>(view.data);
        for (std::size_t e = 0; e < view.element_count(); ++e)
          values[e] -= static_cast<float>(0.1 * (static_cast<double>(values[e]) - rng.normal()));
      }
    });
  }
  /// A step whose result is not finite.
  void spoil() {
    queue_->enqueue([views = views()] {
      static_cast<float*>(views[1].data)[5] = std::numeric_limits<float>::quiet_NaN();
    });
  }
  std::vector<double> values() {
    queue_->settle();
    return model_.values();
  }

 private:
  std::shared_ptr<HostAccelerator> accelerator_;
  std::shared_ptr<HostDeviceWork> queue_;
  DeviceModel<float> model_;
};

enum class Tells { queue, nothing };

struct QueuedCase {
  std::string name;
  DeviceSetting setting;
  Sharing sharing;
  Tells tells = Tells::queue;
  bool heals = false;
  std::optional<Accelerator::Order> forgets{};
  bool is_counted = false;
};

struct QueuedRun {
  std::vector<std::vector<double>> values;  ///< by worker, after its last round
  DeviceCounts counts;                      ///< of worker 0, at its end
};

/// Above staleness 0 in turn. `flushes`: all then read the same, which needs looks at the others.
void end_queued(Worker& worker, const Group& group, const DeviceSetting& setting,
                const StepOptions& step, bool flushes = true) {
  if (setting.staleness == 0) return worker.end_round(step);
  if (flushes) return end_in_turn(worker, group, step);
  for (int turn = 0; turn < group.size(); ++turn) {
    if (turn == group.rank()) worker.end_round(step);
    group.barrier(Deadline(Seconds(30)), "a worker's turn");
  }
}

QueuedRun queued_run(const QueuedCase& of, int workers, int rounds, std::uint64_t seed) {
  QueuedRun found;
  found.values.resize(static_cast<std::size_t>(workers));
  local::run(workers, [&](const Group& group) {
    const int rank = group.rank();
    const auto device = std::make_shared<HostAccelerator>(
        of.sharing, 4 << 20, seed == 0 ? 0 : mix_seed(seed, static_cast<std::uint64_t>(rank)));
    device->forgets = of.forgets;
    QueuedModel model(rank, device);
    WorkerOptions options = device_options(of.setting, device, {});
    if (of.heals) options.not_finite = NotFinite::heal;
    StepOptions step{.learning_rate = 0.1};
    if (of.tells == Tells::queue) step.queue = model.queue();
    {
      Worker worker(group, device_topology(of.setting.algorithm, workers), model.views(), options);
      for (int round = 0; round < rounds; ++round) {
        worker.begin_round();
        model.step(round, rank);
        end_queued(worker, group, of.setting, step, !of.is_counted);
      }
      found.values[static_cast<std::size_t>(rank)] = model.values();
    }
    if (rank == 0) found.counts = device->simulated().counts();
  });
  return found;
}

std::vector<std::vector<double>> queued_on_host(const DeviceSetting& setting, int workers) {
  std::vector<std::vector<double>> found(static_cast<std::size_t>(workers));
  local::run(workers, [&](const Group& group) {
    DeviceModel<float> model(group.rank(), nullptr);
    Worker worker(group, device_topology(setting.algorithm, workers), model.views(),
                  device_options(setting, nullptr, {}));
    for (int round = 0; round < device_round_count; ++round) {
      worker.begin_round();
      model.step(round, group.rank());
      end_queued(worker, group, setting, {.learning_rate = 0.1});
    }
    found[static_cast<std::size_t>(group.rank())] = model.values();
  });
  return found;
}

/// Of one round of worker 0, in the middle of training.
DeviceCounts counts_of_a_round(QueuedCase of) {
  of.is_counted = true;
  constexpr int fewer = 6, more = 7;
  return queued_run(of, 2, more, 0).counts - queued_run(of, 2, fewer, 0).counts;
}

/// Of a message whose parameters have elements of that size. Buffers begin a cache line.
std::size_t queued_bytes(std::size_t element_bytes) {
  const std::size_t parameters = 2051 + 37, buffers = 9;
  return round_up(parameters * element_bytes, cache_line_bytes) + buffers * sizeof(float);
}

std::string line_of(const std::string& name, const DeviceCounts& of) {
  return fmt::format("{:34} {:6} {:6} {:9} {:7} {:11} {:7}", name, of.waits, of.waits_beside,
                     of.launches - 1, of.copies, of.host_bytes, of.orders);
}

}  // namespace

TEST_CASE("a round follows a step that was only enqueued, in every order the device may choose") {
  const int workers = GENERATE(1, 2, 3);
  for (const DeviceSetting& setting : std::vector<DeviceSetting>{{"awc"},
                                                                 {"awc", {}, "bf16"},
                                                                 {"awc", {}, "identity", 1},
                                                                 {"awc", {}, "bf16", 1},
                                                                 {"atc"},
                                                                 {"atc", {}, "identity", 1},
                                                                 {"gradient_tracking"},
                                                                 {"gossip_pga", {{"period", "3"}}},
                                                                 {"local", {{"period", "2"}}}}) {
    const auto expected = queued_on_host(setting, workers);
    for (const Sharing& sharing : {mapped, Sharing{}}) {
      for (const std::uint64_t seed : {0, 1, 2, 3}) {
        INFO(text_of(setting) << ", " << workers << " workers, seed " << seed
                              << (sharing.on_host ? ", mapped" : ", staged"));
        const QueuedRun found =
            queued_run({"", setting, sharing}, workers, device_round_count, seed);
        if (host_fuses()) CHECK(found.values == expected);
      }
    }
  }
}

TEST_CASE(
    "without one of the orders between the queues the outcome is wrong in some order of work") {
  const DeviceSetting setting{"awc"};
  const auto expected = queued_on_host(setting, 2);
  using Order = Accelerator::Order;
  for (const Order missing : {Order::after, Order::before}) {
    int wrong = 0;
    for (const std::uint64_t seed : {0, 1, 2, 3, 4, 5, 6, 7}) {
      const QueuedCase forgetful{"", setting, mapped, Tells::queue, false, missing};
      if (queued_run(forgetful, 2, device_round_count, seed).values != expected) ++wrong;
    }
    INFO((missing == Order::after ? "after" : "before") << ": " << wrong << " of 8 are wrong");
    CHECK(wrong > 0);
  }
}

TEST_CASE("what a round asks of a device") {
  const auto check = [](const QueuedCase& of, const DeviceCounts& expected) {
    INFO(of.name);
    const DeviceCounts found = counts_of_a_round(of);
    fmt::print("{}\n", line_of(of.name, found));
    CHECK(found.launches - 1 == expected.launches);  // the step is one
    CHECK(found.copies == expected.copies);
    CHECK(found.host_bytes == expected.host_bytes);
    CHECK(found.waits == expected.waits);
    CHECK(found.waits_beside == expected.waits_beside);
    CHECK(found.orders == expected.orders);
  };
  const DeviceSetting awc{"awc"}, atc{"atc"}, bf16{"awc", {}, "bf16"};
  const Sharing staged{};
  const std::size_t model = queued_bytes(4);
  fmt::print("{:34} {:>6} {:>6} {:>9} {:>7} {:>11} {:>7}\n", "a round of 2 workers, 3 tensors",
             "waits", "beside", "launches", "copies", "host bytes", "orders");
  using C = DeviceCounts;
  check({"awc", awc, mapped}, C{.launches = 1, .waits_beside = 2, .orders = 2});
  check({"awc, no queue named", awc, mapped, Tells::nothing},
        C{.launches = 1, .waits = 2, .waits_beside = 2});
  check({"awc, heals", awc, mapped, Tells::queue, true},
        C{.launches = 2, .copies = 1, .host_bytes = 8, .waits_beside = 2, .orders = 2});
  check({"atc", atc, mapped}, C{.launches = 2, .waits_beside = 2, .orders = 2});
  // Buffers, which stay f32, are a launch of their own.
  check({"awc, bf16", bf16, mapped}, C{.launches = 2, .waits_beside = 2, .orders = 2});
  check({"gradient_tracking", {"gradient_tracking"}, mapped},
        C{.launches = 2, .waits_beside = 2, .orders = 2});
  // Its weights are beside the message.
  check({"push_sum", {"push_sum"}, mapped}, C{.launches = 2, .waits_beside = 2, .orders = 2});
  check({"awc, staged", awc, staged},
        C{.launches = 1, .copies = 2, .host_bytes = 2 * model, .waits_beside = 4, .orders = 2});
  const DeviceSetting awc1{"awc", {}, "identity", 1}, atc1{"atc", {}, "identity", 1};
  check({"awc, staleness 1", awc1, mapped},
        C{.launches = 1, .copies = 1, .waits_beside = 3, .orders = 2});
  check({"atc, staleness 1", atc1, mapped},
        C{.launches = 2, .copies = 1, .waits_beside = 3, .orders = 2});
  check({"awc, staged, staleness 1", awc1, staged},
        C{.launches = 1, .copies = 2, .host_bytes = 2 * model, .waits_beside = 4, .orders = 2});
}

TEST_CASE("a worker whose wait was ended finishes, though its neighbor is still in its step") {
  struct Asked {};
  for (const DeviceSetting& setting :
       std::vector<DeviceSetting>{{"atc"}, {"atc", {}, "int8"}, {"gradient_tracking"}, {"d2"}}) {
    INFO(text_of(setting));
    std::atomic<bool> finished = false, in_time = false;
    local::run(2, [&](const Group& group) {
      const bool stops = group.rank() == 0;
      const auto device = std::make_shared<HostAccelerator>(mapped);
      QueuedModel model(group.rank(), device);
      WorkerOptions options = device_options(setting, device, {});
      options.deadline = Seconds(60);
      Worker worker(group, stencil::ring(), model.views(), options);
      for (int round = 0; round < 4; ++round) {
        const bool is_last = round == 3;
        worker.begin_round();
        model.step(round, group.rank());
        const Deadline deadline(Seconds(20));
        while (is_last && !stops && !finished && !deadline.expired()) std::this_thread::yield();
        if (is_last && !stops) in_time = finished.load();
        const auto end = [&] { worker.end_round({.learning_rate = 0.1, .queue = model.queue()}); };
        if (!is_last || !stops) {
          end();
          continue;
        }
        try {
          const WaitCheck check([] { throw Asked(); });
          end();
          fail(ErrorKind::internal, "the wait was not ended");
        } catch (const Asked&) {
        }
        worker.finish();
        finished = true;
      }
      worker.await_finish();
    });
    CHECK(in_time);
  }
}

TEST_CASE("a mean model is read from the devices while training goes on") {
  for (const std::uint64_t seed : {0, 1}) {
    std::vector<std::vector<double>> means(3), values(3);
    local::run(3, [&](const Group& group) {
      const auto rank = static_cast<std::size_t>(group.rank());
      const auto device =
          std::make_shared<HostAccelerator>(mapped, 4 << 20, seed == 0 ? 0 : mix_seed(seed, rank));
      QueuedModel model(group.rank(), device);
      const DeviceSetting setting{"awc"};
      Worker worker(group, stencil::ring(), model.views(), device_options(setting, device, {}));
      for (int round = 0; round < 3; ++round) {
        worker.begin_round();
        model.step(round, group.rank());
        worker.end_round({.learning_rate = 0.1, .queue = model.queue()});
      }
      values[rank] = model.values();
      worker.consensus_distance();  // flushes
      group.barrier(Deadline(Seconds(30)), "a test's mean");
      const DeviceCounts before = device->simulated().counts();
      DeviceModel<float> mean(-1, nullptr);
      worker.mean_model(mean.views());
      means[rank] = mean.values();
      const DeviceCounts asked = device->simulated().counts() - before;
      require(asked.host_bytes >= 3 * 2088 * sizeof(float), ErrorKind::internal,
              "{} bytes were read", asked.host_bytes);
      group.barrier(Deadline(Seconds(30)), "a test's mean");
    });
    for (std::size_t e = 0; e < values[0].size(); ++e) {
      const double sum = double{values[0][e]} + double{values[1][e]} + double{values[2][e]};
      REQUIRE(means[0][e] == Approx(sum / 3).epsilon(1e-6).margin(1e-6));
    }
    CHECK(means[1] == means[0]);
    CHECK(means[2] == means[0]);
  }
}

namespace {

constexpr int spoiled_round = 3, spoiled_rank = 1;

struct HealedRun {
  std::vector<std::vector<double>> values;  ///< by worker
  std::vector<std::int64_t> healed;

  bool operator==(const HealedRun&) const = default;
};

WorkerOptions healing(const DeviceSetting& setting, std::shared_ptr<Accelerator> device) {
  WorkerOptions options = device_options(setting, std::move(device), {});
  options.not_finite = NotFinite::heal;
  return options;
}

/// `step(round, rank, spoils)` makes a step, and `end(worker)` a round's end.
template <class Model, class Step>
void heal_rounds(const Group& group, const DeviceSetting& setting, Model& model,
                 const WorkerOptions& options, const StepOptions& ends, const Step& step,
                 HealedRun& found) {
  const auto rank = static_cast<std::size_t>(group.rank());
  Worker worker(group, device_topology(setting.algorithm, group.size()), model.views(), options);
  for (int round = 0; round < 8; ++round) {
    worker.begin_round();
    step(round, round == spoiled_round && group.rank() == spoiled_rank);
    worker.end_round(ends);
  }
  worker.await_finish();
  found.values[rank] = model.values();
  found.healed[rank] = worker.stats().healed;
}

HealedRun healed_run(const DeviceSetting& setting, int workers, bool on_device,
                     std::uint64_t seed) {
  const auto count = static_cast<std::size_t>(workers);
  HealedRun found{std::vector<std::vector<double>>(count), std::vector<std::int64_t>(count)};
  local::run(workers, [&](const Group& group) {
    const int rank = group.rank();
    if (!on_device) {
      DeviceModel<float> model(rank, nullptr);
      const auto step = [&](int round, bool spoils) {
        model.step(round, rank);
        if (spoils)
          static_cast<float*>(model.views()[1].data)[5] = std::numeric_limits<float>::quiet_NaN();
      };
      return heal_rounds(group, setting, model, healing(setting, nullptr), {.learning_rate = 0.1},
                         step, found);
    }
    const auto device = std::make_shared<HostAccelerator>(
        mapped, 4 << 20, seed == 0 ? 0 : mix_seed(seed, static_cast<std::uint64_t>(rank)));
    QueuedModel model(rank, device);
    const auto step = [&](int round, bool spoils) {
      model.step(round, rank);
      if (spoils) model.spoil();
    };
    heal_rounds(group, setting, model, healing(setting, device),
                {.learning_rate = 0.1, .queue = model.queue()}, step, found);
  });
  return found;
}

}  // namespace

TEST_CASE("a step whose values are not finite is left out on a device as on the host") {
  const int workers = GENERATE(2, 3);
  for (const DeviceSetting& setting : std::vector<DeviceSetting>{{"awc"},
                                                                 {"awc", {}, "bf16"},
                                                                 {"atc"},
                                                                 {"pairwise"},
                                                                 {"local", {{"period", "2"}}},
                                                                 {"local", {{"period", "3"}}},
                                                                 {"decentlam"},
                                                                 {"gradient_tracking"}}) {
    const HealedRun expected = healed_run(setting, workers, false, 0);
    CHECK(expected.healed[spoiled_rank] == 1);
    for (const std::uint64_t seed : {0, 1, 2, 3}) {
      INFO(text_of(setting) << ", " << workers << " workers, seed " << seed);
      const HealedRun found = healed_run(setting, workers, true, seed);
      CHECK(found.healed == expected.healed);
      if (host_fuses()) CHECK(found.values == expected.values);
    }
  }
}

namespace {

/// Worker 0 has a step that is not finite, and the wait of its round is ended: worker 1 is a round
/// behind. `goes_on`: it then makes the round, else it finishes.
HealedRun ended_run(const DeviceSetting& setting, const std::optional<Sharing>& sharing,
                    bool goes_on, std::uint64_t seed) {
  struct Asked {};
  HealedRun found{std::vector<std::vector<double>>(2), std::vector<std::int64_t>(2)};
  std::atomic<bool> ended = false;
  local::run(2, [&](const Group& group) {
    const int rank = group.rank();
    const auto device =
        sharing ? std::make_shared<HostAccelerator>(
                      *sharing, 4 << 20, seed == 0 ? 0 : mix_seed(seed, std::uint64_t(rank)))
                : nullptr;
    DeviceModel<float> on_host(rank, nullptr);
    std::optional<QueuedModel> queued;
    if (device) queued.emplace(rank, device);
    const auto views = device ? queued->views() : on_host.views();
    const auto step = [&](int round) {
      device ? queued->step(round, rank) : on_host.step(round, rank);
    };
    const auto values = [&] { return device ? queued->values() : on_host.values(); };
    const auto spoil = [&] {
      if (device) return queued->spoil();
      static_cast<float*>(views[1].data)[5] = std::numeric_limits<float>::quiet_NaN();
    };
    StepOptions ends{.learning_rate = 0.1};
    if (device) ends.queue = queued->queue();
    Worker worker(group, stencil::ring(), views, healing(setting, device));
    const auto make = [&](int round) {
      worker.begin_round();
      step(round);
      worker.end_round(ends);
    };
    for (int round = 0; round < 5; ++round) {
      const Deadline deadline(Seconds(30));
      while (rank == 1 && round == 1 && !ended && !deadline.expired()) std::this_thread::yield();
      if (rank == 1 || round != 2) {
        make(round);
        continue;
      }
      const std::vector<double> before = values();
      try {
        const WaitCheck check([] { throw Asked(); });
        worker.begin_round();
        step(round);
        spoil();
        worker.end_round(ends);
        fail(ErrorKind::internal, "the wait was not ended");
      } catch (const Asked&) {
      }
      expect(values() == before, "the step was not left out");
      ended = true;
      if (!goes_on) break;
      make(round);
    }
    worker.await_finish();
    found.values[static_cast<std::size_t>(rank)] = values();
    found.healed[static_cast<std::size_t>(rank)] = worker.stats().healed;
  });
  return found;
}

}  // namespace

TEST_CASE("a step that is not finite is left out, too, if the wait of its round was ended") {
  for (const DeviceSetting& setting : std::vector<DeviceSetting>{{"awc"}, {"pairwise"}}) {
    for (const bool goes_on : {true, false}) {
      const HealedRun expected = ended_run(setting, {}, goes_on, 0);
      CHECK(expected.healed == std::vector<std::int64_t>{1, 0});
      for (const Sharing& sharing : {mapped, Sharing{}}) {
        for (const std::uint64_t seed : {0, 1, 2, 3}) {
          INFO(text_of(setting) << (goes_on ? ", goes on" : ", finishes") << ", seed " << seed
                                << (sharing.on_host ? ", mapped" : ", staged"));
          const HealedRun found = ended_run(setting, sharing, goes_on, seed);
          CHECK(found.healed == expected.healed);
          if (goes_on && host_fuses()) CHECK(found.values == expected.values);
        }
      }
    }
  }
}

TEST_CASE("what a worker takes of a device's memory") {
  // Beside the program's three tensors, and tables of some hundred bytes; in images of messages.
  const auto images = [](const DeviceSetting& setting, const Sharing& sharing) {
    const std::size_t element = setting.codec == "bf16" ? 2 : 4;
    const exchange::ImageLayout image(
        {.shape = {queued_bytes(element), 1, 0}, .exact = setting.staleness == 0});
    std::size_t taken = 0;
    local::run(2, [&](const Group& group) {
      const auto device = std::make_shared<HostAccelerator>(sharing);
      QueuedModel model(group.rank(), device);
      const std::size_t before = device->simulated().used(), of_model = device->work()->held();
      {
        Worker worker(group, device_topology(setting.algorithm, 2), model.views(),
                      device_options(setting, device, {}));
        for (int round = 0; round < 3; ++round) worker.step([] {});
        const std::size_t held =
            device->simulated().used() - before + (sharing.on_host ? image.part_bytes() : 0);
        expect(std::abs(worker.stats().device_bytes - static_cast<double>(of_model + held)) < 2000,
               "a worker tells of the memory that it holds");
      }
      if (group.rank() == 0) taken = device->simulated().used() - before;
    });
    CHECK(taken % image.image_bytes() < 1000);
    return taken / image.image_bytes();
  };
  const DeviceSetting awc{"awc"}, awc1{"awc", {}, "identity", 1}, atc1{"atc", {}, "identity", 1};
  CHECK(images(awc, mapped) == 0);  // the region has two
  CHECK(images(awc, Sharing{}) == 2 + 1);
  CHECK(images({"awc", {}, "bf16"}, mapped) == 0);
  CHECK(images({"awc", {}, "bf16"}, Sharing{}) == 2 + 1);
  CHECK(images({"awc", {}, "int8"}, mapped) == 0);
  CHECK(images({"awc", {}, "int8"}, Sharing{}) == 2 + 1);
  CHECK(images(awc1, mapped) == 1);
  CHECK(images(awc1, Sharing{}) == 3 + 1);
  CHECK(images(atc1, mapped) == 1);
}
