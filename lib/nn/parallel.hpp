// A model on several cores: one network per thread, each with a part of the batch.
#pragma once

#include <fast/nn/network.hpp>
#include <fast/nn/stage.hpp>

#include <functional>
#include <memory>
#include <vector>

namespace fast::nn {

/// Parts are whole blocks of samples. They depend only on the size of the batch and on the number
/// of threads, and their results are summed in order. Every run therefore gives the same bits.
template <class T>
class ParallelNetwork {
 public:
  ParallelNetwork(ModelSpec spec, std::uint64_t seed, int threads);
  ~ParallelNetwork();

  /// The network that has the parameters, the buffers and, after loss_and_gradients(), the
  /// gradients of the whole batch.
  Network<T>& first() { return networks_.front(); }

  /// As in Network.
  double loss_and_gradients(const Batch& batch);
  std::size_t correct() const { return correct_; }
  LossResult evaluate(const Batch& batch);

 private:
  struct Arena;

  std::vector<Batch> split(const Batch& batch) const;
  void follow_first();
  void gather(const std::vector<Batch>& parts);
  void run(std::size_t tasks, const std::function<void(std::size_t)>& task);

  std::vector<Network<T>> networks_;
  std::unique_ptr<Arena> arena_;
  std::size_t correct_ = 0;
};

extern template class ParallelNetwork<float>;
extern template class ParallelNetwork<double>;

}  // namespace fast::nn
