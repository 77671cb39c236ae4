// What the workers of a chaotic run train on.
#pragma once

#include <fast/worker/worker.hpp>

#include <memory>
#include <span>
#include <vector>

#include "chaos/plan.hpp"

namespace chaos {

class Problem {
 public:
  virtual ~Problem() = default;
  virtual std::vector<fast::TensorView> parameters() = 0;
  virtual void step(std::int64_t round) = 0;
  /// Whether the weights as they stand show that some read was torn.
  virtual bool torn() const = 0;
  /// With weights in slots: finds gradients there, then adds a step to a part of the next weights.
  virtual void find_gradients(const double* weights) = 0;
  virtual void update(std::span<double> weights) = 0;
  /// How good the weights as they stand are: what Result::own and mean are of.
  virtual double result() = 0;
};

/// Gradient descent on a parabola: weights that are all equal at any time; the result is their
/// value. Or LeNet on 6,000 images of Fashion-MNIST, at a rate that falls to 0: the share of the
/// 10,000 test images classified correctly.
std::unique_ptr<Problem> problem_of(const Plan& plan, int workers, int rank);

}  // namespace chaos
