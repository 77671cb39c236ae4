#include "stream/nats/connection.hpp"

#include <fast/core/error.hpp>

#include "core/message.hpp"

namespace fast::stream {
namespace {

constexpr int connect_timeout_ms = 5000, reconnect_wait_ms = 200, reconnect_jitter_ms = 50;
constexpr int flush_timeout_ms = 2000, write_timeout_ms = 3000;
constexpr int ping_interval_ms = 5000, most_unanswered_pings = 2;

double seconds_of(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

}  // namespace

Connection::Connection(const Address& address, const BrokerOptions& options)
    : options_(options), shown_(address.shown) {
  natsOptions* made = nullptr;
  natsStatus status = natsOptions_Create(&made);
  const OptionsHandle with(made);
  const auto also = [&](auto set, auto... values) {
    if (status == NATS_OK) status = set(made, values...);
  };
  also(natsOptions_SetURL, address.url.c_str());
  if (!address.secret.empty() && address.user.empty()) {
    also(natsOptions_SetToken, address.secret.c_str());
  } else if (!address.secret.empty()) {
    also(natsOptions_SetUserInfo, address.user.c_str(), address.secret.c_str());
  }
  also(natsOptions_SetName, options_.name.c_str());
  also(natsOptions_SetTimeout, connect_timeout_ms);
  also(natsOptions_SetMaxReconnect, -1);
  also(natsOptions_SetReconnectWait, reconnect_wait_ms);
  also(natsOptions_SetReconnectJitter, reconnect_jitter_ms, reconnect_jitter_ms);
  also(natsOptions_SetWriteDeadline, write_timeout_ms);  // without it, a stopped server blocks
  also(natsOptions_SetPingInterval, ping_interval_ms);
  also(natsOptions_SetMaxPingsOut, most_unanswered_pings);
  also(natsOptions_SetFailRequestsOnDisconnect, true);
  also(natsOptions_SetDisconnectedCB, on_lost, this);
  also(natsOptions_SetReconnectedCB, on_back, this);
  also(natsOptions_SetClosedCB, on_closed, this);
  if (status == NATS_OK) status = natsConnection_Connect(&connection_, made);
  require(status == NATS_OK, ErrorKind::resource,
          "{}: no connection: {}; see whether the server runs there", shown_,
          printable(text_of(status)));
}

Connection::~Connection() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  if (is_up()) natsConnection_FlushTimeout(connection_, flush_timeout_ms);  // acknowledgments
  natsConnection_Close(connection_);
  {
    std::unique_lock lock(mutex_);
    changed_.wait_for(lock, std::chrono::seconds(5), [this] { return is_closed_; });
  }
  natsConnection_Destroy(connection_);
}

bool Connection::is_up() const {
  const std::lock_guard lock(mutex_);
  return !lost_since_ && !is_closed_;
}

void Connection::require_alive() const {
  const std::lock_guard lock(mutex_);
  require(!is_closed_, ErrorKind::resource,
          "{}: the server has closed the connection, and lets this program in no more", shown_);
  require(!lost_since_ || Clock::now() - *lost_since_ < options_.patience, ErrorKind::resource,
          "{}: the connection is lost for {:g} s; see whether the server runs", shown_,
          seconds_of(options_.patience));
}

void Connection::log(LogLevel level, const std::string& text) const {
  if (options_.log) options_.log(level, text);
}

void Connection::lost() {
  {
    const std::lock_guard lock(mutex_);
    if (ends_ || lost_since_) return;
    lost_since_ = Clock::now();
  }
  log(LogLevel::warning, fmt::format("{}: the connection is lost; tries to connect for {:g} s",
                                     shown_, seconds_of(options_.patience)));
}

void Connection::back() {
  {
    const std::lock_guard lock(mutex_);
    lost_since_.reset();
  }
  log(LogLevel::info, fmt::format("{}: connected again", shown_));
}

void Connection::on_lost(natsConnection*, void* self) { static_cast<Connection*>(self)->lost(); }
void Connection::on_back(natsConnection*, void* self) { static_cast<Connection*>(self)->back(); }
void Connection::on_closed(natsConnection*, void* self) {
  auto* connection = static_cast<Connection*>(self);
  const std::lock_guard lock(connection->mutex_);
  connection->is_closed_ = true;
  connection->changed_.notify_all();
}

}  // namespace fast::stream
