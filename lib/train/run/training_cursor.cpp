#include "train/run/training_cursor.hpp"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <fast/core/error.hpp>

namespace fast::train {

namespace {

/// The first sample of a stream that no worker has trained on.
constexpr auto stream_next = "fast.stream_next";
/// Of that stream: data::SampleStream::identity().
constexpr auto stream_identity = "fast.stream_identity";

}  // namespace

std::size_t place_in_epoch(std::int64_t round, std::int64_t of, std::size_t rounds) {
  if (of <= 0 || round >= of || rounds == 0) return 0;
  const double part = static_cast<double>(round) / static_cast<double>(of);
  const auto nearest = std::llround(part * static_cast<double>(rounds));
  return std::min(static_cast<std::size_t>(nearest), rounds - 1);
}

std::int64_t metadata_number(const Metadata& metadata, const std::string& name) {
  const auto found = metadata.find(name);
  std::int64_t value = -1;
  if (found != metadata.end()) {
    const std::string& text = found->second;
    std::from_chars(text.data(), text.data() + text.size(), value);
  }
  require(value >= 0, ErrorKind::data,
          "checkpoint: its metadata have no \"{}\"; it was not written by a training run", name);
  return value;
}

int TrainingCursor::epoch_of_past(std::int64_t rounds_back) const {
  TrainingCursor past(epoch_rounds_);
  past.take_place(epoch_, 0, static_cast<std::int64_t>(round_) - rounds_back);
  return past.epoch_;
}

void TrainingCursor::advance(std::int64_t rounds_made) {
  for (std::int64_t* rounds : {&rounds_, &own_rounds_})
    *rounds = std::max<std::int64_t>(0, *rounds + rounds_made);
  take_place(epoch_, 0, static_cast<std::int64_t>(round_) + rounds_made);
  if (epoch_ >= 0) return;
  epoch_ = 0;
  round_ = 0;
}

Metadata TrainingCursor::to_metadata() const {
  Metadata metadata{{"fast.round", std::to_string(own_rounds_)},
                    {"fast.epoch", std::to_string(epoch_)},
                    {"fast.epoch_round", std::to_string(round_)},
                    {"fast.epoch_rounds", std::to_string(epoch_rounds_)}};
  if (stream_ && stream_->has_begun()) {
    metadata[stream_next] =
        std::to_string(stream_->round_begin(static_cast<std::size_t>(epoch_), round_));
    metadata[stream_identity] = stream_->stream();
  }
  return metadata;
}

void TrainingCursor::take_place(const Metadata& metadata) {
  epoch_ = static_cast<int>(metadata_number(metadata, "fast.epoch"));
  round_ = place_in_epoch(metadata_number(metadata, "fast.epoch_round"),
                          metadata_number(metadata, "fast.epoch_rounds"), epoch_rounds_);
  // A run on a file may go on with a stream.
  if (!stream_ || !metadata.contains(stream_next)) return;
  stream_->begin(static_cast<std::uint64_t>(metadata_number(metadata, stream_next)),
                 static_cast<std::size_t>(epoch_), round_);
  const auto identity = metadata.find(stream_identity);
  if (identity != metadata.end()) stream_->set_stream(identity->second);
}

void TrainingCursor::take_place(int epoch, std::int64_t begins, std::int64_t round) {
  const auto rounds = static_cast<std::int64_t>(epoch_rounds_);
  const std::int64_t past = round - begins;
  const std::int64_t epochs = (past >= 0 ? past : past - rounds + 1) / rounds;
  epoch_ = epoch + static_cast<int>(epochs);
  round_ = static_cast<std::size_t>(past - epochs * rounds);
}

}  // namespace fast::train
