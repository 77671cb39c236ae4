// Batches for training and evaluation.
#pragma once

#include <fast/core/batch.hpp>
#include <fast/core/deadline.hpp>
#include <fast/core/random.hpp>
#include <fast/data/dataset.hpp>
#include <fast/data/sample_stream.hpp>
#include <fast/data/sampler.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

namespace fast::data {

// Small random changes to training images that keep their labels.

/// Pad-crop-flip (He et al. 2016, arXiv 1512.03385, section 4.2).
struct Augmentation {
  int padding =
      4;  ///< zeros (the mean color) on each side, of which a crop of the old size is taken
  bool flip = true;     ///< left to right, every other image
  double rotation = 0;  ///< degrees: turned by an angle from -rotation to rotation, bilinearly
  /// A pixel v whose channels have the mean g becomes c·(g + s·(v - g)) + b. An image has one c and
  /// one s from 1 - jitter to 1 + jitter, and one b from -jitter to jitter, in standard deviations
  /// of the normalization.
  double jitter = 0;
  /// The probability that a rectangle of .02 to .33 of the image becomes 0 (Zhong et al. 2020,
  /// arXiv 1708.04896).
  double erasing = 0;
};

/// Changes a normalized image of `shape` C×H×W in place, as drawn from `rng`. Throws
/// Error(argument) on another shape, a negative padding or rotation, a jitter below 0 or above 1,
/// and an erasing that is no probability.
void augment(std::span<float> image, const std::vector<std::int64_t>& shape,
             const Augmentation& augmentation, Rng& rng);

/// Hands out normalized batches from buffers that it reuses: a batch is valid until the next one is
/// asked for. One thread uses a loader; several loaders may share a data set.
class Loader {
 public:
  class Epoch;

  /// Makes a loader for training: this worker's shuffled part of every epoch (of its `own` samples
  /// if it has any), in full batches only. Throws as Sampler does.
  Loader(Dataset dataset, Normalization normalization, int workers, int rank,
         std::size_t batch_size, std::uint64_t seed, std::vector<std::size_t> own = {});
  /// Makes a loader for the part of `sampler`, which must be a sampler of the data set.
  Loader(Dataset dataset, Normalization normalization, Sampler sampler);

  /// For training on shards, or on samples in memory in the same order: the batches of `sampler`,
  /// whose shards are those of the data set.
  Loader(Dataset dataset, Normalization normalization, WindowSampler sampler);

  /// Makes the batches of `order` from a stream whose samples are as `form` says. The caller that
  /// lets the stream begin shares it. Samples that were removed or are malformed are left out of a
  /// batch, which is smaller then and may be empty. Waits in batch() until the stream has come to
  /// its end.
  Loader(Dataset form, Normalization normalization, std::shared_ptr<SampleStream> stream,
         std::shared_ptr<const StreamOrder> order);

  /// Makes a loader for evaluation: all samples in their order in every epoch. The last batch may
  /// be shorter. Throws Error(argument) on a batch size of 0.
  Loader(Dataset dataset, Normalization normalization, std::size_t batch_size);

  /// Changes every image of the batches to come, each by (seed, epoch, sample), whoever loads it.
  void augment(const Augmentation& augmentation, std::uint64_t seed);

  /// Mixes the samples of each batch to come (Zhang et al. 2018, arXiv 1710.09412). Sample i
  /// becomes s times itself and 1 - s times sample count-1-i, and Batch has both labels. A batch
  /// has one s, drawn from Beta(alpha, alpha) by (seed, epoch, round). It is at least 1/2, which
  /// gives the same mixtures. Throws Error(argument) unless alpha is positive and samples have one
  /// label.
  void mix(double alpha, std::uint64_t seed);

  /// From the next batch on trains on these samples, in as many rounds. Throws as Sampler does.
  void own(std::vector<std::size_t> samples);

  /// Threads that make a batch, the caller's among them; the same batch whatever their number.
  /// Throws Error(argument) unless positive.
  void threads(int count);

  const Dataset& dataset() const { return dataset_; }
  std::size_t batch_size() const { return batch_size_; }  ///< samples of a whole batch
  std::size_t rounds() const { return rounds_; }          ///< batches an epoch
  /// That fill() needs: two a sample where samples are mixed.
  std::size_t room_for_labels() const {
    return batch_size_ * dataset_.target_size() * (mixing_ ? 2 : 1);
  }

  /// Batch `round` of an epoch, any in any order, so that training resumes wherever it stopped.
  /// Throws Error(argument) when round is not below rounds() or the normalization does not fit. Of
  /// streamed samples, damaged ones are left out of the batch, which is smaller then. When all are
  /// damaged, a loader for training throws Error(data), one for evaluation gives an empty batch.
  const Batch& batch(std::size_t epoch, std::size_t round);

  /// Fills the caller's memory, with room for a whole batch (room_for_labels() of labels). Of
  /// labels and targets, it writes those that the data set has; the other may be empty.
  Batch fill(std::size_t epoch, std::size_t round, std::span<float> inputs,
             std::span<std::int32_t> labels, std::span<float> targets = {});

  /// for (const fast::Batch& batch : loader.epoch(0)) ...
  Epoch epoch(std::size_t epoch);

 private:
  class Crew;
  bool trains() const { return sampler_ || windows_ || stream_; }
  void make(std::size_t epoch, std::span<const std::size_t> samples, std::span<float> inputs,
            std::span<std::uint8_t> damaged) const;
  std::span<const std::size_t> samples_of(std::size_t epoch, std::size_t round);
  std::span<const std::size_t> leave_out_damaged(std::span<const std::size_t> samples,
                                                 std::span<float>& inputs);
  Batch fill_unmixed(std::size_t epoch, std::size_t round, std::span<float> inputs,
                     std::span<std::int32_t> labels, std::span<float> targets);
  Batch fill_from_stream(std::size_t epoch, std::size_t round, std::span<float> inputs,
                         std::span<std::int32_t> labels, std::span<float> targets) const;

  Dataset dataset_;
  Normalization normalization_;
  std::optional<Sampler> sampler_;
  std::optional<WindowSampler> windows_;
  std::shared_ptr<SampleStream> stream_;  ///< null: no stream
  std::shared_ptr<const StreamOrder> stream_order_;
  std::size_t batch_size_;
  std::size_t rounds_;
  std::vector<std::size_t> order_;
  std::optional<std::size_t> epoch_;   ///< whose order order_ is
  std::vector<std::size_t> good_;      ///< samples of the latest batch, of streamed data
  std::vector<std::uint8_t> damaged_;  ///< a place for each sample of the latest batch
  std::optional<Augmentation> augmentation_;
  std::uint64_t augmentation_seed_ = 0;
  std::optional<double> mixing_;  ///< alpha
  std::uint64_t mixing_seed_ = 0;
  std::shared_ptr<Crew> crew_;  ///< null: the caller alone
  std::vector<float> inputs_;
  std::vector<std::int32_t> labels_;
  std::vector<float> targets_;
  Batch batch_;
};

/// The batches of one epoch, to be gone through once.
class Loader::Epoch {
 public:
  struct Iterator {
    Loader* loader;
    std::size_t epoch;
    std::size_t round;
    const Batch& operator*() const { return loader->batch(epoch, round); }
    Iterator& operator++() {
      ++round;
      return *this;
    }
    bool operator==(std::default_sentinel_t) const { return round == loader->rounds(); }
  };

  Epoch(Loader& loader, std::size_t epoch) : loader_(&loader), epoch_(epoch) {}
  Iterator begin() const { return {loader_, epoch_, 0}; }
  std::default_sentinel_t end() const { return {}; }

 private:
  Loader* loader_;
  std::size_t epoch_;
};

inline Loader::Epoch Loader::epoch(std::size_t epoch) { return {*this, epoch}; }

/// Batches made ahead of their use, beside the training that uses them.
struct PrefetchOptions {
  std::size_t ahead = 2;                     ///< batches; 0: each is made when it is asked for
  std::shared_ptr<BatchMemory> memory = {};  ///< that batches are made in; null: the host's own
  Seconds deadline = Seconds(300);           ///< longest wait for one
};

/// A Loader whose next batches a thread of its own makes while the last one is used: the same
/// batches in the same order. Asked for another than the next it begins there anew. A failure while
/// a batch is made is thrown by the batch() that asks for it. One thread uses a prefetcher; its end
/// waits for the batch in the making.
class Prefetcher {
 public:
  explicit Prefetcher(Loader loader, PrefetchOptions options = {});
  Prefetcher(Prefetcher&&) noexcept;
  Prefetcher& operator=(Prefetcher&&) noexcept;
  ~Prefetcher();

  std::size_t rounds() const;

  /// Returns what Loader::batch() returns. It is valid until the next batch is asked for. Throws
  /// what Loader and BatchMemory throw, and Error(deadline).
  const Batch& batch(std::size_t epoch, std::size_t round);

  /// Does what Loader::own() does. Batches that were made ahead are made anew.
  void own(std::vector<std::size_t> samples);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fast::data
