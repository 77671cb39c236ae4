// Rounds of a Worker whose tensors are in host memory or, with an accelerator, on its device; the
// outcome is to be the same.
#pragma once

#include <algorithm>
#include <array>
#include <cstdlib>
#include <fast/core/memory.hpp>
#include <fast/core/random.hpp>
#include <fast/exchange/local.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/worker.hpp>
#include <functional>
#include <string>
#include <type_traits>
#include <vector>

#include "combine/accelerator.hpp"
#include "core/floating.hpp"
#include "support/catch.hpp"
#include "support/rules.hpp"
#include "worker/placed.hpp"
#include "worker/quick.hpp"

namespace fast::testing {

struct DeviceSetting {
  std::string algorithm;
  algorithm::Parameters parameters{};
  std::string codec = "identity";
  std::int64_t staleness = 0;
  Initial initial = Initial::as_is;
};

/// 16-bit weights beside others.
struct Mixed {};

/// A model in two pieces and a buffer, elsewhere each, with an image on the host. Its elements are
/// of type T.
template <class T>
class DeviceModel {
 public:
  DeviceModel(int rank, std::shared_ptr<Accelerator> accelerator)
      : accelerator_(std::move(accelerator)) {
    Rng rng(mix_seed(3, static_cast<std::uint64_t>(rank)));
    for (std::size_t k = 0; k < counts.size(); ++k) {
      images_.emplace_back(counts[k] * size_bytes(types()[k]));
      if (accelerator_) memory_.push_back(accelerator_->work()->allocate(images_[k].size_bytes()));
      visit(k, [&]<class E>(E& x) { x = from_double<E>(rng.normal()); });
    }
    upload();
  }

  std::vector<TensorView> views() {
    std::vector<TensorView> views;
    for (std::size_t k = 0; k < counts.size(); ++k) {
      views.push_back({.name = "tensor" + std::to_string(k),
                       .data = accelerator_ ? memory_[k].get() : images_[k].data(),
                       .shape = {static_cast<std::int64_t>(counts[k])},
                       .dtype = types()[k],
                       .role = k == 2 ? Role::buffer : Role::parameter,
                       .device = accelerator_ ? accelerator_->device() : Device{}});
    }
    return views;
  }
  /// What an optimizer might do.
  void step(std::int64_t round, int rank) {
    download();
    Rng rng(mix_seed(7, static_cast<std::uint64_t>(round), static_cast<std::uint64_t>(rank)));
    for (std::size_t k = 0; k < counts.size(); ++k) {
      visit(k, [&]<class E>(E& x) {
        const double move = 0.1 * (as_double(x) - rng.normal());
        if constexpr (std::is_floating_point_v<E>) {
          x -= static_cast<E>(move);
        } else {
          x = from_double<E>(as_double(x) - move);
        }
      });
    }
    upload();
  }
  std::vector<double> values() {
    download();
    std::vector<double> all;
    for (std::size_t k = 0; k < counts.size(); ++k)
      visit(k, [&](const auto& x) { all.push_back(as_double(x)); });
    return all;
  }
  void take(DeviceModel& other) {
    other.download();
    for (std::size_t k = 0; k < counts.size(); ++k)
      std::ranges::copy(other.images_[k].template as<std::byte>(), images_[k].data());
    upload();
  }
  void set(std::size_t tensor, std::size_t element, double value) {
    download();
    std::size_t at = 0;
    visit(tensor, [&]<class E>(E& x) { x = at++ == element ? from_double<E>(value) : x; });
    upload();
  }

 private:
  static constexpr std::array<std::size_t, 3> counts{2051, 37, 9};

  static std::array<DType, 3> types() {
    if constexpr (std::is_same_v<T, Mixed>) {
      return {DType::bf16, DType::f32, DType::f16};
    } else {
      return {dtype_of<T>, dtype_of<T>, dtype_of<T>};
    }
  }
  template <class Visit>
  void visit(std::size_t k, const Visit& visit_one) {
    with_floating(types()[k], [&]<class E>(E) {
      for (E& x : images_[k].template as<E>()) visit_one(x);
    });
  }
  void transfer(bool up) {
    if (!accelerator_) return;
    for (std::size_t k = 0; k < counts.size(); ++k) {
      std::byte* image = images_[k].data();
      std::byte *to = up ? memory_[k].get() : image, *from = up ? image : memory_[k].get();
      accelerator_->work()->copy(to, from, images_[k].size_bytes());
    }
    accelerator_->work()->settle();
  }
  void upload() { transfer(true); }
  void download() { transfer(false); }

  std::shared_ptr<Accelerator> accelerator_;
  std::vector<AlignedBuffer> images_;
  std::vector<std::shared_ptr<std::byte>> memory_;
};

inline TopologyRule device_topology(const std::string& algorithm, int workers) {
  if (algorithm != "push_sum") return topology_for(algorithm);
  std::vector<std::vector<int>> sources;  // both ways between 0 and 1, else one way round
  for (int w = 0; w < workers; ++w) sources.push_back({(w + workers - 1) % workers});
  if (workers > 2) sources[0].insert(sources[0].begin(), 1);
  return Topology("uneven", sources);
}

/// Above staleness 0 workers end their rounds in turn, so that all always read the same.
inline void end_in_turn(Worker& worker, const Group& group, const StepOptions& options) {
  for (int turn = 0; turn < group.size(); ++turn) {
    if (turn == group.rank()) {
      worker.end_round(options);
      worker.consensus_distance();  // looks at what has been published, which takes its time else
    }
    group.barrier(Deadline(Seconds(30)), "a worker's turn");
  }
}

inline WorkerOptions device_options(const DeviceSetting& setting,
                                    const std::shared_ptr<Accelerator>& accelerator,
                                    const LogSink& log) {
  WorkerOptions options = quick();
  options.log = log;
  options.algorithm = algorithm::by_name(setting.algorithm, setting.parameters);
  options.codec = codec::by_name(setting.codec);
  options.staleness = setting.staleness;
  options.initial = setting.initial;
  options.accelerator = accelerator;
  return options;
}

template <class T>
class DeviceRun {
 public:
  DeviceRun(const Group& group, const DeviceSetting& setting,
            const std::shared_ptr<Accelerator>& accelerator, const LogSink& log = {})
      : group_(group),
        in_turn_(setting.staleness > 0),
        accelerator_(accelerator),
        model_(group.rank(), accelerator),
        worker_(group, device_topology(setting.algorithm, group.size()), model_.views(),
                device_options(setting, accelerator, log)) {}

  void go(int from, int to) {
    const StepOptions options{.learning_rate = 0.1};
    for (int round = from; round < to; ++round) {
      worker_.begin_round();
      model_.step(round, group_.rank());
      if (in_turn_) {
        end_in_turn(worker_, group_, options);
      } else {
        worker_.end_round(options);
      }
    }
  }
  /// Goes on where another stands.
  void take_up(DeviceRun& other) {
    model_.take(other.model_);
    worker_.restore(other.worker_.state());
  }
  /// Its weights, the mean model and the consensus distance when all have finished.
  std::vector<double> outcome() {
    worker_.await_finish();
    std::vector<double> all = model_.values();
    DeviceModel<T> mean(-1, accelerator_);
    worker_.mean_model(mean.views());
    for (const double value : mean.values()) all.push_back(value);
    all.push_back(worker_.consensus_distance());
    return all;
  }

 private:
  Group group_;
  bool in_turn_;
  std::shared_ptr<Accelerator> accelerator_;
  DeviceModel<T> model_;
  Worker worker_;
};

inline constexpr int device_round_count = 9;

using AcceleratorOf = std::function<std::shared_ptr<Accelerator>(int rank)>;

template <class T>
std::vector<std::vector<double>> all_device_rounds(int workers, const DeviceSetting& setting,
                                                   const AcceleratorOf& accelerator_of) {
  std::vector<std::vector<double>> found(static_cast<std::size_t>(workers));
  local::run(workers, [&](const Group& group) {
    const auto rank = static_cast<std::size_t>(group.rank());
    DeviceRun<T> run(group, setting, accelerator_of(group.rank()));
    run.go(0, device_round_count);
    found[rank] = run.outcome();
  });
  return found;
}

inline std::vector<DeviceSetting> device_settings() {
  return {{"none"},
          {"awc"},
          {"awc", {}, "identity", 0, Initial::broadcast},
          {"awc", {}, "identity", 1},
          {"awc", {}, "bf16"},
          {"awc", {}, "bf16", 1},
          {"atc"},
          {"atc", {}, "identity", 1},
          {"atc", {}, "bf16"},
          {"awc", {}, "fp16"},
          {"atc", {}, "fp16", 1},
          {"local", {{"period", "2"}}},
          {"local", {{"period", "2"}}, "identity", 2},
          {"gossip_pga", {{"period", "3"}}},
          {"gossip_pga", {{"period", "3"}}, "bf16"},
          {"pairwise"},
          {"push_sum"},
          {"gradient_tracking"},
          {"d2"},
          {"edm"},
          {"gut"},
          {"gut", {{"momentum", "0"}, {"mu", "0.9"}}},
          {"a2cid2"},
          {"a2cid2", {{"mixing_rate", "0.3"}, {"second_step", "0.9"}}},
          {"decentlam"},
          {"decentlam", {}, "identity", 1},
          {"quasi_global_momentum"},
          {"averaged_momentum"},
          {"averaged_momentum", {}, "identity", 1},
          {"averaged_momentum", {{"atc", "true"}}},
          {"averaged_momentum", {{"atc", "true"}}, "identity", 1},
          {"awc", {{"consensus", "0.5"}}},
          {"awc", {{"consensus", "0.5"}}, "identity", 1},
          {"diloco", {{"period", "2"}}},
          {"diloco", {{"period", "3"}, {"delay", "1"}, {"blend", "0.5"}, {"nesterov", "false"}}},
          {"noloco", {{"period", "2"}}},
          {"noloco", {{"period", "2"}}, "identity", 1},
          {"gasloc", {{"period", "2"}, {"acceleration", "0.3"}}},
          {"gasloc", {{"period", "3"}, {"delay", "2"}}, "identity", 1},
          {"gasloc", {{"period", "2"}, {"changes", "true"}, {"acceleration", "0.3"}}},
          {"gradient_exchange"}};
}

/// Each codec with rules that publish before the step and after it, send several vectors, or read
/// their own payload again; those of few bits with rules that send changes.
inline std::vector<DeviceSetting> coded_device_settings() {
  std::vector<DeviceSetting> all;
  for (const std::string_view name : codecs_of_weights()) {
    if (name == "identity") continue;
    const std::string codec(name);
    for (const std::int64_t staleness : {0, 1}) {
      all.push_back({"awc", {}, codec, staleness});
      all.push_back({"atc", {}, codec, staleness});
    }
    all.push_back({"awc", {}, codec, 0, Initial::broadcast});
    all.push_back({"gradient_tracking", {}, codec});
    all.push_back({"d2", {}, codec});
    all.push_back({"decentlam", {}, codec, 2});
    all.push_back({"noloco", {{"period", "2"}}, codec});
    all.push_back({"gossip_pga", {{"period", "3"}}, codec});
  }
  for (const std::string_view name : codec::names()) {
    const std::string codec(name);
    all.push_back({"diloco", {{"period", "2"}, {"changes", "true"}}, codec, 0, Initial::broadcast});
    all.push_back({"gasloc", {{"period", "2"}, {"changes", "true"}}, codec});
  }
  if (std::getenv("FAST_FEW_WORKER_COUNTS") == nullptr) return all;
  std::vector<DeviceSetting> some;  // sanitizers take up to ten times as long
  for (std::size_t i = 0; i < all.size(); i += 7) some.push_back(all[i]);
  return some;
}

inline std::shared_ptr<Accelerator> on_host(int) { return nullptr; }

inline std::string text_of(const DeviceSetting& setting) {
  return setting.algorithm + ", codec " + setting.codec + ", staleness " +
         std::to_string(setting.staleness);
}

template <class T>
void check_device_rounds(const AcceleratorOf& accelerator_of, int workers,
                         const std::vector<DeviceSetting>& settings = device_settings()) {
  constexpr bool halves = sizeof(T) < sizeof(float);
  constexpr double near = halves ? 0.05 : 1e-4;
  for (const DeviceSetting& setting : settings) {
    if (setting.algorithm == "gossip_pga" && halves) continue;  // it is refused
    INFO(text_of(setting) << ", " << workers << " workers");
    const auto expected = all_device_rounds<T>(workers, setting, on_host);
    const auto found = all_device_rounds<T>(workers, setting, accelerator_of);
    if (host_fuses()) CHECK(found == expected);
    for (std::size_t w = 0; w < found.size(); ++w) {
      for (std::size_t e = 0; e < found[w].size(); ++e) {
        REQUIRE(found[w][e] == Approx(expected[w][e]).epsilon(near).margin(near));
      }
    }
  }
}

}  // namespace fast::testing
