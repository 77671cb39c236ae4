// One stage of a replica whose layers are divided among ranks.
#pragma once

#include <deque>
#include <fast/mpi/communicator.hpp>
#include <fast/nn/optimizer.hpp>
#include <fast/nn/stage.hpp>
#include <optional>
#include <vector>

namespace pipeline {

/// How a replica divides its model and its batches.
struct Plan {
  fast::nn::ModelSpec model;
  std::vector<fast::nn::LayerRange> stages;  ///< stage s is on rank s of the replica
  std::size_t micro_batches = 1;             ///< parts of a batch
};

/// This rank's stage. Activations go to the next rank of the replica, and their gradients come
/// back, as messages. All ranks of the replica make the same calls with the same batches.
class Pipeline {
 public:
  /// Collective over the replica. A wait for another stage ends after `deadline`.
  Pipeline(const fast::mpi::Communicator& replica, const Plan& plan, std::uint64_t seed,
           const fast::nn::OptimizerSpec& optimizer, fast::Seconds deadline);

  /// One step of the optimizer on a batch. The last stage returns the mean loss before the step.
  /// Throws Error(deadline) if another stage hangs.
  std::optional<double> train(const fast::Batch& batch);

  /// Without changing anything. The last stage returns the result.
  std::optional<fast::nn::LossResult> evaluate(const fast::Batch& batch);

  fast::nn::Stage<float>& stage() { return stage_; }
  /// Parameters and buffers of this stage, for its Worker.
  std::vector<fast::TensorView> tensors();

  /// Copies tensors of all stages to stage 0, which returns them in the order of the model, as
  /// views of `memory`. The other stages return nothing. `own` are those of this rank.
  std::vector<fast::TensorView> gather(const std::vector<fast::TensorView>& own,
                                       std::deque<std::vector<float>>& memory);

 private:
  void forward(const fast::Batch& batch, std::size_t part);
  void backward(const fast::Batch& batch, std::size_t part);
  std::span<const float> run(const fast::Batch& part, std::size_t micro_batch, bool training);
  fast::Batch part_at(const fast::Batch& batch, std::size_t part) const;
  std::size_t parts_of(const fast::Batch& batch) const;
  std::size_t in_flight() const { return plan_.stages.size() - index_; }
  std::span<const float> receive(int from, std::size_t values);
  void send(int to, std::span<const float> values);

  Plan plan_;
  std::size_t index_;  ///< of this stage
  fast::Seconds deadline_;
  fast::mpi::PointToPoint messages_;
  fast::nn::Stage<float> stage_;
  fast::nn::Optimizer<float> optimizer_;
  std::vector<float> received_;
  double loss_ = 0;
};

}  // namespace pipeline
