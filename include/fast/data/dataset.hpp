// Samples with their labels or targets, in memory or in files, shared by all who hold a copy.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <variant>
#include <vector>

namespace fast::data {

// Samples in files that need not fit in memory.

/// Samples that are read when they are needed. They lie in shards, one after the other: sample
/// numbers go on from shard to shard. Several threads may read at once.
class SampleSource {
 public:
  virtual ~SampleSource() = default;

  /// True: a value is a byte, which a batch has divided by 255. False: a value is a float.
  virtual bool is_bytes() const = 0;
  /// How many samples each shard has.
  virtual std::vector<std::size_t> shards() const = 0;
  /// Writes the values of one sample, row-major, as bytes or native floats. `into` has the size of
  /// a sample. Throws Error(data), naming file and sample, when the sample is damaged.
  virtual void read(std::size_t sample, std::span<std::byte> into) const = 0;

  /// Where a sample comes from: the path of an image. Empty: nothing names it.
  virtual std::string name_of(std::size_t /*sample*/) const { return {}; }
  /// Samples of the files that are not among these, because they are not complete.
  virtual std::size_t left_out() const { return 0; }
  /// Why the first of them is not; empty: none was left out.
  virtual std::string why_left_out() const { return {}; }
};

/// (value - mean) / stddev; one entry for all channels, or one a channel (the sample's first side).
/// Bytes are divided by 255 first.
struct Normalization {
  std::vector<float> mean = {0};
  std::vector<float> stddev = {1};
  /// What a table's reader has subtracted from each channel, in 64 bits, before it stored the
  /// values as floats: then `mean` is that of the stored values. Empty for most data: nothing. Of
  /// a value as the file has it, training sees (value - origin - mean) / stddev.
  std::vector<double> origins = {};
  /// Training sees (target - mean) / stddev of each of a sample's float targets, and a model's
  /// outputs are of that scale. Empty: targets are as the data has them.
  std::vector<float> target_mean = {}, target_stddev = {};

  /// Of tokens, which are numbers of words: bytes, or floats, stay as they are. Targets keep their
  /// scale.
  Normalization of_tokens(bool are_bytes) const;
};

/// What a model learns of the samples: class labels in [0, classes), or floats to be predicted.
/// There is one block of product(shape) values a sample, row-major. An empty shape is one value a
/// sample. A label for each step of a sequence has the shape {steps}.
struct Targets {
  std::variant<std::vector<std::int32_t>, std::vector<float>> values;
  std::vector<std::int64_t> shape = {};
  int classes = 0;  ///< of labels; 0 for floats
};

/// A value: copies and slices share one immutable storage, which threads may read at once. Images
/// stay bytes until a batch is made of them.
class Dataset {
 public:
  /// Row-major samples, images as C×H×W.
  using Values = std::variant<std::vector<std::uint8_t>, std::vector<float>>;

  Dataset() = default;

  /// `values` holds labels.size() × product(sample_shape) numbers. Throws Error(data) when it does
  /// not, and on a label outside [0, classes), naming the first.
  Dataset(std::string name, std::vector<std::int64_t> sample_shape, Values values,
          std::vector<std::int32_t> labels, int classes);

  /// Samples with labels or float targets of any shape. Throws Error(data) also on a target that is
  /// not finite, and on classes for float targets.
  Dataset(std::string name, std::vector<std::int64_t> sample_shape, Values values, Targets targets);

  /// The same of memory that `owner` keeps, in which nothing changes: no copy is made.
  struct Borrowed {
    std::variant<std::span<const std::uint8_t>, std::span<const float>> values;
    std::span<const std::int32_t> labels;
    std::shared_ptr<const void> owner;
    std::span<const float> targets = {};  ///< or labels, not both
    std::vector<std::int64_t> target_shape = {};
  };
  Dataset(std::string name, std::vector<std::int64_t> sample_shape, Borrowed memory, int classes);

  /// Samples that `source` reads when they are needed; their labels or targets are in memory.
  /// Throws as above.
  Dataset(std::string name, std::vector<std::int64_t> sample_shape,
          std::shared_ptr<const SampleSource> source, Targets targets);

  const std::string& name() const;
  std::size_t size() const { return size_; }  ///< samples
  int classes() const;                        ///< 0 for float targets
  const std::vector<std::int64_t>& sample_shape() const;
  std::size_t sample_size() const;  ///< product of the shape
  /// size() × target_size() of them; empty for float targets.
  std::span<const std::int32_t> labels() const;
  /// Likewise; empty for labels.
  std::span<const float> targets() const;
  const std::vector<std::int64_t>& target_shape() const;  ///< of one sample; empty: one value
  std::size_t target_size() const;                        ///< product of this shape
  /// The samples have one class label each, and nothing else.
  bool has_one_label() const { return classes() > 0 && target_shape().empty(); }
  bool is_bytes() const;  ///< a value is a byte, divided by 255 in batches; else a float
  /// As they are stored, size() × sample_size() of them. Throws Error(argument) for streamed and
  /// for selected samples.
  std::variant<std::span<const std::uint8_t>, std::span<const float>> values() const;
  /// One sample as it is stored: sample_size() bytes or native floats. Throws as SampleSource does.
  void copy(std::size_t index, std::span<std::byte> into) const;

  bool is_streamed() const;  ///< samples are read from files when they are needed
  /// How many of the samples each shard has; one shard in memory.
  std::vector<std::size_t> shards() const;
  /// What a streamed data set could not read so far, in this process: the message of the first
  /// such sample by its place; empty: nothing.
  std::string first_damage() const;
  /// Null in memory.
  const SampleSource* source() const;

  /// Samples [begin, begin + count), sharing this one's storage. Throws Error(argument) when they
  /// are not all there.
  Dataset slice(std::size_t begin, std::size_t count) const;
  /// The samples of `indices`, which ascend, sharing this one's storage. Labels or targets are
  /// copied. Throws Error(argument) when an index does not ascend or is not there.
  Dataset select(const std::vector<std::size_t>& indices) const;

  /// The same samples, with targets of the normalization's scale. Throws Error(argument) for
  /// labels, and when there is not one mean and one positive standard deviation a target of a
  /// sample.
  Dataset with_scaled_targets(const Normalization& normalization) const;

  /// Writes the samples of `indices`, normalized, one after the other; `out` holds indices.size() ×
  /// sample_size() values. Throws Error(argument) when the normalization does not fit the channels
  /// or has a standard deviation that is not positive.
  void gather(std::span<const std::size_t> indices, const Normalization& normalization,
              std::span<float> out) const;

  /// Gathers as above, but a damaged sample of a file is no error. Its place in `damaged` becomes
  /// 1, and its values are 0. `damaged` has a place for each index.
  void gather(std::span<const std::size_t> indices, const Normalization& normalization,
              std::span<float> out, std::span<std::uint8_t> damaged) const;

  /// Mean and standard deviation a channel over all samples (bytes divided by 255), for use as a
  /// normalization. A constant channel gets standard deviation 1. Of streamed samples, 1,024 are
  /// read, evenly spaced.
  Normalization measure() const;

 private:
  struct Storage;
  std::shared_ptr<const Storage> storage_;
  std::size_t begin_ = 0;
  std::size_t size_ = 0;
};

}  // namespace fast::data
