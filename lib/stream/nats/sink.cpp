#include <algorithm>
#include <fast/core/error.hpp>
#include <unordered_map>

#include "core/message.hpp"
#include "stream/nats/connection.hpp"

namespace fast::stream {
namespace {

/// For the answer to one message. A message without it is sent again.
constexpr std::chrono::milliseconds answer_wait{3000}, pause_before_repeat{200};

class NatsSink final : public Sink {
 public:
  NatsSink(std::shared_ptr<const Connection> connection, std::int64_t most_bytes)
      : connection_(std::move(connection)), most_bytes_(most_bytes) {
    jsOptions with;
    jsOptions_Init(&with);
    with.PublishAsync.AckHandler = on_answer;
    with.PublishAsync.AckHandlerClosure = this;
    jsCtx* made = nullptr;
    const natsStatus status = natsConnection_JetStream(&made, connection_->handle(), &with);
    require(status == NATS_OK, ErrorKind::resource, "{}: {}", connection_->shown(),
            text_of(status));
    context_.reset(made);
  }

  /// Waits until no acknowledgment can come any more.
  ~NatsSink() override {
    jsPubOptions with;
    jsPubOptions_Init(&with);
    with.MaxWait = 2 * answer_wait.count();
    js_PublishAsyncComplete(context_.get(), &with);
  }

  std::vector<Stored> publish(std::span<const Outgoing> messages) override {
    const auto deadline = Connection::Clock::now() + connection_->patience();
    std::unique_lock lock(mutex_);
    stored_.assign(messages.size(), std::nullopt);
    refusal_.clear();
    for (;;) {
      for (std::size_t i = 0; i < messages.size() && !interrupted_; ++i) {
        if (stored_[i]) continue;
        lock.unlock();
        send(messages[i], i);
        lock.lock();
      }
      changed_.wait_for(lock, 2 * answer_wait, [this] { return sent_.empty() || interrupted_; });
      if (is_done()) break;
      sent_.clear();  // what is still to come is not asked for
      require(!interrupted_, ErrorKind::resource, "{}: answers are not published: the program ends",
              connection_->shown());
      require(Connection::Clock::now() < deadline, ErrorKind::resource,
              "{}: {} of {} messages to {} are not stored: {}; see whether its stream takes them",
              connection_->shown(), std::count(stored_.begin(), stored_.end(), std::nullopt),
              messages.size(), printable(messages.front().subject),
              printable(refusal_.empty() ? "no answer" : refusal_));
      changed_.wait_for(lock, pause_before_repeat, [this] { return interrupted_; });
    }
    std::vector<Stored> all;
    for (const auto& each : stored_) all.push_back(*each);
    return all;
  }

  void interrupt() override {
    const std::lock_guard lock(mutex_);
    interrupted_ = true;
    changed_.notify_all();
  }

  std::size_t most_bytes() const override {
    const std::int64_t of_server = connection_->most_bytes();
    return static_cast<std::size_t>(most_bytes_ < 1 ? of_server : std::min(of_server, most_bytes_));
  }

 private:
  static void on_answer(jsCtx*, natsMsg* message, jsPubAck* good, jsPubAckErr* bad, void* self) {
    static_cast<NatsSink*>(self)->answered(message, good, bad);
    natsMsg_Destroy(message);
  }

  void answered(natsMsg* message, const jsPubAck* good, const jsPubAckErr* bad) {
    const std::lock_guard lock(mutex_);
    const auto found = sent_.find(message);
    if (found == sent_.end()) return;
    if (good != nullptr) {
      stored_[found->second] = good->Duplicate ? Stored::before : Stored::now;
    } else if (bad != nullptr) {
      refusal_ = bad->ErrText != nullptr ? bad->ErrText : natsStatus_GetText(bad->Err);
    }
    sent_.erase(found);
    changed_.notify_all();
  }

  void send(const Outgoing& message, std::size_t index) {
    natsMsg* made = nullptr;
    natsStatus status = natsMsg_Create(&made, message.subject.c_str(), nullptr, message.body.data(),
                                       static_cast<int>(message.body.size()));
    for (const auto& [name, value] : message.headers) {
      if (status == NATS_OK) status = natsMsgHeader_Set(made, name.c_str(), value.c_str());
    }
    jsPubOptions with;
    jsPubOptions_Init(&with);
    with.MsgId = message.id.c_str();
    with.MaxWait = answer_wait.count();
    natsMsg* const known_as = made;
    {
      const std::lock_guard lock(mutex_);
      sent_[known_as] = index;  // the answer may come before the call returns
    }
    if (status == NATS_OK) status = js_PublishMsgAsync(context_.get(), &made, &with);
    if (status == NATS_OK) return;
    const std::string text = text_of(status);
    natsMsg_Destroy(made);
    const std::lock_guard lock(mutex_);
    sent_.erase(known_as);
    refusal_ = text;
  }

  /// Under the lock.
  bool is_done() const {
    return std::all_of(stored_.begin(), stored_.end(), [](const auto& each) { return !!each; });
  }

  std::shared_ptr<const Connection> connection_;
  const std::int64_t most_bytes_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::unordered_map<natsMsg*, std::size_t> sent_;  ///< without an answer, by their index
  std::vector<std::optional<Stored>> stored_;
  std::string refusal_;
  bool interrupted_ = false;
  ContextHandle context_;
};

}  // namespace

std::unique_ptr<Sink> make_sink(std::shared_ptr<const Connection> connection,
                                std::int64_t most_bytes) {
  return std::make_unique<NatsSink>(std::move(connection), most_bytes);
}

}  // namespace fast::stream
