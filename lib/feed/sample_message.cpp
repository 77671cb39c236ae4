#include "feed/sample_message.hpp"

#include <fmt/ranges.h>

#include <cmath>
#include <cstring>
#include <fast/core/error.hpp>
#include <fast/core/message.hpp>

#include "core/text.hpp"
#include "nn/tokens.hpp"

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

}  // namespace fast::feed
