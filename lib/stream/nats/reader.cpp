#include "stream/nats/reader.hpp"

#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/core/message.hpp>
#include <thread>
#include <utility>

#include "stream/nats/message.hpp"

namespace fast::stream {
namespace {

constexpr std::chrono::milliseconds pause_between_tries{100};
constexpr std::chrono::milliseconds fetch_wait{250};
/// After which the server forgets the consumer of a program that is gone.
constexpr std::chrono::seconds forget_after{30};
constexpr std::size_t most_at_once = 1000;
/// The server cuts a connection for which 64 MB wait.
constexpr std::size_t most_bytes_at_once = std::size_t{16} << 20;
/// Of a message beside its body.
constexpr std::size_t bytes_of_headers = 512;
constexpr std::chrono::milliseconds asks_every{20};

std::int64_t count_of(std::chrono::nanoseconds time) { return time.count(); }

}  // namespace

NatsReader::NatsReader(std::shared_ptr<const Connection> connection, std::string stream,
                       std::string subject)
    : connection_(std::move(connection)),
      stream_(std::move(stream)),
      subject_(std::move(subject)),
      context_(context_of(*connection_)) {
  const natsStatus status = ask_extent(extent_);
  require(status == NATS_OK, ErrorKind::resource, "{}: the stream {} cannot be read: {}",
          connection_->shown(), printable(stream_), printable(text_of(status)));
}

/// A stream that was deleted and made again counts its messages anew.
natsStatus NatsReader::ask_extent(Extent& into) {
  jsStreamInfo* found = nullptr;
  jsErrCode code{};
  const natsStatus status =
      js_GetStreamInfo(&found, context_.get(), stream_.c_str(), nullptr, &code);
  const StreamInfoHandle info(found);
  if (status != NATS_OK) return status;
  std::int64_t first_seen = 0;
  const bool is_first = created_.compare_exchange_strong(first_seen, info->Created);
  require(is_first || first_seen == info->Created, ErrorKind::resource,
          "{}: the stream {} was deleted and made again: its numbers are those of other messages; "
          "begin a new run on it",
          connection_->shown(), printable(stream_));
  const std::uint64_t end = info->State.LastSeq + 1;
  into = {info->State.Msgs == 0 ? end : info->State.FirstSeq, end};
  return NATS_OK;
}

Extent NatsReader::known() {
  const std::lock_guard lock(mutex_);
  return extent_;
}

/// A stream that a server in reach does not show for long is gone.
Extent NatsReader::extent() {
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

NatsReader::~NatsReader() { unsubscribe(); }

/// Removes the consumer; the server forgets one that it cannot be told of.
void NatsReader::unsubscribe() {
  if (subscription_ && connection_->is_up()) natsSubscription_Unsubscribe(subscription_.get());
  subscription_.reset();
}

/// By an ephemeral consumer.
natsStatus NatsReader::subscribe(std::uint64_t begin) {
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

/// After an answer without messages: whether the stream has further ones, or some that the consumer
/// has sent were lost on the way.
NatsReader::Fetched NatsReader::look_for_more(std::uint64_t end) {
  jsConsumerInfo* found = nullptr;
  jsErrCode code{};
  last_status_ = natsSubscription_GetConsumerInfo(&found, subscription_.get(), nullptr, &code);
  const ConsumerInfoHandle info(found);
  if (last_status_ != NATS_OK) return Fetched::failed;
  const bool is_complete = info->Delivered.Consumer == delivered_ && info->NumPending == 0;
  return is_complete && extent().end >= end ? Fetched::none_left : Fetched::failed;
}

/// Whether it follows the one before it.
bool NatsReader::is_next(natsMsg* message) {
  jsMsgMetaData* facts = nullptr;
  if (natsMsg_GetMetaData(&facts, message) != NATS_OK) return false;
  const bool follows = facts->Sequence.Consumer == delivered_ + 1;
  jsMsgMetaData_Destroy(facts);
  if (follows) ++delivered_;
  return follows;
}

NatsReader::Fetched NatsReader::fetch(std::uint64_t end, std::vector<Message>& into) {
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
  const bool is_empty =
      last_status_ == NATS_OK || last_status_ == NATS_TIMEOUT || last_status_ == NATS_NOT_FOUND;
  return is_empty ? look_for_more(end) : Fetched::failed;
}

/// A lost connection is in require_alive(). Other troubles end the program when they last.
void NatsReader::trouble() {
  const std::string text = text_of(last_status_);
  const auto now = Connection::Clock::now();
  if (!trouble_since_) trouble_since_ = now;
  require(now - *trouble_since_ < connection_->patience(), ErrorKind::resource,
          "{}: the stream {} gives no messages: {}; see whether it is there", connection_->shown(),
          printable(stream_), printable(text));
  unsubscribe();
  std::this_thread::sleep_for(pause_between_tries);
}

std::vector<Message> NatsReader::read(std::uint64_t begin, std::size_t count) {
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

}  // namespace fast::stream
