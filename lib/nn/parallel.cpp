#include "nn/parallel.hpp"

#include <oneapi/tbb/info.h>
#include <oneapi/tbb/parallel_for.h>
#include <oneapi/tbb/task_arena.h>

#include <algorithm>

#include "nn/kernels/kernels.hpp"

namespace fast::nn {
namespace {

/// into = Σ share·from, in order. The first vector is `into` itself.
template <class T>
void sum_parts(T* into, const std::vector<const T*>& from, const std::vector<double>& shares,
               std::size_t count) {
  scale(into, static_cast<T>(shares[0]), count);
  for (std::size_t p = 1; p < from.size(); ++p)
    add_scaled(into, from[p], static_cast<T>(shares[p]), count, false);
}

}  // namespace

template <class T>
struct ParallelNetwork<T>::Arena {
  oneapi::tbb::task_arena threads;
};

template <class T>
ParallelNetwork<T>::ParallelNetwork(ModelSpec spec, std::uint64_t seed, int threads) {
  networks_.emplace_back(std::move(spec), seed);
  for (int i = 1; i < threads; ++i)
    networks_.emplace_back(first().spec(), first().parameters().data());
  // oneTBB prints a warning if there are more threads than cores.
  const int concurrency = std::min(threads, oneapi::tbb::info::default_concurrency());
  if (threads > 1) arena_ = std::make_unique<Arena>(Arena{oneapi::tbb::task_arena(concurrency)});
}

template <class T>
ParallelNetwork<T>::~ParallelNetwork() = default;

template <class T>
void ParallelNetwork<T>::run(std::size_t tasks, const std::function<void(std::size_t)>& task) {
  arena_->threads.execute([&] {
    oneapi::tbb::parallel_for(std::size_t{0}, tasks, task, oneapi::tbb::static_partitioner());
  });
}

template <class T>
std::vector<Batch> ParallelNetwork<T>::split(const Batch& batch) const {
  const std::size_t samples = batch.count(), block = lanes<T>;
  const std::size_t blocks = (samples + block - 1) / block;
  const std::size_t parts = std::min(networks_.size(), blocks);
  std::vector<Batch> all;
  for (std::size_t i = 0; i < parts; ++i) {
    const std::size_t begin = blocks * i / parts * block;
    const std::size_t end = std::min(samples, blocks * (i + 1) / parts * block);
    all.push_back(part_of(batch, begin, end - begin));
  }
  return all;
}

template <class T>
void ParallelNetwork<T>::follow_first() {
  for (std::size_t i = 1; i < networks_.size(); ++i) {
    networks_[i].set_parameter_base(first().parameters().data());
    std::copy(first().buffers().begin(), first().buffers().end(), networks_[i].buffers().begin());
  }
}

template <class T>
double ParallelNetwork<T>::loss_and_gradients(const Batch& batch) {
  if (networks_.size() == 1 || batch.count() <= lanes<T>) {
    const double loss = first().loss_and_gradients(batch);
    correct_ = first().correct();
    return loss;
  }
  first().check(batch);
  const std::vector<Batch> parts = split(batch);
  std::vector<double> losses(parts.size());
  follow_first();
  run(parts.size(), [&](std::size_t i) { losses[i] = networks_[i].loss_and_gradients(parts[i]); });
  gather(parts);
  double sum = 0;
  correct_ = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    sum += losses[i] * static_cast<double>(parts[i].count());
    correct_ += networks_[i].correct();
  }
  return sum / static_cast<double>(batch.count());
}

/// Sums gradients and running statistics into those of the first network, by share of the samples.
template <class T>
void ParallelNetwork<T>::gather(const std::vector<Batch>& parts) {
  std::vector<double> shares;
  std::size_t samples = 0;
  for (const Batch& part : parts) samples += part.count();
  for (const Batch& part : parts)
    shares.push_back(static_cast<double>(part.count()) / static_cast<double>(samples));
  const std::size_t count = first().parameter_count();
  run(parts.size(), [&](std::size_t i) {
    const std::size_t begin = count * i / parts.size(), end = count * (i + 1) / parts.size();
    std::vector<const T*> from;
    for (std::size_t p = 0; p < parts.size(); ++p)
      from.push_back(networks_[p].gradients().data() + begin);
    sum_parts(first().gradients().data() + begin, from, shares, end - begin);
  });
  std::vector<const T*> from;
  for (std::size_t p = 0; p < parts.size(); ++p) from.push_back(networks_[p].buffers().data());
  sum_parts(first().buffers().data(), from, shares, first().buffers().size());
}

template <class T>
LossResult ParallelNetwork<T>::evaluate(const Batch& batch) {
  if (networks_.size() == 1 || batch.count() <= lanes<T>) return first().evaluate(batch);
  first().check(batch);
  const std::vector<Batch> parts = split(batch);
  std::vector<LossResult> results(parts.size());
  follow_first();
  run(parts.size(), [&](std::size_t i) { results[i] = networks_[i].evaluate(parts[i]); });
  LossResult total;
  for (const LossResult& result : results) total.add(result);
  return total;
}

template class ParallelNetwork<float>;
template class ParallelNetwork<double>;

}  // namespace fast::nn
