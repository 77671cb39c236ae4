// Workers on a device's tensors, the device being the host.
#include <fmt/format.h>

#include <atomic>
#include <cstdlib>
#include <fast/core/error.hpp>
#include <limits>
#include <thread>

#include "codec/coded_layout.hpp"
#include "support/catch.hpp"
#include "support/host_accelerator.hpp"
#include "worker/device_rounds.hpp"

using namespace fast;
using namespace fast::testing;

namespace {

/// Of one thread: an allocation of so many bytes fails.
thread_local std::size_t scarce_bytes = 0;

}  // namespace

/// In the place of the C library's.
extern "C" void* aligned_alloc(std::size_t alignment, std::size_t size_bytes) {
  void* made = nullptr;
  if (size_bytes == scarce_bytes) return nullptr;
  return posix_memalign(&made, alignment, size_bytes) == 0 ? made : nullptr;
}

namespace {

std::shared_ptr<Accelerator> on_device(int) { return std::make_shared<HostAccelerator>(); }
std::shared_ptr<Accelerator> odd_on_device(int rank) {
  return rank % 2 == 1 ? on_device(rank) : nullptr;
}

/// A rule of the caller's own, which the library knows no name of.
struct OwnAverage {
  algorithm::RuleTraits traits() const {
    return {
        .name = "own average", .summary = "x", .source = "x", .messages = {.republishes = true}};
  }
  template <class T>
  void publish(const algorithm::Block<T>& block) const {
    for (std::size_t e = 0; e < block.count; ++e) block.payload[0][e] = block.current[e];
  }
  template <class T>
  void combine(const algorithm::Block<T>& block) const {
    for (std::size_t e = 0; e < block.count; ++e) block.current[e] += block.pull[0][e];
  }
};

std::string refusal(const std::string& algorithm, const std::function<void(WorkerOptions&)>& with,
                    const std::function<void(std::vector<TensorView>&)>& change = {}) {
  std::string why = "not refused";
  local::run(1, [&](const Group& group) {
    const auto accelerator = std::make_shared<HostAccelerator>();
    DeviceModel<float> model(0, accelerator);
    auto views = model.views();
    if (change) change(views);
    WorkerOptions options = quick();
    options.algorithm = algorithm::by_name(algorithm);
    options.accelerator = accelerator;
    with(options);
    try {
      const Worker worker(group, stencil::ring(), views, options);
    } catch (const Error& error) {
      why = error.what();
    }
  });
  return why;
}

}  // namespace

TEMPLATE_TEST_CASE("a worker on a device goes the rounds of one on the host, bit for bit", "",
                   float, double, BFloat16, Float16, Mixed) {
  const int workers = GENERATE(2, 3, 4);
  check_device_rounds<TestType>(on_device, workers);
}

TEST_CASE("workers read each other's device memory where they can, bit for bit") {
  const int workers = GENERATE(2, 4);
  check_device_rounds<float>(
      [](int) { return std::make_shared<HostAccelerator>(Sharing{.on_host = true}); }, workers);
}

TEST_CASE("workers on devices and on the host average with each other") {
  check_device_rounds<float>(odd_on_device, 3);
}

TEMPLATE_TEST_CASE("the host codes what a device does not, and all have the same bits", "", float,
                   double) {
  const int workers = GENERATE(2, 3);
  const auto mapped = [](int) {
    return std::make_shared<HostAccelerator>(Sharing{.on_host = true, .on_all = true});
  };
  const auto settings = coded_device_settings();
  SECTION("staged") { check_device_rounds<TestType>(on_device, workers, settings); }
  SECTION("mapped") { check_device_rounds<TestType>(mapped, workers, settings); }
  SECTION("some by the host") {
    const auto some = [](int) {
      return std::make_shared<HostAccelerator>(Sharing{.on_host = true});
    };
    check_device_rounds<TestType>(some, 3, settings);
  }
  SECTION("beside workers on the host") {
    check_device_rounds<TestType>(odd_on_device, workers, settings);
  }
}

TEST_CASE("16-bit weights beside others travel as they are when the host codes") {
  const std::vector<DeviceSetting> settings{{"awc", {}, "bf16_stochastic"},
                                            {"awc", {}, "bf16_stochastic", 1},
                                            {"d2", {}, "bf16"},
                                            {"gradient_tracking", {}, "fp16"}};
  check_device_rounds<Mixed>(on_device, 3, settings);
}

TEST_CASE("payloads go up and down while the step computes") {
  const int workers = GENERATE(1, 3);
  local::run(workers, [](const Group& group) {
    const auto accelerator = std::make_shared<HostAccelerator>();
    DeviceModel<float> model(group.rank(), accelerator);
    WorkerOptions options = quick();
    options.accelerator = accelerator;
    Worker worker(group, stencil::ring(), model.views(), options);
    const int settled = group.size() > 1 ? 2 : 1;  // a publication, and what was fetched
    for (int round = 0; round < 5; ++round) {
      worker.step([&] {  // ends when one publication a round and one before, and its fetch are done
        const Deadline deadline(Seconds(20));
        while (accelerator->simulated().counts().settled_beside < settled * (round + 1)) {
          require(!deadline.expired(), ErrorKind::deadline, "nothing was copied beside the step");
          std::this_thread::yield();
        }
        model.step(round, group.rank());
      });
    }
  });
}

TEST_CASE("a worker that fails in a step on a device waits for nobody") {
  std::atomic<bool> gone = false, seen = false;
  const auto train = [&](const Group& group) {
    const auto accelerator = std::make_shared<HostAccelerator>();
    DeviceModel<float> model(group.rank(), accelerator);
    WorkerOptions options = quick();
    options.accelerator = accelerator;
    options.deadline = Seconds(60);
    Worker worker(group, stencil::ring(), model.views(), options);
    if (group.rank() == 0) {
      worker.step([] {});
      worker.step([] { fail(ErrorKind::numeric, "a kernel failed"); });
    }
    worker.step([&] {  // so that nothing comes for the other's second round
      const Deadline deadline(Seconds(30));
      while (!gone && !deadline.expired()) std::this_thread::yield();
      seen = gone.load();
    });
  };
  const auto train_to_the_end = [&](const Group& group) {
    try {
      train(group);
    } catch (const Error&) {
      if (group.rank() == 0) gone = true;
      throw;
    }
  };
  CHECK_THROWS_WITH(local::run(2, train_to_the_end), ContainsSubstring("a kernel failed"));
  CHECK(seen);
}

TEST_CASE("frozen tensors on a device are worker 0's, wherever the others have theirs") {
  local::run(3, [](const Group& group) {
    constexpr std::size_t bytes = 100'000;
    const auto accelerator = std::make_shared<HostAccelerator>();
    DeviceWork& work = *accelerator->work();
    std::vector<std::byte> host(bytes, static_cast<std::byte>(group.rank() + 1));
    const auto device = work.allocate(bytes);
    work.copy(device.get(), host.data(), bytes);
    work.settle();
    const bool on_host = group.rank() == 1;
    DeviceModel<float> model(group.rank(), accelerator);
    WorkerOptions options = quick();
    options.accelerator = accelerator;
    options.initial = Initial::broadcast;
    options.frozen = {{.name = "base",
                       .data = on_host ? host.data() : device.get(),
                       .shape = {static_cast<std::int64_t>(bytes)},
                       .dtype = DType::u8,
                       .device = on_host ? Device{} : accelerator->device()}};
    const Worker worker(group, stencil::ring(), model.views(), options);
    if (!on_host) work.copy(host.data(), device.get(), bytes);
    work.settle();
    require(host == std::vector<std::byte>(bytes, std::byte{1}), ErrorKind::internal,
            "the frozen bytes are not worker 0's");
  });
}

TEST_CASE("what a device does not do is refused in one line that names it") {
  const auto nothing = [](WorkerOptions&) {};
  CHECK(refusal("awc", nothing) == "not refused");
  for (const char* name : {"choco", "event_triggered", "allreduce"}) {
    const std::string why = refusal(name, nothing);
    CHECK_THAT(why, ContainsSubstring("algorithm " + std::string(name)));
    CHECK_THAT(why, ContainsSubstring("choose one of none, awc, atc, local, gossip_pga, "
                                      "gradient_tracking, d2, "));
    CHECK(why.find('\n') == std::string::npos);
  }
  const auto few = [](WorkerOptions& options) {
    options.algorithm = algorithm::diloco({.fraction = 0.1});
  };
  CHECK_THAT(refusal("diloco", few), ContainsSubstring("choose other options of the rule"));
  const auto late = [](WorkerOptions& options) { options.staleness = 1; };
  CHECK_THAT(refusal("push_sum", late),
             ContainsSubstring("algorithm push_sum") && ContainsSubstring("staleness above 0"));
  const auto halves = [](std::vector<TensorView>& views) {
    views[1].dtype = DType::bf16;
    views[1].shape = {18};
  };
  for (const std::string codec : {"int8", "int8_stochastic"}) {
    const auto coded = [&](WorkerOptions& options) { options.codec = codec::by_name(codec); };
    CHECK_THAT(
        refusal("awc", coded, halves),
        ContainsSubstring("codec " + codec + " with \"tensor1\" [18] bf16 on a device, where"));
  }
}

TEST_CASE("a rule of the caller's own is refused on a device, and rules that run there are named") {
  const auto own = [](WorkerOptions& options) {
    options.algorithm = algorithm::elementwise(OwnAverage{});
  };
  WorkerOptions options;
  own(options);
  for (const std::string& why : {why_not_on_device(options), refusal("awc", own)}) {
    CHECK_THAT(why, ContainsSubstring("algorithm own average with tensors on a device") &&
                        ContainsSubstring("choose one of none, awc"));
  }
}

TEST_CASE("tensors that are not where the options say are named") {
  const auto nothing = [](WorkerOptions&) {};
  const auto without = [](WorkerOptions& options) { options.accelerator = nullptr; };
  CHECK_THAT(refusal("awc", without), ContainsSubstring("\"tensor0\" [2051] f32") &&
                                          ContainsSubstring("the memory of device 0") &&
                                          ContainsSubstring("WorkerOptions::accelerator"));
  const auto mixed = [](std::vector<TensorView>& views) { views[1].device = Device{}; };
  CHECK_THAT(refusal("awc", nothing, mixed),
             ContainsSubstring("\"tensor1\" [37] f32 is in host memory, the accelerator's is the "
                               "memory of device 0"));
}

TEST_CASE("a worker on a device leaves out a step that is not finite") {
  std::vector<std::vector<double>> ends(2);
  for (const bool device : {false, true}) {
    local::run(1, [&](const Group& group) {
      const auto accelerator = device ? on_device(0) : nullptr;
      DeviceModel<float> model(0, accelerator);
      WorkerOptions options = quick();
      options.accelerator = accelerator;
      options.not_finite = NotFinite::heal;
      Worker worker(group, stencil::ring(), model.views(), options);
      for (int round = 0; round < 4; ++round) {
        worker.step([&] {
          model.step(round, 0);
          if (round == 2) model.set(1, 5, std::numeric_limits<float>::quiet_NaN());
        });
      }
      ends[device ? 1 : 0] = model.values();
      CHECK(worker.stats().healed == 1);
    });
  }
  CHECK(ends[0] == ends[1]);
}

TEMPLATE_TEST_CASE(
    "a worker on a device takes up the state that one on the host has left, and the reverse", "",
    float, BFloat16, Mixed) {
  const algorithm::Parameters changes{{"period", "2"}, {"changes", "true"}};
  std::vector<DeviceSetting> settings{{"awc"},
                                      {"d2"},
                                      {"edm"},
                                      {"gut"},
                                      {"decentlam"},
                                      {"averaged_momentum"},
                                      {"averaged_momentum", {{"atc", "true"}}},
                                      {"push_sum"},
                                      {"gradient_tracking"},
                                      {"gasloc", changes}};
  if (std::is_same_v<TestType, float>) {
    for (const char* rule : {"awc", "atc", "gradient_tracking"}) {
      for (const char* codec : {"int8", "int8_stochastic", "bf16_stochastic"})
        settings.push_back({rule, {}, codec});
    }
    settings.push_back({"diloco", changes, "int4", 0, Initial::broadcast});
    settings.push_back({"gasloc", changes, "int2"});
    settings.push_back(
        {"noloco", {{"period", "4"}, {"delay", "3"}}, "int8"});  // cut between message and average
  }
  for (const DeviceSetting& setting : settings) {
    for (const bool first_on_device : {false, true}) {
      INFO(text_of(setting) << (first_on_device ? ", from the device" : ", from the host"));
      const auto whole = all_device_rounds<TestType>(3, setting, on_host);
      std::vector<std::vector<double>> resumed(3);
      local::run(3, [&](const Group& group) {
        const auto device = on_device(0);
        DeviceRun<TestType> first(group, setting, first_on_device ? device : nullptr);
        first.go(0, 4);
        DeviceRun<TestType> second(group, setting, first_on_device ? nullptr : device);
        second.take_up(first);
        second.go(4, device_round_count);
        resumed[static_cast<std::size_t>(group.rank())] = second.outcome();
      });
      if (host_fuses()) CHECK(resumed == whole);
    }
  }
}

TEST_CASE("the weights of workers that have finished are read from the host, at any staleness") {
  const Sharing mapped{.on_host = true, .on_all = true};
  for (const DeviceSetting& setting :
       std::vector<DeviceSetting>{{"awc"},
                                  {"awc", {}, "identity", 1},
                                  {"awc", {}, "bf16", 1},
                                  {"atc", {}, "identity", 2},
                                  {"noloco", {{"period", "2"}}, "identity", 1}}) {
    INFO(text_of(setting));
    std::vector<std::vector<double>> values(2), means(2);
    std::atomic<std::size_t> read = 0;
    local::run(2, [&](const Group& group) {
      const auto rank = static_cast<std::size_t>(group.rank());
      const auto device = std::make_shared<HostAccelerator>(mapped);
      DeviceModel<float> model(group.rank(), device);
      Worker worker(group, stencil::ring(), model.views(), device_options(setting, device, {}));
      for (int round = 0; round < 3; ++round) {
        worker.begin_round();
        model.step(round, group.rank());
        worker.end_round({.learning_rate = 0.1});
      }
      worker.await_finish();
      values[rank] = model.values();
      const DeviceCounts before = device->simulated().counts();
      DeviceModel<float> mean(-1, nullptr);
      worker.mean_model(mean.views());
      read += static_cast<std::size_t>((device->simulated().counts() - before).copies);
      means[rank] = mean.values();
      group.barrier(Deadline(Seconds(30)), "a test's end");
    });
    CHECK(read == 0);
    for (std::size_t e = 0; e < values[0].size(); ++e) {
      const double mean = (values[0][e] + values[1][e]) / 2;
      REQUIRE(means[0][e] == Approx(mean).epsilon(1e-6).margin(1e-6));
    }
    CHECK(means[1] == means[0]);
  }
}

TEST_CASE("a device without room for a worker's part ends all workers at once, with its reason") {
  // Room for the model; for the rule's state (gradient_tracking) or the messages (awc) there is
  // none.
  constexpr std::size_t few_bytes = 16384;
  for (const char* name : {"gradient_tracking", "awc"}) {
    for (const bool all_on_devices : {true, false}) {
      INFO(name << (all_on_devices ? ", all on devices" : ", one on the host"));
      std::vector<std::string> found(3);
      local::run(3, [&](const Group& group) {
        const bool is_full = group.rank() == 1, on_host = group.rank() == 2 && !all_on_devices;
        const std::size_t bytes = is_full ? few_bytes : std::size_t{4} << 20;
        const auto device = std::make_shared<HostAccelerator>(Sharing{}, bytes);
        DeviceModel<float> model(group.rank(), on_host ? nullptr : device);
        WorkerOptions options = device_options({name}, on_host ? nullptr : device, {});
        options.deadline = Seconds(3);
        try {
          const Worker worker(group, stencil::ring(), model.views(), options);
        } catch (const Error& error) {
          found[static_cast<std::size_t>(group.rank())] = error.what();
        }
      });
      for (const std::string& why : found)
        CHECK_THAT(why, ContainsSubstring(fmt::format("a test's device has {} bytes", few_bytes)));
    }
  }
}

TEST_CASE("a host without memory for a worker's part ends all workers at once, with its reason") {
  const auto code_bytes = [](const ParameterLayout& layout) {
    const codec::CodedLayout coded(layout, codec::Kind::int8);
    return PayloadShape{coded.size_bytes(), 1}.vectors_bytes();
  };
  const auto model_bytes = [](const ParameterLayout& layout) { return layout.size_bytes(); };
  struct Case {
    DeviceSetting setting;
    std::function<std::size_t(const ParameterLayout&)> bytes;
  };
  for (const auto& [setting, bytes] :
       std::vector<Case>{{{"awc", {}, "int8"}, code_bytes},
                         {{"gossip_pga", {{"period", "3"}}}, model_bytes},
                         {{"awc", {}, "identity", 0, Initial::broadcast}, model_bytes}}) {
    for (const bool all_on_devices : {true, false}) {
      INFO(text_of(setting) << (all_on_devices ? ", all on devices" : ", one on the host"));
      std::vector<std::string> found(3);
      local::run(3, [&](const Group& group) {
        const bool is_full = group.rank() == 1, on_host = group.rank() == 2 && !all_on_devices;
        const auto device = on_host ? nullptr : std::make_shared<HostAccelerator>();
        DeviceModel<float> model(group.rank(), device);
        WorkerOptions options = device_options(setting, device, {});
        options.deadline = Seconds(3);
        const std::size_t scarce = bytes(ParameterLayout(DeviceModel<float>(0, nullptr).views()));
        if (is_full) scarce_bytes = round_up(scarce, cache_line_bytes);
        try {
          const Worker worker(group, stencil::ring(), model.views(), options);
        } catch (const Error& error) {
          found[static_cast<std::size_t>(group.rank())] = error.what();
        }
        scarce_bytes = 0;
      });
      for (const std::string& why : found)
        CHECK_THAT(why, ContainsSubstring("AlignedBuffer: no memory"));
    }
  }
}
