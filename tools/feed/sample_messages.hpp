// Training samples as messages of a stream: to publish, and to train on.
#pragma once

#include <fast/data/dataset.hpp>
#include <fast/data/sample_stream.hpp>

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "stream/broker.hpp"

namespace fast::feed {

// A training sample as a message of a stream.

// The body holds the values of one sample, row-major: bytes, or floats of 32 bits, little-endian.
inline constexpr char type_header[] = "X-Tensor-Type";    ///< u8 or f32
inline constexpr char shape_header[] = "X-Tensor-Shape";  ///< 1x28x28; may be left out
inline constexpr char label_header[] = "X-Label";         ///< a class, or several with spaces
inline constexpr char target_header[] = "X-Target";       ///< numbers with spaces between them

/// What a message holds. `values` is a part of the message.
struct Sample {
  std::string_view values;
  std::vector<std::int32_t> labels;
  std::vector<float> targets;
};

/// Throws Error(data) when the message is not a sample of the form of those of `form`, or has
/// values that are not finite, or that are no tokens below `tokens` if that is not 0.
Sample sample_in(const stream::Message& message, const data::Dataset& form,
                 std::int64_t tokens = 0);

/// Of sample `index`. Throws as Dataset::copy() does.
stream::Outgoing message_of(const data::Dataset& samples, std::size_t index,
                            const std::string& subject);

/// Publishes the samples of a data set.
struct Publication {
  std::string subject;
  /// Sample i has the id "ID-i": the stream drops a second message of an id within its duplicate
  /// window.
  std::string id;
  std::size_t outstanding = 256;  ///< messages that wait for the stream's answer
};

struct Published {
  std::size_t stored = 0, repeated = 0, left_out = 0;
};

/// In their order. Damaged samples are left out, and `left_out` is told why. Throws Error(resource)
/// when messages are not stored, and Error(argument) for samples that are too large for a message.
Published publish(const data::Dataset& samples, stream::Sink& sink, const Publication& publication,
                  const std::function<void(const std::string& why)>& left_out);

// The messages of a stream as samples to train on.

/// A sample's number is that of its message. Messages that are not samples of the form are left
/// out.
class MessageStream final : public data::SampleStream {
 public:
  /// `form`: as form_of_stream() makes it. `poll`: how often the end of the stream is looked for
  /// while it is awaited. `tokens`: whole numbers below it are required; 0: any finite ones.
  MessageStream(std::unique_ptr<stream::Broker> broker, const std::string& subject,
                data::Dataset form, std::chrono::milliseconds poll = std::chrono::milliseconds(20),
                std::int64_t tokens = 0);

  const std::string& name() const override { return form_.name(); }
  std::string identity() override { return reader_->identity(); }
  Extent extent() override;
  Samples read(std::uint64_t begin, std::size_t count) override;
  std::string first_damage() const override;
  void interrupt() override;

  /// Throws Error(data), naming the first reason, when the stream has messages and none of the
  /// first ones is a sample of the form: it is another stream than the one that was meant.
  void check_begin();

 private:
  void await(std::uint64_t end);
  Samples samples_in(const std::vector<stream::Message>& messages);
  void note(const std::string& why);

  std::unique_ptr<stream::Broker> broker_;
  std::unique_ptr<stream::Reader> reader_;
  data::Dataset form_;
  const std::chrono::milliseconds poll_;
  const std::int64_t tokens_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  bool interrupted_ = false;
  std::string first_damage_;
};

}  // namespace fast::feed
