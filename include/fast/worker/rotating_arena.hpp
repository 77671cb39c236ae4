// Weights that live in a worker's published slots and nowhere else.
#pragma once

#include <fast/core/tensor_view.hpp>
#include <fast/worker/worker.hpp>

namespace fast {

/// Throws Error(argument) with the reason why a Worker with these options cannot rotate, whatever
/// its tensors are.
void check_for_rotation(const WorkerOptions& options);

/// Ends a Worker's rounds in one pass over memory: it reads the newest slot and the neighbors',
/// lets `update` add the optimizer's step, and writes the next slot. So the weights move each
/// round. The tensors given to the Worker hold the initial weights and, after Worker::finish(), the
/// final ones. T is float or double.
template <class T>
class RotatingArena {
 public:
  /// Refers to `worker`, which stays in place. Error(argument) unless the worker's tensors are
  /// parameters of type T in host memory, its rule is a plain average (awc, pairwise) in every
  /// step, and its codec is identity.
  explicit RotatingArena(Worker& worker);

  /// The packed weights (see ParameterLayout), valid until the round ends. Read only. Null in a
  /// spare that was not needed, whose rounds end without an update.
  const T* weights() const;
  /// A round: finds gradients at weights(), then updates and combines. Returns what find_gradients
  /// returns; a floating-point result is taken for the loss and must be finite. Blocks and throws
  /// as Worker::step().
  template <class Find>
  auto step(const Find& find_gradients, const PartUpdate<T>& update) {
    return worker::run_round(
        *worker_, [&] { return find_gradients(weights()); },
        [&](const auto&... loss) { end_round(loss..., update); });
  }
  /// The end of a round that Worker::begin_round() began.
  void end_round(const PartUpdate<T>& update);
  /// Ends a round as above; the step's loss must be finite.
  void end_round(double loss, const PartUpdate<T>& update);

 private:
  Worker* worker_;
};

}  // namespace fast
