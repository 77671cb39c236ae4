#include "stream/nats/source.hpp"

#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/core/message.hpp>
#include <thread>

#include "stream/nats/message.hpp"

namespace fast::stream {
namespace {

constexpr std::chrono::milliseconds pause_after_trouble{100}, least_wait{10};

std::int64_t nanoseconds(std::chrono::milliseconds time) {
  return std::chrono::nanoseconds(time).count();
}

/// The client library reads all of them or none: an empty value is a fault for it.
void read_headers(natsMsg* from, Message& into) {
  const char** names = nullptr;
  int count = 0;
  const natsStatus status = natsMsgHeader_Keys(from, &names, &count);
  into.has_damaged_headers = status != NATS_OK && status != NATS_NOT_FOUND;
  if (status != NATS_OK) return;
  for (int i = 0; i < count; ++i) {
    const char* value = nullptr;
    if (natsMsgHeader_Get(from, names[i], &value) == NATS_OK) into.headers[names[i]] = value;
  }
  std::free(static_cast<void*>(names));
}

}  // namespace

Message message_of_handle(natsMsg* from) {
  Message message;
  message.receipt = std::shared_ptr<natsMsg>(from, natsMsg_Destroy);
  message.subject = natsMsg_GetSubject(from);
  message.body.assign(natsMsg_GetData(from), static_cast<std::size_t>(natsMsg_GetDataLength(from)));
  read_headers(from, message);
  jsMsgMetaData* facts = nullptr;
  if (natsMsg_GetMetaData(&facts, from) == NATS_OK) {
    message.sequence = facts->Sequence.Stream;
    message.stored_ns = facts->Timestamp;
    jsMsgMetaData_Destroy(facts);
  }
  return message;
}

ContextHandle context_of(const Connection& connection) {
  jsCtx* made = nullptr;
  const natsStatus status = natsConnection_JetStream(&made, connection.handle(), nullptr);
  require(status == NATS_OK, ErrorKind::resource, "{}: {}", connection.shown(), text_of(status));
  return ContextHandle(made);
}

NatsSource::NatsSource(std::shared_ptr<const Connection> connection, const std::string& stream,
                       const SourceOptions& options)
    : connection_(std::move(connection)),
      consumer_(options.consumer),
      context_(context_of(*connection_)) {
  make_consumer(stream, options);
  subscribe(stream, options);
}

/// The server would change the subject of a consumer that is there, and programs that use it would
/// get no messages of theirs any more.
void NatsSource::require_own_subject(const std::string& stream, const std::string& subject) {
  jsConsumerInfo* found = nullptr;
  jsErrCode code{};
  if (js_GetConsumerInfo(&found, context_.get(), stream.c_str(), consumer_.c_str(), nullptr,
                         &code) != NATS_OK)
    return;
  const ConsumerInfoHandle owned(found);
  const char* has = found->Config->FilterSubject;
  require(has == nullptr || *has == '\0' || subject == has, ErrorKind::argument,
          "{}: the consumer {} of the stream {} has the subject {}, not {}; choose another name "
          "of the consumer (--consumer), or remove the one that is there",
          connection_->shown(), printable(consumer_), printable(stream), printable(has),
          printable(subject));
}

void NatsSource::make_consumer(const std::string& stream, const SourceOptions& options) {
  require_own_subject(stream, options.subject);
  jsConsumerConfig wanted;
  jsConsumerConfig_Init(&wanted);
  wanted.Durable = consumer_.c_str();
  wanted.AckPolicy = js_AckExplicit;
  wanted.AckWait = nanoseconds(options.acknowledge_within);
  wanted.MaxAckPending = static_cast<std::int64_t>(options.most_held);
  wanted.FilterSubject = options.subject.c_str();
  jsConsumerInfo* made = nullptr;
  jsErrCode code{};
  const natsStatus status =
      js_AddConsumer(&made, context_.get(), stream.c_str(), &wanted, nullptr, &code);
  const ConsumerInfoHandle owned(made);
  require(status == NATS_OK, ErrorKind::resource,
          "{}: the stream {} refuses the consumer {}: {}; choose another name of the consumer, or "
          "remove the one that is there",
          connection_->shown(), printable(stream), printable(consumer_),
          printable(text_of(status)));
  acknowledged_before_ = made->AckFloor.Stream;
}

void NatsSource::subscribe(const std::string& stream, const SourceOptions& options) {
  jsSubOptions bound;
  jsSubOptions_Init(&bound);
  bound.Stream = stream.c_str();
  bound.Consumer = consumer_.c_str();
  natsSubscription* made = nullptr;
  jsErrCode code{};
  const natsStatus status = js_PullSubscribe(&made, context_.get(), options.subject.c_str(),
                                             consumer_.c_str(), nullptr, &bound, &code);
  require(status == NATS_OK, ErrorKind::resource,
          "{}: the consumer {} of the stream {} cannot be used: {}", connection_->shown(),
          printable(consumer_), printable(stream), printable(text_of(status)));
  subscription_.reset(made);
}

/// A lost connection is in require_alive(). Other troubles end the program when they last: a
/// consumer that was removed, a stream that is no more.
void NatsSource::trouble(natsStatus status) {
  const std::string text = text_of(status);
  const auto now = Connection::Clock::now();
  if (!trouble_since_) trouble_since_ = now;
  require(now - *trouble_since_ < connection_->patience(), ErrorKind::resource,
          "{}: the consumer {} gives no messages: {}; see whether its stream is there",
          connection_->shown(), printable(consumer_), printable(text));
  std::this_thread::sleep_for(pause_after_trouble);
}

std::vector<Message> NatsSource::fetch(std::size_t most, std::chrono::milliseconds wait) {
  connection_->require_alive();
  std::vector<Message> messages;
  if (!connection_->is_up()) {
    std::this_thread::sleep_for(pause_after_trouble);
    return messages;
  }
  jsFetchRequest wanted;
  jsFetchRequest_Init(&wanted);
  wanted.Batch = static_cast<int>(most);
  // The server answers as soon as any message is there. A request without an end, whose answer is
  // lost with the connection, would wait for ever.
  wanted.NoWait = true;
  wanted.Expires = nanoseconds(std::max(wait, least_wait));
  natsMsgList found{};
  const natsStatus status = natsSubscription_FetchRequest(&found, subscription_.get(), &wanted);
  for (int i = 0; i < found.Count; ++i) {
    messages.push_back(message_of_handle(found.Msgs[i]));
    found.Msgs[i] = nullptr;
  }
  natsMsgList_Destroy(&found);
  const bool is_good = status == NATS_OK || status == NATS_TIMEOUT || status == NATS_NOT_FOUND;
  if (is_good || !messages.empty()) {
    trouble_since_.reset();
  } else {
    trouble(status);
  }
  return messages;
}

void NatsSource::acknowledge(const Message& message) {
  natsMsg_Ack(static_cast<natsMsg*>(message.receipt.get()), nullptr);
}

}  // namespace fast::stream
