#include <fast/data/sample_stream.hpp>

#include <fast/core/error.hpp>

namespace fast::data {

StreamOrder::StreamOrder(int workers, int rank, std::size_t batch_size, std::size_t rounds)
    : workers_(static_cast<std::size_t>(workers)),
      rank_(static_cast<std::size_t>(rank)),
      batch_size_(batch_size),
      rounds_(rounds) {
  require(workers > 0 && rank >= 0 && rank < workers, ErrorKind::argument,
          "stream: worker {} of {}; ranks go from 0 to the number of workers - 1", rank, workers);
  require(batch_size > 0 && rounds > 0, ErrorKind::argument,
          "stream: batches of {} samples, {} rounds an epoch; both must be at least 1: give an "
          "epoch more samples, or take a smaller batch size",
          batch_size, rounds);
}

std::int64_t StreamOrder::samples_before(std::size_t epoch, std::size_t round) const {
  return static_cast<std::int64_t>((epoch * rounds_ + round) * workers_ * batch_size_);
}

void StreamOrder::begin(std::uint64_t number, std::size_t epoch, std::size_t round) {
  origin_ = static_cast<std::int64_t>(number) - samples_before(epoch, round);
}

std::uint64_t StreamOrder::round_begin(std::size_t epoch, std::size_t round) const {
  require(has_begun(), ErrorKind::argument, "stream: no place to begin is set; call begin() first");
  return static_cast<std::uint64_t>(*origin_ + samples_before(epoch, round));
}

std::uint64_t StreamOrder::batch_begin(std::size_t epoch, std::size_t round) const {
  return round_begin(epoch, round) + rank_ * batch_size_;
}

std::uint64_t StreamOrder::round_end(std::size_t epoch, std::size_t round) const {
  return round_begin(epoch, round) + workers_ * batch_size_;
}

namespace {

/// Samples of a form only.
class NoSamples final : public SampleSource {
 public:
  NoSamples(bool is_bytes, std::size_t count) : is_bytes_(is_bytes), count_(count) {}
  bool is_bytes() const override { return is_bytes_; }
  std::vector<std::size_t> shards() const override { return {count_}; }
  void read(std::size_t, std::span<std::byte>) const override {
    fail(ErrorKind::argument, "stream: samples of a stream are read in batches only");
  }

 private:
  bool is_bytes_;
  std::size_t count_;
};

}  // namespace

Dataset form_of_stream(const Dataset& like, const std::string& name, std::size_t samples) {
  Targets targets{{}, like.target_shape(), like.classes()};
  const std::size_t count = samples * like.target_size();
  if (like.targets().empty()) {
    targets.values = std::vector<std::int32_t>(count, 0);
  } else {
    targets.values = std::vector<float>(count, 0);
  }
  return {name, like.sample_shape(), std::make_shared<NoSamples>(like.is_bytes(), samples),
          std::move(targets)};
}

}  // namespace fast::data
