// Sites' messages as core messages of NATS, which no server stores.
#include <nats/nats.h>

#include <fast/core/error.hpp>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

#include "core/message.hpp"
#include "sites/bus.hpp"
#include "sites/wire.hpp"
#include "stream/nats/connection.hpp"

namespace fast::sites {
namespace {

class NatsBus final : public Bus {
 public:
  NatsBus(const stream::Address& address, const BusOptions& options, LogSink log)
      : run_(address.subject), data_(run_ + ".data."), most_bytes_(options.most_bytes) {
    stream::BrokerOptions of{.name = "fast site " + options.name,
                             .patience = forever,
                             .log = std::move(log),
                             .ping_interval = ping_interval,
                             .inbox_prefix = "_INBOX_" + options.name,
                             .sends_at_once = true,
                             .buffer_bytes = buffer_bytes};
    connections_.emplace_back(address, of);
    if (of.log)
      of.log = [log = of.log](LogLevel level, std::string_view text) {
        log(level, fmt::format("{} (the connection for weights)", text));
      };
    if (most_bytes_ > 0) connections_.emplace_back(address, of);
    require_room();
  }

  ~NatsBus() override { end(); }

  void end() override {
    is_ending_ = true;  // a handler that sends much ends soon
    for (auto& subscription : subscriptions_)
      if (!subscription->end()) subscription.release();  // the library may still refer to it
    subscriptions_.clear();
  }

  bool send(const std::string& subject, const std::string& text) override {
    const bool is_data = subject.starts_with(data_);
    const stream::Connection& connection = is_data ? connections_.back() : control();
    // What is sent while the connection is lost would come late, all at once.
    if (is_ending_ || !connection.is_up()) return false;
    return natsConnection_Publish(connection.handle(), subject.c_str(), text.data(),
                                  static_cast<int>(text.size())) == NATS_OK;
  }

  /// A server answers by itself where nobody has subscribed ("no responders").
  void probe(const std::string& subject, const std::string& reply) override {
    if (!control().is_up()) return;
    natsConnection_PublishRequest(control().handle(), subject.c_str(), reply.c_str(), nullptr, 0);
  }

  void listen(const std::string& subject, Handler handler) override {
    Subscription& made = *subscriptions_.emplace_back(std::make_unique<Subscription>());
    made.handler = std::move(handler);
    const natsStatus status = natsConnection_Subscribe(
        &made.handle, control().handle(), subject.c_str(), &Subscription::on_message, &made);
    require(status == NATS_OK, ErrorKind::resource, "{}: no subscription to {}: {}",
            control().shown(), printable(subject), printable(stream::text_of(status)));
  }

  void require_usable() const override {
    for (const stream::Connection& connection : connections_) connection.require_alive();
    require_room();
  }

  const std::string& run() const override { return run_; }

 private:
  static constexpr std::chrono::milliseconds forever{std::chrono::hours(24 * 365)};
  static constexpr std::chrono::milliseconds ping_interval{600};
  static constexpr int buffer_bytes = 128 * 1024;

  struct Subscription {
    Handler handler;
    natsSubscription* handle = nullptr;
    std::mutex mutex;
    std::condition_variable changed;
    int running = 0;  ///< handlers
    bool is_ending = false, ended = false;

    static void on_message(natsConnection*, natsSubscription*, natsMsg* message, void* self) {
      const stream::MessageHandle held(message);
      const auto size = static_cast<std::size_t>(natsMsg_GetDataLength(message));
      auto* subscription = static_cast<Subscription*>(self);
      {
        const std::lock_guard lock(subscription->mutex);
        if (subscription->is_ending) return;
        ++subscription->running;
      }
      try {
        subscription->handler(natsMsg_GetSubject(message), {natsMsg_GetData(message), size});
      } catch (const std::exception&) {  // no memory: as if the message was lost
      }
      const std::lock_guard lock(subscription->mutex);
      --subscription->running;
      subscription->changed.notify_all();
    }
    static void on_end(void* self) {
      auto* subscription = static_cast<Subscription*>(self);
      const std::lock_guard lock(subscription->mutex);
      subscription->ended = true;
      subscription->changed.notify_all();
    }
    /// The handler does not run afterwards: a write to the server takes 3 s at most. False if the
    /// library may still call on_message().
    bool end() {
      if (handle == nullptr) return true;
      {
        const std::lock_guard lock(mutex);
        is_ending = true;
      }
      const bool tells = natsSubscription_SetOnCompleteCB(handle, on_end, this) == NATS_OK;
      natsSubscription_Unsubscribe(handle);
      {
        std::unique_lock lock(mutex);
        changed.wait(lock, [this] { return running == 0; });
        if (tells) changed.wait_for(lock, std::chrono::seconds(5), [this] { return ended; });
      }
      natsSubscription_Destroy(handle);
      const std::lock_guard lock(mutex);
      return ended;
    }
  };

  const stream::Connection& control() const { return connections_.front(); }

  /// The client library drops what is larger. After a connection was lost, the server may be
  /// another one.
  void require_room() const {
    for (const stream::Connection& connection : connections_) {
      const std::int64_t most = connection.most_bytes();
      require(most <= 0 || std::cmp_greater_equal(most, most_bytes_), ErrorKind::resource,
              "{}: the server takes messages of at most {} bytes, and sites send up to {}; set its "
              "max_payload to {} or more",
              connection.shown(), most, most_bytes_, most_bytes_);
    }
  }

  std::string run_, data_;  ///< data_: how subjects of weights begin
  std::size_t most_bytes_;
  std::atomic<bool> is_ending_ = false;
  /// A site's weights go over the second one. The client library holds a lock while it
  /// writes, and reads and sends nothing else meanwhile: for as long as the link is full.
  std::deque<stream::Connection> connections_;
  std::deque<std::unique_ptr<Subscription>> subscriptions_;
};

}  // namespace

std::unique_ptr<Bus> connect_bus(const BusOptions& options, const LogSink& log) {
  stream::Security security;
  security.ca_file = options.ca_file;
  security.credentials_file = options.credentials_file;
  const stream::Address address = stream::read_address(options.url, options.url_option, security);
  require(!address.subject.empty() && stream::is_subject(address.subject, false),
          ErrorKind::argument,
          "{}: \"{}\" names no run; nats://HOST:PORT/RUN is required, RUN equal at all sites",
          options.url_option, address.shown + "/" + printable(address.subject));
  for (const std::string& notice : address.notices)
    if (log) log(LogLevel::warning, notice);
  return std::make_unique<NatsBus>(address, options, log);
}

std::unique_ptr<Bus> connect_bus(const SiteOptions& options, const LogSink& log) {
  return connect_bus(BusOptions{.name = options.name,
                                .url = options.url,
                                .url_option = "site-url",
                                .credentials_file = options.credentials_file,
                                .ca_file = options.ca_file,
                                .most_bytes = most_message_bytes},
                     log);
}

}  // namespace fast::sites
