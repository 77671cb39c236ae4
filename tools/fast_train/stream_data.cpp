#include "fast_train/stream_data.hpp"

#include <fast/core/error.hpp>

#include "core/message.hpp"
#include "data/files/origins.hpp"
#include "feed/sample_messages.hpp"
#include "nn/shape.hpp"
#include "stream/broker.hpp"

namespace fast_train {

using namespace fast;

namespace {

stream::Address address_of(const Options& o) {
  stream::Address address = stream::read_address(o.data, "--data");
  require(!address.subject.empty(), ErrorKind::argument,
          "--data {}: a subject of the stream is missing; nats://HOST:PORT/SUBJECT is required",
          address.shown);
  return address;
}

}  // namespace

void check_stream(const Options& o) {
  if (!is_stream(o)) return;
  const std::string shown = shown_data(o);
  require(o.load.limit > 0, ErrorKind::argument,
          "--data {}: a stream has no end; add --samples, the number of samples of an epoch",
          shown);
  require(!o.load.test_data.empty(), ErrorKind::argument,
          "--data {}: nothing to test on, and nothing that says what the samples are; add "
          "--test-data, a data set with a test part",
          shown);
}

std::vector<std::string> stream_notices(const Options& o) {
  return is_stream(o) ? address_of(o).notices : std::vector<std::string>{};
}

std::string shown_data(const Options& o) {
  if (!is_stream(o)) return o.data;
  const stream::Address address = address_of(o);
  return fmt::format("{}/{}", address.shown, address.subject);
}

data::Splits stream_splits(const Options& o, data::Splits tested) {
  data::refuse_origins(tested, o.load.test_data, "messages");
  tested.train = data::form_of_stream(tested.test, shown_data(o), o.load.limit);
  return tested;
}

std::shared_ptr<data::SampleStream> open_stream(const Options& o, const data::Dataset& form,
                                                int worker, const LogSink& log,
                                                const nn::ModelSpec& spec) {
  const stream::Address address = address_of(o);
  const auto log_of_worker = [worker, log](LogLevel level, std::string_view text) {
    if (log) log(level, fmt::format("worker {}: {}", worker, text));
  };
  auto samples = std::make_shared<feed::MessageStream>(
      stream::connect(address, {.name = "fast-train", .log = log_of_worker}), address.subject, form,
      std::chrono::milliseconds(20), nn::tokens_of(spec));
  samples->check_begin();
  return samples;
}

}  // namespace fast_train
