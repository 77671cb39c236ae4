// Samples that come one after the other, without an end.
#pragma once

#include <fast/data/dataset.hpp>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace fast::data {

/// A stream of samples with numbers. Samples may be removed again. An implementation reads the
/// messages of a server. read() is for one thread, all others are for any.
class SampleStream {
 public:
  /// Samples `first` to `end` - 1 are there, unless some between them were removed.
  struct Extent {
    std::uint64_t first = 1, end = 1;
  };
  /// Those that are there and can be used, ascending.
  struct Samples {
    Dataset samples;                     ///< without meaning if there are none
    std::vector<std::uint64_t> numbers;  ///< one for each
  };

  virtual ~SampleStream() = default;
  virtual const std::string& name() const = 0;
  /// A stream that was made again has another. Empty: not known.
  virtual std::string identity() { return {}; }
  /// Does not wait. Throws Error(resource) when the server is lost.
  virtual Extent extent() = 0;
  /// Of the samples [begin, begin + count). Waits until the stream has come to the last of them:
  /// those that were removed or are malformed are left out. Throws Error(resource) when the server
  /// is lost, and after interrupt().
  virtual Samples read(std::uint64_t begin, std::size_t count) = 0;
  /// Why the first sample that was left out is not used; empty: all are.
  virtual std::string first_damage() const = 0;
  /// Ends a read() that waits, and those that follow.
  virtual void interrupt() = 0;
};

/// Which samples of a stream a worker takes. The samples are counted through: each round takes
/// `workers` × `batch_size` of them, and worker r the r-th block. What was removed is counted too,
/// so that all workers know their samples without a word. A run that continues with another number
/// of workers begins with the sample after those of the rounds that were made.
class StreamOrder {
 public:
  /// `rounds`: of an epoch.
  StreamOrder(int workers, int rank, std::size_t batch_size, std::size_t rounds);

  std::size_t batch_size() const { return batch_size_; }
  std::size_t rounds() const { return rounds_; }

  bool has_begun() const { return origin_.has_value(); }
  /// Round `round` of epoch `epoch` takes samples from `number` on. Call it before the first batch.
  void begin(std::uint64_t number, std::size_t epoch, std::size_t round);

  // The first sample of a round, of all workers and of this one. Call them after begin().
  std::uint64_t round_begin(std::size_t epoch, std::size_t round) const;
  std::uint64_t batch_begin(std::size_t epoch, std::size_t round) const;
  /// The number after the last sample of the round.
  std::uint64_t round_end(std::size_t epoch, std::size_t round) const;

  // The sample with which epoch 0 would have begun; equal on all workers of a run.
  std::int64_t origin() const { return origin_.value_or(0); }
  void begin_at_origin(std::int64_t origin) { origin_ = origin; }

  /// The identity of the stream whose samples have these numbers: SampleStream::identity(). Empty:
  /// not known.
  const std::string& stream() const { return stream_; }
  void set_stream(std::string identity) { stream_ = std::move(identity); }

 private:
  std::int64_t samples_before(std::size_t epoch, std::size_t round) const;

  std::size_t workers_, rank_, batch_size_, rounds_;
  std::optional<std::int64_t> origin_;
  std::string stream_;
};

/// A data set that says what the samples of a stream are, for those who ask for shapes and classes:
/// `samples` of them as `like` has them. They cannot be read.
Dataset form_of_stream(const Dataset& like, const std::string& name, std::size_t samples);

}  // namespace fast::data
