#include <algorithm>
#include <atomic>
#include <fast/core/error.hpp>
#include <thread>
#include <utility>

#include "core/message.hpp"
#include "stream/nats/connection.hpp"

namespace fast::stream {
namespace {

constexpr std::chrono::milliseconds pause_between_tries{100}, fetch_wait{250}, least_wait{10};
/// After which the server forgets the consumer of a program that is gone.
constexpr std::chrono::seconds forget_after{30};
constexpr std::size_t most_at_once = 1000;
/// The server cuts a connection for which 64 MB wait.
constexpr std::size_t most_bytes_at_once = std::size_t{16} << 20;
/// Of a message beside its body.
constexpr std::size_t bytes_of_headers = 512;
constexpr std::chrono::milliseconds asks_every{20};

std::int64_t count_of(std::chrono::nanoseconds time) { return time.count(); }

/// Whether a request for messages has been answered, with or without some.
bool is_answer(natsStatus status) {
  return status == NATS_OK || status == NATS_TIMEOUT || status == NATS_NOT_FOUND;
}

using Since = std::optional<Connection::Clock::time_point>;

/// A lost connection is in require_alive(). Other troubles end the program when they last: a
/// consumer that was removed, a stream that is no more.
void endure(const Connection& connection, Since& since, const std::string& what,
            const std::string& why, std::string_view cause) {
  const auto now = Connection::Clock::now();
  if (!since) since = now;
  require(now - *since < connection.patience(), ErrorKind::resource,
          "{}: the {} gives no messages: {}; see whether {} is there", connection.shown(), what,
          printable(why), cause);
  std::this_thread::sleep_for(pause_between_tries);
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

/// Takes the handle over.
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

/// Messages of a stream by their numbers.
class NatsReader final : public Reader {
 public:
  NatsReader(std::shared_ptr<const Connection> connection, std::string stream, std::string subject)
      : connection_(std::move(connection)),
        stream_(std::move(stream)),
        subject_(std::move(subject)),
        context_(context_of(*connection_)) {
    const natsStatus status = ask_extent(extent_);
    require(status == NATS_OK, ErrorKind::resource, "{}: the stream {} cannot be read: {}",
            connection_->shown(), printable(stream_), printable(text_of(status)));
  }

  ~NatsReader() override { unsubscribe(); }

  std::string identity() override { return std::to_string(created_); }

  /// A stream that a server in reach does not show for long is gone.
  Extent extent() override {
    connection_->require_alive();
    const auto now = Connection::Clock::now();
    {
      const std::lock_guard lock(mutex_);
      if (now - asked_at_ < asks_every) return extent_;
      asked_at_ = now;
    }
    Extent found;
    const bool asks = connection_->is_up();
    const natsStatus status = asks ? ask_extent(found) : NATS_OK;
    const std::lock_guard lock(mutex_);
    if (status == NATS_OK) {
      hidden_since_.reset();
      return asks ? extent_ = found : extent_;
    }
    if (!hidden_since_) hidden_since_ = now;
    require(now - *hidden_since_ < connection_->patience(), ErrorKind::resource,
            "{}: the stream {} cannot be read: {}; see whether it is there", connection_->shown(),
            printable(stream_), printable(text_of(status)));
    return extent_;
  }

  std::vector<Message> read(std::uint64_t begin, std::size_t count) override {
    trouble_since_.reset();
    std::uint64_t end = known().end;
    if (end < begin + count) end = extent().end;
    end = std::min(end, begin + count);
    std::vector<Message> messages;
    std::uint64_t at = begin;
    while (at < end) {
      require(!interrupted_, ErrorKind::resource, "{}: messages are not read: the program ends",
              connection_->shown());
      connection_->require_alive();
      if (!connection_->is_up()) {
        std::this_thread::sleep_for(pause_between_tries);
        continue;
      }
      last_status_ = subscribe(at);
      if (last_status_ != NATS_OK) {
        trouble();
        continue;
      }
      const Fetched fetched = fetch(end, messages);
      at = next_;
      if (fetched == Fetched::none_left) break;
      fetched == Fetched::some ? trouble_since_.reset() : trouble();
    }
    return messages;
  }

  void interrupt() override { interrupted_ = true; }

 private:
  Extent known() {
    const std::lock_guard lock(mutex_);
    return extent_;
  }

  /// The server's answer, if there is one. Throws Error(resource) if the stream is another one.
  /// A stream that was deleted and made again counts its messages anew.
  natsStatus ask_extent(Extent& into) {
    jsStreamInfo* found = nullptr;
    jsErrCode code{};
    const natsStatus status =
        js_GetStreamInfo(&found, context_.get(), stream_.c_str(), nullptr, &code);
    const StreamInfoHandle info(found);
    if (status != NATS_OK) return status;
    std::int64_t first_seen = 0;
    const bool is_first = created_.compare_exchange_strong(first_seen, info->Created);
    require(
        is_first || first_seen == info->Created, ErrorKind::resource,
        "{}: the stream {} was deleted and made again: its numbers are those of other messages; "
        "begin a new run on it",
        connection_->shown(), printable(stream_));
    const std::uint64_t end = info->State.LastSeq + 1;
    into = {info->State.Msgs == 0 ? end : info->State.FirstSeq, end};
    return NATS_OK;
  }

  /// By an ephemeral consumer.
  natsStatus subscribe(std::uint64_t begin) {
    if (subscription_ && next_ == begin) return NATS_OK;
    unsubscribe();
    jsSubOptions with;
    jsSubOptions_Init(&with);
    with.Stream = stream_.c_str();
    with.Config.DeliverPolicy = js_DeliverByStartSequence;
    with.Config.OptStartSeq = begin;
    with.Config.AckPolicy = js_AckNone;
    with.Config.MemoryStorage = true;
    with.Config.InactiveThreshold = count_of(forget_after);
    natsSubscription* made = nullptr;
    jsErrCode code{};
    const natsStatus status =
        js_PullSubscribe(&made, context_.get(), subject_.c_str(), nullptr, nullptr, &with, &code);
    subscription_.reset(made);
    next_ = begin;
    delivered_ = 0;
    Extent now;
    return status == NATS_OK ? ask_extent(now) : status;
  }

  /// Removes the consumer; the server forgets one that it cannot be told of.
  void unsubscribe() {
    if (subscription_ && connection_->is_up()) natsSubscription_Unsubscribe(subscription_.get());
    subscription_.reset();
  }

  enum class Fetched { some, none_left, failed };

  /// Adds messages up to `end`.
  Fetched fetch(std::uint64_t end, std::vector<Message>& into) {
    jsFetchRequest wanted;
    jsFetchRequest_Init(&wanted);
    const std::size_t fit = std::clamp<std::size_t>(most_bytes_at_once / largest_, 1, most_at_once);
    wanted.Batch = static_cast<int>(std::min<std::uint64_t>(end - next_, fit));
    wanted.NoWait = true;
    wanted.Expires = count_of(fetch_wait);
    natsMsgList found{};
    last_status_ = natsSubscription_FetchRequest(&found, subscription_.get(), &wanted);
    const int count = found.Count;
    bool is_whole = true;
    for (int i = 0; i < count && is_whole; ++i) {
      is_whole = is_next(found.Msgs[i]);
      if (!is_whole) break;
      Message message = message_of_handle(std::exchange(found.Msgs[i], nullptr));
      next_ = message.sequence + 1;
      largest_ = std::max(largest_, message.body.size() + bytes_of_headers);
      if (message.sequence < end) into.push_back(std::move(message));
    }
    natsMsgList_Destroy(&found);
    if (!is_whole) return Fetched::failed;
    if (count > 0) return Fetched::some;
    return is_answer(last_status_) ? look_for_more(end) : Fetched::failed;
  }

  /// After an answer without messages: whether the stream has further ones, or some that the
  /// consumer has sent were lost on the way.
  Fetched look_for_more(std::uint64_t end) {
    jsConsumerInfo* found = nullptr;
    jsErrCode code{};
    last_status_ = natsSubscription_GetConsumerInfo(&found, subscription_.get(), nullptr, &code);
    const ConsumerInfoHandle info(found);
    if (last_status_ != NATS_OK) return Fetched::failed;
    const bool is_complete = info->Delivered.Consumer == delivered_ && info->NumPending == 0;
    return is_complete && extent().end >= end ? Fetched::none_left : Fetched::failed;
  }

  /// Whether it follows the one before it.
  bool is_next(natsMsg* message) {
    jsMsgMetaData* facts = nullptr;
    if (natsMsg_GetMetaData(&facts, message) != NATS_OK) return false;
    const bool follows = facts->Sequence.Consumer == delivered_ + 1;
    jsMsgMetaData_Destroy(facts);
    if (follows) ++delivered_;
    return follows;
  }

  void trouble() {
    const std::string why = text_of(last_status_);
    unsubscribe();
    endure(*connection_, trouble_since_, fmt::format("stream {}", printable(stream_)), why, "it");
  }

  std::shared_ptr<const Connection> connection_;
  const std::string stream_, subject_;
  ContextHandle context_;
  SubscriptionHandle subscription_;  ///< of a consumer that is at next_; null: none
  std::uint64_t next_ = 0;
  natsStatus last_status_ = NATS_OK;  ///< of the client library's latest call for messages
  std::uint64_t delivered_ = 0;       ///< messages that this consumer has sent
  Since trouble_since_;
  std::atomic<bool> interrupted_ = false;
  std::atomic<std::int64_t> created_ = 0;  ///< when the stream was made, as the server tells it
  std::size_t largest_ = std::size_t{1} << 20;  ///< bytes of a message, not less
  std::mutex mutex_;                            ///< guards what follows
  Extent extent_;
  Connection::Clock::time_point asked_at_{};
  Since hidden_since_;  ///< by a server in reach
};

/// Messages of a durable pull consumer.
class NatsSource final : public Source {
 public:
  NatsSource(std::shared_ptr<const Connection> connection, const std::string& stream,
             const SourceOptions& options)
      : connection_(std::move(connection)),
        consumer_(options.consumer),
        context_(context_of(*connection_)) {
    make_consumer(stream, options);
    subscribe(stream, options);
  }

  std::vector<Message> fetch(std::size_t most, std::chrono::milliseconds wait) override {
    connection_->require_alive();
    std::vector<Message> messages;
    if (!connection_->is_up()) {
      std::this_thread::sleep_for(pause_between_tries);
      return messages;
    }
    jsFetchRequest wanted;
    jsFetchRequest_Init(&wanted);
    wanted.Batch = static_cast<int>(most);
    // The server answers as soon as any message is there. A request without an end, whose answer is
    // lost with the connection, would wait for ever.
    wanted.NoWait = true;
    wanted.Expires = count_of(std::max(wait, least_wait));
    natsMsgList found{};
    const natsStatus status = natsSubscription_FetchRequest(&found, subscription_.get(), &wanted);
    for (int i = 0; i < found.Count; ++i) {
      messages.push_back(message_of_handle(found.Msgs[i]));
      found.Msgs[i] = nullptr;
    }
    natsMsgList_Destroy(&found);
    if (is_answer(status) || !messages.empty()) {
      trouble_since_.reset();
    } else {
      endure(*connection_, trouble_since_, fmt::format("consumer {}", printable(consumer_)),
             text_of(status), "its stream");
    }
    return messages;
  }

  void acknowledge(const Message& message) override {
    natsMsg_Ack(static_cast<natsMsg*>(message.receipt.get()), nullptr);
  }

  std::uint64_t acknowledged_before() const override { return acknowledged_before_; }

 private:
  /// The server would change the subject of a consumer that is there, and programs that use it
  /// would get no messages of theirs any more.
  void require_own_subject(const std::string& stream, const std::string& subject) {
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

  void make_consumer(const std::string& stream, const SourceOptions& options) {
    require_own_subject(stream, options.subject);
    jsConsumerConfig wanted;
    jsConsumerConfig_Init(&wanted);
    wanted.Durable = consumer_.c_str();
    wanted.AckPolicy = js_AckExplicit;
    wanted.AckWait = count_of(options.acknowledge_within);
    wanted.MaxAckPending = static_cast<std::int64_t>(options.most_held);
    wanted.FilterSubject = options.subject.c_str();
    jsConsumerInfo* made = nullptr;
    jsErrCode code{};
    const natsStatus status =
        js_AddConsumer(&made, context_.get(), stream.c_str(), &wanted, nullptr, &code);
    const ConsumerInfoHandle owned(made);
    require(
        status == NATS_OK, ErrorKind::resource,
        "{}: the stream {} refuses the consumer {}: {}; choose another name of the consumer, or "
        "remove the one that is there",
        connection_->shown(), printable(stream), printable(consumer_), printable(text_of(status)));
    acknowledged_before_ = made->AckFloor.Stream;
  }

  void subscribe(const std::string& stream, const SourceOptions& options) {
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

  std::shared_ptr<const Connection> connection_;
  const std::string consumer_;
  ContextHandle context_;
  SubscriptionHandle subscription_;
  std::uint64_t acknowledged_before_ = 0;
  Since trouble_since_;
};

}  // namespace

std::unique_ptr<Reader> make_reader(std::shared_ptr<const Connection> connection,
                                    const std::string& stream, const std::string& subject) {
  return std::make_unique<NatsReader>(std::move(connection), stream, subject);
}

std::unique_ptr<Source> make_source(std::shared_ptr<const Connection> connection,
                                    const std::string& stream, const SourceOptions& options) {
  return std::make_unique<NatsSource>(std::move(connection), stream, options);
}

}  // namespace fast::stream
