// The messages of a stream as samples to train on.
#pragma once

#include <fast/data/sample_stream.hpp>

#include <chrono>
#include <condition_variable>
#include <memory>
#include <mutex>

#include "stream/broker.hpp"

namespace fast::feed {

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
