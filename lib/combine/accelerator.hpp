// A device that a worker's tensors are on. fast::cuda has it for NVIDIA's GPUs (cuda::accelerator).
#pragma once

#include <fast/core/tensor_view.hpp>
#include <fast/exchange/group.hpp>

#include <memory>
#include <string>

#include "exchange/device/staged.hpp"

namespace fast {

namespace combine {
struct ElementWork;
}

/// For one worker. All work is done in order. What the user's step does to the tensors is to be
/// done when the step returns, or enqueued in the same order as the accelerator's own, or in
/// StepOptions::queue. Without that queue, the Worker waits for all of it before its calls return.
class Accelerator {
 public:
  virtual ~Accelerator() = default;

  /// Whose tensors.
  virtual Device device() const = 0;
  virtual const std::shared_ptr<DeviceWork>& work() const = 0;
  /// Enqueues what a sweep of a rule does to the elements of a table, in one launch
  /// (lib/combine/element_work.hpp).
  virtual void run(const combine::ElementWork& work) = 0;
  enum class Order { after, before };
  /// Orders work against that of a queue of the program, without a wait. after: what is enqueued
  /// here from now on starts after what the queue has. before: what is enqueued there from now on
  /// starts after what is here. For CUDA the queue is a cudaStream_t. Throws Error(argument) if a
  /// graph is being captured from the queue.
  virtual void order(Order order, void* queue) = 0;
  /// Collective, where all workers have accelerators. Memory for payloads that the others' works
  /// read where it is, as far as they can; none: payloads are staged through the host's slots, as
  /// they are beside workers on the host.
  virtual DeviceRegion share(const Group& /*group*/, std::size_t /*bytes_per_worker*/,
                             const Deadline& /*deadline*/) {
    return {};
  }
  /// Empty when MPI says that it reads what is in share()'s memory, which is proved before it is
  /// relied on; else one line.
  virtual std::string why_not_by_mpi() const { return "the device does not ask MPI"; }
};

}  // namespace fast
