#include <algorithm>
#include <cctype>
#include <fast/core/error.hpp>
#include <utility>

#include "core/message.hpp"
#include "core/text.hpp"
#include "stream/broker.hpp"
#include "stream/security.hpp"

namespace fast::stream {
namespace {

constexpr std::string_view plain = "nats://", encrypted = "tls://";
constexpr int default_port = 4222;

/// Empty: the text does not begin with a scheme.
std::string_view scheme_of(std::string_view text) {
  for (const std::string_view scheme : {plain, encrypted}) {
    if (text.starts_with(scheme)) return scheme;
  }
  return {};
}

/// An IPv6 address stands in brackets.
bool is_host(std::string_view host) {
  const bool is_ip6 = host.starts_with('[') && host.ends_with(']') && host.size() > 2;
  if (is_ip6) host = host.substr(1, host.size() - 2);
  return !host.empty() && std::all_of(host.begin(), host.end(), [is_ip6](unsigned char c) {
    return is_ip6 ? std::isxdigit(c) != 0 || c == ':' || c == '.'
                  : std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_';
  });
}

struct Server {
  std::string_view scheme, user, host;  ///< the user with its password
  int port = default_port;
};

/// A server without a host: the text is not of the form SCHEME[USER[:PASSWORD]@]HOST[:PORT].
Server read_server(std::string_view text) {
  Server server{scheme_of(text), {}, {}};
  text = text.substr(server.scheme.size());
  const std::size_t at = text.rfind('@');
  if (at != text.npos) server.user = text.substr(0, at);
  server.host = text.substr(at + 1);  // npos + 1 is 0
  const std::size_t colon = server.host.rfind(':');
  if (colon != text.npos && server.host.find(']', colon) == text.npos) {
    const bool is_port = reads(server.host.substr(colon + 1), server.port);
    if (!is_port || server.port < 1 || server.port > 65535) return {};
    server.host = server.host.substr(0, colon);
  }
  return server.scheme.empty() || !is_host(server.host) ? Server{} : server;
}

/// A comma separates servers where a scheme follows; others may belong to a password.
std::vector<std::string_view> split_servers(std::string_view text) {
  std::vector<std::string_view> parts;
  std::size_t begin = 0;
  for (std::size_t comma = text.find(','); comma != text.npos; comma = text.find(',', comma + 1)) {
    if (scheme_of(text.substr(comma + 1)).empty()) continue;
    parts.push_back(text.substr(begin, comma - begin));
    begin = comma + 1;
  }
  parts.push_back(text.substr(begin));
  return parts;
}

/// Takes the subject off the last server. Only a slash after the host begins one: what has an @
/// behind it is a password with a slash, which no address may have.
std::string_view take_subject(std::string_view& last) {
  const std::size_t slash = last.find('/', scheme_of(last).size());
  if (slash == last.npos) return {};
  return std::exchange(last, last.substr(0, slash)).substr(slash + 1);
}

/// The user of all servers, from "USER" or "USER:PASSWORD". Without a file for the password, a user
/// alone is a token.
void read_user(std::string_view text, std::string_view option, Address& address) {
  const std::size_t colon = text.find(':');
  address.user = text.substr(0, colon);
  if (colon != text.npos) address.secret = text.substr(colon + 1);
  const bool has_file = !address.security.password_file.empty();
  if (address.secret.empty() && !has_file) std::swap(address.user, address.secret);
  if (address.secret.empty()) return;
  require(!address.is_tls(), ErrorKind::argument,
          "{}: the address has a password or token, which lists of processes show; write it into a "
          "file, and "
          "the file's name into {}",
          option, password_variable);
  address.notices.push_back(fmt::format(
      "{}: lists of processes show the password or token in the address; write it into a file, "
      "and the file's name into {}",
      option, password_variable));
}

}  // namespace

bool is_address(std::string_view text) { return !scheme_of(text).empty(); }

Address read_address(std::string_view text, std::string_view option, Security security) {
  std::vector<std::string_view> parts = split_servers(text);
  const std::string_view subject = take_subject(parts.back());
  Address address{.subject = std::string(subject),
                  .security = with_environment(std::move(security))};
  bool good = (subject.empty() || is_subject(subject, true)) && subject.find('@') == subject.npos;
  bool is_mixed = false, has_ip6 = false;
  std::string_view user;
  for (const std::string_view part : parts) {
    const Server server = read_server(part);
    good = good && !server.host.empty() &&
           (user.empty() || server.user.empty() || user == server.user);
    if (!server.user.empty()) user = server.user;
    is_mixed = is_mixed || server.scheme != scheme_of(text);
    has_ip6 = has_ip6 || server.host.starts_with('[');
    address.servers.push_back(fmt::format("{}{}:{}", server.scheme, server.host, server.port));
  }
  const std::string_view harmless = text.substr(text.rfind('@') + 1);  // wherever a password ends
  require(good, ErrorKind::argument,
          "{}: \"{}\" is not the address of a stream; nats://HOST:PORT is required, or "
          "tls://HOST:PORT, or several with commas between them and one user",
          option, printable(harmless));
  require(!is_mixed, ErrorKind::argument,
          "{}: \"{}\" mixes nats:// and tls://; write tls:// before each server", option,
          printable(harmless));
  address.shown = fmt::format("{}", fmt::join(address.servers, ","));
  require(!has_ip6 || parts.size() == 1 || !address.is_tls(), ErrorKind::argument,
          "{}: \"{}\" has an IPv6 address among several servers, whose certificates cannot be "
          "checked by it; write names of hosts",
          option, printable(harmless));
  read_user(user, option, address);
  check_security(option, address);
  return address;
}

}  // namespace fast::stream
