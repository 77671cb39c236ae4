#include "feed/sample_messages.hpp"

#include <fmt/ranges.h>

#include <cmath>
#include <cstring>
#include <fast/core/error.hpp>
#include <utility>

#include "core/message.hpp"
#include "core/text.hpp"
#include "nn/shape.hpp"

namespace fast::feed {
namespace {

std::string_view header(const stream::Message& message, const char* name) {
  const auto found = message.headers.find(name);
  return found == message.headers.end() ? std::string_view{} : found->second;
}

std::string text_of(const std::vector<std::int64_t>& shape) {
  return fmt::format("{}", fmt::join(shape, "x"));
}

const char* type_of(const data::Dataset& samples) { return samples.is_bytes() ? "u8" : "f32"; }

void check_values(const stream::Message& message, const data::Dataset& form) {
  const std::string_view type = header(message, type_header), shape = header(message, shape_header);
  require(type == type_of(form), ErrorKind::data,
          "message {}: {} is \"{}\"; the samples of the test part need {}", message.sequence,
          type_header, printable(std::string(type)), type_of(form));
  const std::string required = text_of(form.sample_shape());
  require(shape.empty() || shape == required, ErrorKind::data,
          "message {}: {} is \"{}\"; the samples of the test part are {}", message.sequence,
          shape_header, printable(std::string(shape)), required);
  const std::size_t bytes = form.sample_size() * (form.is_bytes() ? 1 : sizeof(float));
  require(message.body.size() == bytes, ErrorKind::data,
          "message {}: {} bytes; a sample of {} {} has {}", message.sequence, message.body.size(),
          required, type_of(form), bytes);
}

template <class T>
void check_numbers(const stream::Message& message, std::int64_t tokens) {
  for (std::size_t at = 0; at < message.body.size(); at += sizeof(T)) {
    T stored;
    std::memcpy(&stored, message.body.data() + at, sizeof(T));
    const auto value = static_cast<double>(stored);
    require(std::isfinite(value), ErrorKind::data, "message {}: value {} is {}; it must be finite",
            message.sequence, at / sizeof(T), value);
    require(tokens == 0 || nn::is_token(value, tokens), ErrorKind::data,
            "message {}: token {}; whole numbers from 0 to {} are required", message.sequence,
            value, tokens - 1);
  }
}

template <class T>
std::vector<T> numbers_in(const stream::Message& message, const char* name, std::size_t count) {
  std::vector<T> numbers;
  bool is_good = true;
  for (const std::string_view part : split_text(header(message, name), ' ')) {
    T number{};
    is_good = reads(part, number) && is_good;
    numbers.push_back(number);
  }
  require(is_good && numbers.size() == count, ErrorKind::data,
          "message {}: {} is \"{}\"; {} number{} required", message.sequence, name,
          printable(std::string(header(message, name))), count, count == 1 ? " is" : "s are");
  return numbers;
}

}  // namespace

Sample sample_in(const stream::Message& message, const data::Dataset& form, std::int64_t tokens) {
  require(!message.has_damaged_headers, ErrorKind::data, "message {}: {}", message.sequence,
          stream::damaged_headers);
  check_values(message, form);
  if (!form.is_bytes()) {
    check_numbers<float>(message, tokens);
  } else if (tokens > 0) {
    check_numbers<std::uint8_t>(message, tokens);
  }
  Sample sample{message.body, {}, {}};
  if (!form.targets().empty()) {
    sample.targets = numbers_in<float>(message, target_header, form.target_size());
    for (const float target : sample.targets)
      require(std::isfinite(target), ErrorKind::data, "message {}: {} is {}; it must be finite",
              message.sequence, target_header, target);
    return sample;
  }
  sample.labels = numbers_in<std::int32_t>(message, label_header, form.target_size());
  for (const std::int32_t label : sample.labels)
    require(label >= 0 && label < form.classes(), ErrorKind::data,
            "message {}: {} is {}; classes are 0 to {}", message.sequence, label_header, label,
            form.classes() - 1);
  return sample;
}

stream::Outgoing message_of(const data::Dataset& samples, std::size_t index,
                            const std::string& subject) {
  stream::Outgoing message{subject, {}, {}, {}};
  message.body.resize(samples.sample_size() * (samples.is_bytes() ? 1 : sizeof(float)));
  samples.copy(index, std::as_writable_bytes(std::span(message.body)));
  const std::size_t each = samples.target_size();
  message.headers["Content-Type"] = "application/octet-stream";
  message.headers[type_header] = type_of(samples);
  message.headers[shape_header] = text_of(samples.sample_shape());
  if (samples.targets().empty()) {
    message.headers[label_header] =
        fmt::format("{}", fmt::join(samples.labels().subspan(index * each, each), " "));
  } else {
    message.headers[target_header] =
        fmt::format("{}", fmt::join(samples.targets().subspan(index * each, each), " "));
  }
  return message;
}

namespace {

std::size_t bytes_of(const stream::Outgoing& message) {
  constexpr std::size_t around = 64;  // lines, and the id's header
  std::size_t bytes = message.body.size() + message.id.size() + around;
  for (const auto& [name, value] : message.headers) bytes += name.size() + value.size() + 4;
  return bytes;
}

}  // namespace

Published publish(const data::Dataset& samples, stream::Sink& sink, const Publication& publication,
                  const std::function<void(const std::string& why)>& left_out) {
  require(publication.outstanding > 0, ErrorKind::argument,
          "publish: 0 outstanding messages; at least 1 is required");
  Published done;
  std::vector<stream::Outgoing> messages;
  const auto send = [&] {
    if (messages.empty()) return;
    for (const stream::Stored stored : sink.publish(messages))
      ++(stored == stream::Stored::now ? done.stored : done.repeated);
    messages.clear();
  };
  for (std::size_t i = 0; i < samples.size(); ++i) {
    try {
      messages.push_back(message_of(samples, i, publication.subject));
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::data) throw;
      ++done.left_out;
      left_out(error.what());
      continue;
    }
    messages.back().id = fmt::format("{}-{}", publication.id, i);
    const std::size_t bytes = bytes_of(messages.back());
    require(bytes <= sink.most_bytes(), ErrorKind::argument,
            "publish: sample {} needs a message of {} bytes, the server takes {}; raise its "
            "max_payload",
            i, bytes, sink.most_bytes());
    if (messages.size() == publication.outstanding) send();
  }
  send();
  return done;
}

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
