#include "fast_data/shuffled.hpp"

#include <fast/core/random.hpp>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "data/files/split.hpp"

namespace fast_data {

using namespace fast;

namespace {

/// Another order of samples in memory.
class Shuffled final : public data::SampleSource {
 public:
  Shuffled(data::Dataset samples, std::vector<std::size_t> order)
      : samples_(std::move(samples)), order_(std::move(order)) {}
  bool is_bytes() const override { return samples_.is_bytes(); }
  std::vector<std::size_t> shards() const override { return {order_.size()}; }
  void read(std::size_t sample, std::span<std::byte> into) const override {
    samples_.copy(order_[sample], into);
  }

 private:
  data::Dataset samples_;
  std::vector<std::size_t> order_;
};

}  // namespace

data::Dataset shuffled(const data::Dataset& samples, std::uint64_t seed) {
  std::vector<std::size_t> order(samples.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  Rng(mix_seed(seed, 0xda7a)).shuffle(std::span(order));
  data::Targets targets = data::chosen_targets(samples, order);
  return {samples.name(), samples.sample_shape(),
          std::make_shared<Shuffled>(samples, std::move(order)), std::move(targets)};
}

}  // namespace fast_data
