#include "stream/nats/connection.hpp"

#include <algorithm>
#include <fast/core/error.hpp>
#include <vector>

#include "core/message.hpp"
#include "stream/nats/handshake_limit.hpp"
#include "stream/nats/refusal.hpp"
#include "stream/security.hpp"

namespace fast::stream {
namespace {

constexpr int connect_timeout_ms = 5000, reconnect_wait_ms = 200, reconnect_jitter_ms = 50;
constexpr int flush_timeout_ms = 2000, write_timeout_ms = 3000;
constexpr int most_unanswered_pings = 2;

double seconds_of(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

/// The client library's options, set one after the other until one is refused.
class Options {
 public:
  Options() {
    natsOptions* made = nullptr;
    status_ = natsOptions_Create(&made);
    with_.reset(made);
  }

  template <class Set, class... Values>
  void set(Set function, Values... values) {
    if (status_ == NATS_OK) status_ = function(with_.get(), values...);
  }

  natsStatus status() const { return status_; }
  natsOptions* handle() const { return with_.get(); }

 private:
  natsStatus status_ = NATS_OK;
  OptionsHandle with_;
};

/// The client library writes it into JSON as it is.
std::string in_json(std::string_view text) {
  std::string result;
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    result += c;
  }
  return result;
}

void set_login(Options& options, const Address& address) {
  const Security& files = address.security;
  const std::string user = in_json(address.user), secret = in_json(address.secret);
  if (!secret.empty() && user.empty()) {
    options.set(natsOptions_SetToken, secret.c_str());
  } else if (!secret.empty()) {
    options.set(natsOptions_SetUserInfo, user.c_str(), secret.c_str());
  } else if (!files.nkey_file.empty()) {
    const std::string key = public_nkey(files.nkey_file);
    options.set(natsOptions_SetNKeyFromSeed, key.c_str(), files.nkey_file.c_str());
  } else if (!files.credentials_file.empty()) {
    options.set(natsOptions_SetUserCredentialsFromFiles, files.credentials_file.c_str(), nullptr);
  }
}

/// The client library checks the host name of each server by itself, if it was built so. With one
/// server, the name is set too. An IPv6 address must be: there, the library leaves its brackets.
void set_host_name(Options& options, const std::string& server) {
  const std::size_t begin = server.find("://") + 3;
  std::string host = server.substr(begin, server.rfind(':') - begin);
  if (host.starts_with('[')) host = host.substr(1, host.size() - 2);
  options.set(natsOptions_SetExpectedHostname, host.c_str());
}

/// Of a connection with nats://, they count if the server wants TLS.
void set_tls(Options& options, const Address& address) {
  const Security& files = address.security;
  if (address.is_tls()) options.set(natsOptions_SetSecure, true);
  if (!files.ca_file.empty())
    options.set(natsOptions_LoadCATrustedCertificates, files.ca_file.c_str());
  if (!files.certificate_file.empty()) {
    options.set(natsOptions_LoadCertificatesChain, files.certificate_file.c_str(),
                files.key_file.c_str());
  }
  if (address.is_tls() && address.servers.size() == 1) set_host_name(options, address.servers[0]);
}

void set_servers(Options& options, std::span<const std::string> servers) {
  std::vector<const char*> urls(servers.size());
  std::ranges::transform(servers, urls.begin(),
                         [](const std::string& each) { return each.c_str(); });
  options.set(natsOptions_SetServers, urls.data(), static_cast<int>(urls.size()));
}

void set_waits(Options& options, const BrokerOptions& of) {
  options.set(natsOptions_SetTimeout, connect_timeout_ms);
  options.set(natsOptions_SetMaxReconnect, -1);
  options.set(natsOptions_SetReconnectWait, reconnect_wait_ms);
  options.set(natsOptions_SetReconnectJitter, reconnect_jitter_ms, reconnect_jitter_ms);
  options.set(natsOptions_SetWriteDeadline, write_timeout_ms);  // else, a stopped server blocks
  options.set(natsOptions_SetPingInterval, of.ping_interval.count());
  options.set(natsOptions_SetMaxPingsOut, most_unanswered_pings);
  options.set(natsOptions_SetFailRequestsOnDisconnect, true);
}

/// Version 3.4 of the client library leaves out a signature that begins with a zero byte: one of
/// 256 logins by an nkey or credentials is refused. The next one signs something else.
natsStatus connect_by(const Options& options, const Security& files, natsConnection*& made) {
  constexpr int most_logins = 4;
  const bool signs = !files.nkey_file.empty() || !files.credentials_file.empty();
  natsStatus status = NATS_OK;
  for (int login = 0; login < (signs ? most_logins : 1); ++login) {
    status = natsConnection_Connect(&made, options.handle());
    if (status != NATS_CONNECTION_AUTH_FAILED) break;
  }
  return status;
}

/// Of several servers, the client library tells why the last one was not taken. This asks each, and
/// throws for the first that answers.
void require_each(const Address& address, Options& options) {
  options.set(natsOptions_SetErrorHandler, nullptr, nullptr);  // they outlive the caller
  options.set(natsOptions_SetDisconnectedCB, nullptr, nullptr);
  options.set(natsOptions_SetReconnectedCB, nullptr, nullptr);
  options.set(natsOptions_SetClosedCB, nullptr, nullptr);
  for (std::size_t i = 0; i < address.servers.size(); ++i) {
    set_servers(options, std::span(address.servers).subspan(i, 1));
    natsConnection* made = nullptr;
    const natsStatus status = connect_by(options, address.security, made);
    const std::string why = text_of(status);
    natsConnection_Destroy(made);
    if (status != NATS_OK && status != NATS_NO_SERVER && status != NATS_TIMEOUT)
      refuse(address, address.servers[i], status, why);
  }
}

}  // namespace

Connection::Connection(const Address& address, const BrokerOptions& options)
    : options_(options), shown_(address.shown) {
  const HandshakeLimit limit;
  Options with;
  set_servers(with, address.servers);
  with.set(natsOptions_SetNoRandomize, true);
  with.set(natsOptions_SetIgnoreDiscoveredServers, true);  // they have proved nothing
  set_tls(with, address);
  set_login(with, address);
  set_waits(with, options_);
  with.set(natsOptions_SetName, in_json(options_.name).c_str());
  if (!options_.inbox_prefix.empty())
    with.set(natsOptions_SetCustomInboxPrefix, options_.inbox_prefix.c_str());
  require(with.status() == NATS_OK, ErrorKind::argument,
          "{}: no connection: {}; see the files that FAST_NATS_... names", shown_,
          printable(text_of(with.status())));
  with.set(natsOptions_SetErrorHandler, on_error, this);
  with.set(natsOptions_SetDisconnectedCB, on_lost, this);
  with.set(natsOptions_SetReconnectedCB, on_back, this);
  with.set(natsOptions_SetClosedCB, on_closed, this);
  const natsStatus status = connect_by(with, address.security, connection_);
  if (status == NATS_OK) return;
  const std::string why = text_of(status);
  if (address.servers.size() > 1) require_each(address, with);
  refuse(address, shown_, status, why);
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
  const bool gives_up = options_.patience < std::chrono::hours(24);
  log(LogLevel::warning,
      fmt::format("{}: the connection is lost; tries to connect{}", shown_,
                  gives_up ? fmt::format(" for {:g} s", seconds_of(options_.patience)) : ""));
}

void Connection::back() {
  {
    const std::lock_guard lock(mutex_);
    lost_since_.reset();
  }
  log(LogLevel::info, fmt::format("{}: connected again", shown_));
}

/// A server repeats it for each message.
void Connection::refused(const std::string& why) {
  {
    const std::lock_guard lock(mutex_);
    if (ends_ || refused_ == why) return;
    refused_ = why;
  }
  log(LogLevel::warning,
      fmt::format("{}: {}; the server's operator gives permissions", shown_, printable(why)));
}

void Connection::on_error(natsConnection* connection, natsSubscription*, natsStatus status,
                          void* self) {
  const char* why = nullptr;
  natsConnection_GetLastError(connection, &why);
  if (status == NATS_NOT_PERMITTED && why != nullptr) static_cast<Connection*>(self)->refused(why);
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
