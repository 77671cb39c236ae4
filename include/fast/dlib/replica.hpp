// Nets of dlib in training by neighbors, header only: two lines in a loop of one's own.
//
//   net(samples.front());                                                 // parameters come to be
//   fast::dlib::Worker worker(world, fast::stencil::torus2d(), net);      // 1
//   for (...)
//     worker.step([&] {                                                   // 2: round the step
//       net.to_tensor(begin, end, x);
//       const double loss = net.compute_parameter_gradients(x, labels);
//       net.update_parameters(solvers, 0.01);
//       return loss;
//     });
//
// With a dnn_trainer, whose steps run on threads of its own, call get_net() at the end of the step.
#pragma once

#include <dlib/dnn.h>
#include <fast/core/error.hpp>
#include <fast/worker/worker.hpp>

#include <string>
#include <utility>
#include <vector>

namespace fast::dlib {

/// A net's parameters as the library sees them: one view a layer that has any
/// ("layer3.parameters"), weights and biases together, as dlib keeps them. The net must stay where
/// it is and keep its layers. What dlib hides in layers, running statistics of bn_ among it, is not
/// exchanged.
template <class Net>
class Replica {
 public:
  /// Throws Error(argument) when there are none: dlib allocates them with the first sample.
  explicit Replica(Net& net) : net_(&net) {
    for_parameters([&](std::size_t layer, ::dlib::tensor& values) {
      views_.push_back({"layer" + std::to_string(layer) + ".parameters",
                        values.host(),
                        {values.num_samples(), values.k(), values.nr(), values.nc()},
                        DType::f32,
                        Role::parameter,
                        Device{},
                        {}});
    });
    require(!views_.empty(), ErrorKind::argument,
            "dlib: the net has no parameters yet; run a sample through it first: net(sample)");
  }

  const std::vector<TensorView>& parameters() const { return views_; }

  /// Where dlib computes on a device, brings the values to the host, and lets the device take what
  /// was written there. Throws Error(mismatch) naming the first layer whose memory has moved, or
  /// when the number of layers with parameters has changed.
  void sync() const {
    std::size_t i = 0;
    for_parameters([&](std::size_t layer, ::dlib::tensor& values) {
      require(i < views_.size() && values.host() == views_[i].data &&
                  values.size() == views_[i].element_count(),
              ErrorKind::mismatch,
              "dlib: the parameters of layer {} have moved or changed their size since the Replica "
              "was made; make it after loading, and make it again when layers change",
              layer);
      ++i;
    });
    require(i == views_.size(), ErrorKind::mismatch,
            "dlib: {} layers have parameters, {} had when the Replica was made; make it again", i,
            views_.size());
  }

 private:
  template <class Visit>
  void for_parameters(const Visit& visit) const {
    ::dlib::visit_layer_parameters(*net_, [&](std::size_t layer, ::dlib::tensor& values) {
      if (values.size() > 0) visit(layer, values);
    });
  }

  Net* net_;
  std::vector<TensorView> views_;
};

/// A fast::Worker of a net.
template <class Net>
class Worker {
 public:
  /// Collective; see fast::Worker.
  Worker(Group group, const TopologyRule& rule, Net& net, WorkerOptions options = {})
      : replica_(net), worker_(std::move(group), rule, replica_.parameters(), std::move(options)) {
    replica_.sync();
  }
  /// The same over the ranks of a communicator.
  Worker(const mpi::Communicator& communicator, const TopologyRule& rule, Net& net,
         WorkerOptions options = {})
      : Worker(Group(communicator), rule, net, std::move(options)) {}

  /// One round; see fast::Worker::step.
  template <class Train>
  auto step(Train&& train, const StepOptions& options = {}) {
    const auto sync = [&] { replica_.sync(); };
    return step_around(worker_, std::forward<Train>(train), sync, sync, options);
  }

  /// All else: round(), stats(), mean_model(), finish(), ...
  fast::Worker* operator->() { return &worker_; }
  const Replica<Net>& replica() const { return replica_; }

 private:
  Replica<Net> replica_;
  fast::Worker worker_;
};

}  // namespace fast::dlib
