#include "stream/nats/connection.hpp"

#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <algorithm>
#include <charconv>
#include <fast/core/error.hpp>
#include <initializer_list>
#include <vector>

#include "core/message.hpp"

namespace fast::stream {
namespace {

constexpr int connect_timeout_ms = 5000, reconnect_wait_ms = 200, reconnect_jitter_ms = 50;
constexpr int flush_timeout_ms = 2000, write_timeout_ms = 3000;
constexpr int most_unanswered_pings = 2;

double seconds_of(std::chrono::milliseconds time) {
  return std::chrono::duration<double>(time).count();
}

// The client library waits without end for a server that stops in the middle of a TLS handshake.

constexpr timeval longest_silence{5, 0};
thread_local bool is_limited = false;

/// The library's sockets block during the handshake, and only then.
void on_state(const SSL* ssl, int where, int) {
  if ((where & SSL_CB_HANDSHAKE_START) == 0) return;
  for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO})
    setsockopt(SSL_get_fd(ssl), SOL_SOCKET, option, &longest_silence, sizeof longest_silence);
}

/// OpenSSL calls it for each new context.
void on_context(void* context, void*, CRYPTO_EX_DATA*, int, long, void*) {
  if (is_limited) SSL_CTX_set_info_callback(static_cast<SSL_CTX*>(context), on_state);
}

/// While it exists, contexts of TLS that this thread makes get a limit: a handshake ends when the
/// server says nothing for five seconds. Contexts of others in this process stay as they are.
class HandshakeLimit {
 public:
  HandshakeLimit() {
    static const int slot = SSL_CTX_get_ex_new_index(0, nullptr, on_context, nullptr, nullptr);
    is_limited = slot >= 0;
  }
  HandshakeLimit(const HandshakeLimit&) = delete;
  HandshakeLimit& operator=(const HandshakeLimit&) = delete;
  ~HandshakeLimit() { is_limited = false; }
};

// Why a server and this program have not come together.

struct Advice {
  std::string found, to_do;
};

constexpr std::string_view handshake = "SSL handshake error: ";

/// OpenSSL's number of what is wrong with the server's certificate. 0: it is not about that.
int fault_of_certificate(std::string_view why) {
  const std::size_t at = why.find(handshake);
  int number = 0;
  if (at != why.npos) {
    const std::string_view rest = why.substr(at + handshake.size());
    std::from_chars(rest.data(), rest.data() + rest.size(), number);
  }
  return number;
}

/// As in <openssl/x509_vfy.h>.
std::string_view to_do_with_certificate(int fault) {
  switch (fault) {
    case 9:
    case 10:
      return "see whether this machine's clock is right; if it is, the server needs a new one";
    case 18:
    case 19:
    case 20:
    case 21:
      return "if you trust who signed it, set FAST_NATS_CA_FILE to the file of that certificate";
    case 62:
    case 64:
      return "write the host as its certificate names it, or see whether it is the right one";
    default:
      return "the server needs another certificate";
  }
}

bool is_in(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

bool has_login(const Address& address) {
  return !address.secret.empty() || !address.security.nkey_file.empty() ||
         !address.security.credentials_file.empty();
}

Advice of_tls(const std::string& why) {
  if (const int fault = fault_of_certificate(why); fault != 0) {
    const std::string_view reason = std::string_view(why).substr(why.find(handshake));
    return {fmt::format("the server's certificate is not accepted: {}",
                        reason.substr(reason.find(':', handshake.size()) + 1)),
            std::string(to_do_with_certificate(fault))};
  }
  if (why.ends_with("(null)"))
    return {"the server has stopped in the handshake of TLS", "see whether it runs there"};
  return {why, "see whether the server has TLS 1.2 or later"};
}

Advice of(const Address& address, natsStatus status, const std::string& why) {
  if (status == NATS_SECURE_CONNECTION_WANTED) {
    return {"the server has no TLS, and tls:// requires it",
            "check the address, or give the server a certificate; nothing was sent to it"};
  }
  if (status == NATS_CONNECTION_AUTH_FAILED) {
    if (has_login(address))
      return {fmt::format("the server does not accept this login: {}", why),
              "compare the user, password, nkey or credentials with those of the server"};
    return {fmt::format("the server wants to know who logs in: {}", why),
            "set FAST_NATS_PASSWORD_FILE, FAST_NATS_NKEY_FILE or FAST_NATS_CREDENTIALS_FILE"};
  }
  if (status == NATS_SSL_ERROR) return of_tls(why);
  // With TLS 1.3, a server checks the client's certificate after the handshake.
  if (is_in(why, "got ''") || is_in(why, "SSL_read") || is_in(why, "SSL_write") ||
      status == NATS_CONNECTION_CLOSED) {
    return {"the server has closed the connection",
            address.security.certificate_file.empty()
                ? "it may want a certificate of the client; set FAST_NATS_CERTIFICATE_FILE and "
                  "FAST_NATS_KEY_FILE"
                : "see whether it trusts who signed the client's certificate"};
  }
  return {why, "see whether the server runs there"};
}

/// Throws Error(resource): what `status` and `why`, its text, say of the server, and what to do.
[[noreturn]] void refuse(const Address& address, std::string_view server, natsStatus status,
                         const std::string& why) {
  const Advice advice = of(address, status, why);
  fail(ErrorKind::resource, "{}: no connection: {}; {}", server, printable(advice.found),
       advice.to_do);
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
  if (of.buffer_bytes > 0) options.set(natsOptions_SetIOBufSize, of.buffer_bytes);
  if (of.sends_at_once) options.set(natsOptions_SetSendAsap, true);
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
  ask_most_bytes();
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
  ask_most_bytes();
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

ContextHandle context_of(const Connection& connection) {
  jsCtx* made = nullptr;
  const natsStatus status = natsConnection_JetStream(&made, connection.handle(), nullptr);
  require(status == NATS_OK, ErrorKind::resource, "{}: {}", connection.shown(), text_of(status));
  return ContextHandle(made);
}

}  // namespace fast::stream
