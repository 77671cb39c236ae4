#include "feed/message_stream.hpp"

#include <cstring>
#include <fast/core/error.hpp>
#include <utility>

#include "feed/sample_message.hpp"

namespace fast::feed {
namespace {

constexpr std::size_t looked_at_first = 16;

}  // namespace

MessageStream::MessageStream(std::unique_ptr<stream::Broker> broker, const std::string& subject,
                             data::Dataset form, std::chrono::milliseconds poll,
                             std::int64_t tokens)
    : broker_(std::move(broker)),
      reader_(broker_->reader(subject)),
      form_(std::move(form)),
      poll_(poll),
      tokens_(tokens) {}

data::SampleStream::Extent MessageStream::extent() {
  const stream::Extent now = reader_->extent();
  return {now.first, now.end};
}

std::string MessageStream::first_damage() const {
  const std::lock_guard lock(mutex_);
  return first_damage_;
}

void MessageStream::note(const std::string& why) {
  const std::lock_guard lock(mutex_);
  if (first_damage_.empty()) first_damage_ = why;
}

void MessageStream::interrupt() {
  {
    const std::lock_guard lock(mutex_);
    interrupted_ = true;
  }
  changed_.notify_all();
  reader_->interrupt();
}

void MessageStream::await(std::uint64_t end) {
  while (extent().end < end) {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, poll_, [this] { return interrupted_; });
    require(!interrupted_, ErrorKind::resource, "{}: samples are not awaited: the run ends",
            form_.name());
  }
}

data::SampleStream::Samples MessageStream::samples_in(
    const std::vector<stream::Message>& messages) {
  std::string values;
  data::Targets targets{{}, form_.target_shape(), form_.classes()};
  std::vector<std::int32_t> labels;
  std::vector<float> numbers;
  Samples all;
  for (const stream::Message& message : messages) {
    try {
      const Sample sample = sample_in(message, form_, tokens_);
      values += sample.values;
      labels.insert(labels.end(), sample.labels.begin(), sample.labels.end());
      numbers.insert(numbers.end(), sample.targets.begin(), sample.targets.end());
      all.numbers.push_back(message.sequence);
    } catch (const Error& error) {
      note(error.what());
    }
  }
  if (all.numbers.empty()) return all;
  if (form_.targets().empty()) {
    targets.values = std::move(labels);
  } else {
    targets.values = std::move(numbers);
  }
  const auto dataset = [&]<class T>(std::vector<T> own) {
    std::memcpy(own.data(), values.data(), values.size());
    all.samples = {form_.name(), form_.sample_shape(), std::move(own), std::move(targets)};
  };
  const std::size_t count = all.numbers.size() * form_.sample_size();
  form_.is_bytes() ? dataset(std::vector<std::uint8_t>(count)) : dataset(std::vector<float>(count));
  return all;
}

data::SampleStream::Samples MessageStream::read(std::uint64_t begin, std::size_t count) {
  await(begin + count);
  const std::vector<stream::Message> messages = reader_->read(begin, count);
  if (messages.size() < count) {
    std::uint64_t missing = begin;
    for (const stream::Message& message : messages) {
      if (message.sequence != missing) break;
      ++missing;
    }
    note(fmt::format("message {}: it is no longer in the stream", missing));
  }
  return samples_in(messages);
}

void MessageStream::check_begin() {
  const Extent now = extent();
  const std::vector<stream::Message> first = reader_->read(now.first, looked_at_first);
  std::string why;
  for (const stream::Message& message : first) {
    try {
      sample_in(message, form_, tokens_);
      return;
    } catch (const Error& error) {
      if (why.empty()) why = error.what();
    }
  }
  require(why.empty(), ErrorKind::data,
          "{}: none of the first {} messages is a sample like those of the test part: {}",
          form_.name(), first.size(), why);
}

}  // namespace fast::feed
