// Rounds of a Worker whose tensors are in host memory or, with an accelerator, on its device; the
// outcome is to be the same.
#pragma once

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
#include "support/catch.hpp"
#include "support/rules.hpp"
#include "worker/quick.hpp"

namespace fast::testing {

struct DeviceSetting {
  std::string algorithm;
  algorithm::Parameters parameters{};
  std::string codec = "identity";
  std::int64_t staleness = 0;
  Initial initial = Initial::as_is;
};

/// A model in two pieces and a buffer, elsewhere each, with an image on the host.
template <class T>
class DeviceModel {
 public:
  DeviceModel(int rank, std::shared_ptr<Accelerator> accelerator)
      : accelerator_(std::move(accelerator)) {
    Rng rng(mix_seed(3, static_cast<std::uint64_t>(rank)));
    for (const std::size_t count : {2051, 37, 9}) {
      std::vector<T> values;
      for (std::size_t e = 0; e < count; ++e) values.push_back(static_cast<T>(rng.normal()));
      images_.push_back(std::move(values));
      if (accelerator_) memory_.push_back(accelerator_->work()->allocate(count * sizeof(T)));
    }
    upload();
  }

  std::vector<TensorView> views() {
    std::vector<TensorView> views;
    for (std::size_t k = 0; k < images_.size(); ++k) {
      const Role role = k == 2 ? Role::buffer : Role::parameter;
      views.push_back(view_of("tensor" + std::to_string(k), std::span(images_[k]), role));
      if (!accelerator_) continue;
      views[k].data = memory_[k].get();
      views[k].device = accelerator_->device();
    }
    return views;
  }
  /// What an optimizer might do.
  void step(std::int64_t round, int rank) {
    download();
    Rng rng(mix_seed(7, static_cast<std::uint64_t>(round), static_cast<std::uint64_t>(rank)));
    for (auto& image : images_) {
      for (T& x : image) x -= static_cast<T>(0.1 * (static_cast<double>(x) - rng.normal()));
    }
    upload();
  }
  std::vector<T> values() {
    download();
    std::vector<T> all;
    for (const auto& image : images_) all.insert(all.end(), image.begin(), image.end());
    return all;
  }
  void take(DeviceModel& other) {
    other.download();
    images_ = other.images_;
    upload();
  }
  void set(std::size_t tensor, std::size_t element, T value) {
    download();
    images_[tensor][element] = value;
    upload();
  }

 private:
  void transfer(bool up) {
    if (!accelerator_) return;
    for (std::size_t k = 0; k < images_.size(); ++k) {
      auto* image = reinterpret_cast<std::byte*>(images_[k].data());
      std::byte *to = up ? memory_[k].get() : image, *from = up ? image : memory_[k].get();
      accelerator_->work()->copy(to, from, images_[k].size() * sizeof(T));
    }
    accelerator_->work()->settle();
  }
  void upload() { transfer(true); }
  void download() { transfer(false); }

  std::shared_ptr<Accelerator> accelerator_;
  std::vector<std::vector<T>> images_;
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
  std::vector<T> outcome() {
    worker_.await_finish();
    std::vector<T> all = model_.values();
    DeviceModel<T> mean(-1, accelerator_);
    worker_.mean_model(mean.views());
    for (const T value : mean.values()) all.push_back(value);
    all.push_back(static_cast<T>(worker_.consensus_distance()));
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
std::vector<std::vector<T>> all_device_rounds(int workers, const DeviceSetting& setting,
                                              const AcceleratorOf& accelerator_of) {
  std::vector<std::vector<T>> found(static_cast<std::size_t>(workers));
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
          {"local", {{"period", "2"}}},
          {"local", {{"period", "2"}}, "identity", 2},
          {"gossip_pga", {{"period", "3"}}},
          {"gossip_pga", {{"period", "3"}}, "bf16"},
          {"pairwise"},
          {"push_sum"},
          {"gradient_tracking"},
          {"d2"},
          {"decentlam"},
          {"decentlam", {}, "identity", 1},
          {"quasi_global_momentum"},
          {"awc", {{"consensus", "0.5"}}},
          {"awc", {{"consensus", "0.5"}}, "identity", 1},
          {"diloco", {{"period", "2"}}},
          {"diloco", {{"period", "3"}, {"delay", "1"}, {"blend", "0.5"}, {"nesterov", "false"}}},
          {"noloco", {{"period", "2"}}},
          {"noloco", {{"period", "2"}}, "identity", 1},
          {"gasloc", {{"period", "2"}, {"acceleration", "0.3"}}},
          {"gasloc", {{"period", "3"}, {"delay", "2"}}, "identity", 1},
          {"gradient_exchange"}};
}

inline std::shared_ptr<Accelerator> on_host(int) { return nullptr; }

inline std::string text_of(const DeviceSetting& setting) {
  return setting.algorithm + ", codec " + setting.codec + ", staleness " +
         std::to_string(setting.staleness);
}

/// The host's kernels fuse multiply-adds only on processors that can.
inline bool host_fuses() { return __builtin_cpu_supports("fma") != 0; }

template <class T>
void check_device_rounds(const AcceleratorOf& accelerator_of, int workers) {
  for (const DeviceSetting& setting : device_settings()) {
    if (setting.codec == "bf16" && !std::is_same_v<T, float>) continue;
    INFO(text_of(setting) << ", " << workers << " workers");
    const auto expected = all_device_rounds<T>(workers, setting, on_host);
    const auto found = all_device_rounds<T>(workers, setting, accelerator_of);
    if (host_fuses()) CHECK(found == expected);
    for (std::size_t w = 0; w < found.size(); ++w) {
      for (std::size_t e = 0; e < found[w].size(); ++e) {
        REQUIRE(found[w][e] == Approx(expected[w][e]).epsilon(1e-4).margin(1e-4));
      }
    }
  }
}

}  // namespace fast::testing
