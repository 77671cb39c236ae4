#include "stream/nats/refusal.hpp"

#include <algorithm>
#include <charconv>
#include <fast/core/error.hpp>

#include "core/message.hpp"

namespace fast::stream {
namespace {

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

}  // namespace

void refuse(const Address& address, std::string_view server, natsStatus status,
            const std::string& why) {
  const Advice advice = of(address, status, why);
  fail(ErrorKind::resource, "{}: no connection: {}; {}", server, printable(advice.found),
       advice.to_do);
}

}  // namespace fast::stream
