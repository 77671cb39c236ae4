// Modules of LibTorch in training by neighbors: two lines in an existing loop.
//
//   fast::torch::Worker worker(world, fast::stencil::torus2d(), *net);  // 1
//   for (auto& batch : *loader)
//     worker.step([&] {                                                 // 2: round the step
//       optimizer.zero_grad();
//       auto loss = torch::nll_loss(net->forward(batch.data), batch.target);
//       loss.backward();
//       optimizer.step();
//       return loss.item<double>();
//     });
//
// This header includes none of LibTorch's.
#pragma once

#include <fast/core/tensor_view.hpp>
#include <fast/worker/worker.hpp>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

namespace torch::nn {
class Module;
}

namespace fast::torch {

struct ReplicaOptions {
  /// Parameters, and buffers, move into one block of memory each, so that publishing and averaging
  /// are one pass. What holds the tensors (modules, optimizers) sees the same tensors as before.
  /// Left alone all the same: memory that something else holds, as an autograd graph that still
  /// lives does.
  bool flat = true;
  /// Views of a mirror in host memory even where the module is in host memory itself.
  bool mirror = false;
  /// Views of the module's own memory, also on a device, as WorkerOptions::accelerator requires.
  /// There is no mirror. A Worker with an accelerator sets it.
  bool in_place = false;
};

/// A module's tensors as the library sees them: a shared handle. The module's tensors stay in use
/// by the module; they must neither be replaced nor moved to another device while this lives.
/// Parameters that do not train (requires_grad is false) are left where they are. They take no part
/// in rounds; see frozen(). All buffers are included, also those of parts that do not train:
/// BatchNorm changes its statistics there as well.
class Replica {
 public:
  /// Names are the module's ("conv1.weight"). Tied tensors count once. Tensors in another memory
  /// format than row-major keep it; their views' sides are then in the order of memory. Throws
  /// Error(argument) as ParameterLayout does, also for a module of which no parameter trains, and
  /// on sparse or quantized tensors and types that views do not know.
  explicit Replica(::torch::nn::Module& module, ReplicaOptions options = {});

  /// These views are in host memory, except with ReplicaOptions::in_place. With a mirror, they hold
  /// the module's values since the last to_host().
  const std::vector<TensorView>& parameters() const;
  /// The same views of the module's own memory.
  std::vector<TensorView> in_place() const;
  /// Views of the parameters that do not train, where the module has them, for
  /// WorkerOptions::frozen. Those are left out that other parameters share their memory with, or
  /// whose memory or type views do not describe.
  const std::vector<TensorView>& frozen() const;
  bool is_flat() const;      ///< the tensors lie in blocks
  bool is_mirrored() const;  ///< the module's memory is elsewhere (CUDA)

  /// The module's values into the mirror, and back. Nothing to do where there is none. Blocking.
  void to_host() const;
  void to_module() const;

  /// The current stream of this thread on the module's device, for StepOptions::queue. None: the
  /// module is in host memory, or this LibTorch does not tell its streams.
  std::optional<void*> queue() const;
  /// Blocks until that stream has done its work. Nothing to do in host memory.
  void settle() const;

  /// Throws Error(mismatch) naming the first tensor whose memory is no longer where it was, as
  /// after Module::to(), or the first parameter that trains now and did not. The check takes a few
  /// nanoseconds a tensor. Debug builds also find tensors that the module has replaced.
  void require_in_place() const;

 private:
  struct Impl;
  std::shared_ptr<Impl> impl_;
};

/// A fast::Worker of a module, which looks after mirrors and moved memory.
class Worker {
 public:
  /// Collective; see fast::Worker. The module's frozen parameters are added to
  /// WorkerOptions::frozen. With WorkerOptions::accelerator, as cuda::accelerator() makes one, the
  /// module is averaged on its device, else in a mirror. Rounds then follow the thread's current
  /// stream, and what that is given later follows them.
  Worker(Group group, const TopologyRule& rule, ::torch::nn::Module& module,
         WorkerOptions options = {}, ReplicaOptions replica = {})
      : on_device_(options.accelerator != nullptr),
        replica_(module, placed(replica, on_device_)),
        worker_(std::move(group), rule, replica_.parameters(),
                with_frozen(std::move(options), replica_.frozen())) {
    replica_.to_module();
  }
  /// The same over the ranks of a communicator.
  Worker(const mpi::Communicator& communicator, const TopologyRule& rule,
         ::torch::nn::Module& module, WorkerOptions options = {}, ReplicaOptions replica = {})
      : Worker(Group(communicator), rule, module, std::move(options), replica) {}

  /// One round; see fast::Worker::step.
  template <class Train>
  auto step(Train&& train, StepOptions options = {}) {
    if (on_device_ && !options.queue) options.queue = replica_.queue();
    const bool waits = on_device_ && !options.queue;
    return step_around(
        worker_, std::forward<Train>(train), [&] { end_step(waits); },
        [&] { replica_.to_module(); }, options);
  }

  /// All else: round(), stats(), mean_model(), finish(), ...
  fast::Worker* operator->() { return &worker_; }
  const Replica& replica() const { return replica_; }

 private:
  static WorkerOptions with_frozen(WorkerOptions options, const std::vector<TensorView>& more) {
    options.frozen.insert(options.frozen.end(), more.begin(), more.end());
    return options;
  }
  static ReplicaOptions placed(ReplicaOptions replica, bool on_device) {
    replica.in_place = replica.in_place || on_device;
    return replica;
  }
  void end_step(bool waits) const {
    replica_.require_in_place();
    replica_.to_host();
    if (waits) replica_.settle();
  }

  bool on_device_;
  Replica replica_;
  fast::Worker worker_;
};

}  // namespace fast::torch
