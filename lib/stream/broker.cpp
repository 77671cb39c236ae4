#include "stream/broker.hpp"

#include <algorithm>
#include <cstdlib>
#include <fast/core/error.hpp>
#include <fstream>

#include "core/message.hpp"
#include "core/text.hpp"

namespace fast::stream {
namespace {

constexpr std::string_view scheme = "nats://";
constexpr int default_port = 4222;

/// Takes the part before the next dot.
std::string_view take_part(std::string_view& rest) {
  const std::size_t dot = rest.find('.');
  const std::string_view part = rest.substr(0, dot);
  rest = dot == std::string_view::npos ? std::string_view{} : rest.substr(dot + 1);
  return part;
}

bool is_plain(std::string_view part) {
  return !part.empty() && std::all_of(part.begin(), part.end(), [](unsigned char c) {
    return c > ' ' && c != 0x7f && c != '*' && c != '>';
  });
}

bool is_host(std::string_view host) {
  return !host.empty() && std::all_of(host.begin(), host.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '-' || c == '.' || c == '_' || c == ':' || c == '[' ||
           c == ']';
  });
}

struct HostAndPort {
  std::string_view host;
  int port = default_port;
};

/// A host without a name, or a port of 0: the text is not of that form.
HostAndPort host_and_port(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  const bool has_port = colon != std::string_view::npos && text.find(']', colon) == text.npos;
  if (!has_port) return {text};
  HostAndPort found{text.substr(0, colon), 0};
  if (!reads(text.substr(colon + 1), found.port) || found.port < 1 || found.port > 65535)
    found.port = 0;
  return found;
}

constexpr char secret_variable[] = "FAST_NATS_PASSWORD_FILE";

/// The first line of the file that the variable names. Empty: the variable is not set.
std::string secret_of_file() {
  const char* file = std::getenv(secret_variable);
  if (file == nullptr || *file == '\0') return {};
  std::string line;
  std::getline(std::ifstream(file), line);
  if (line.ends_with('\r')) line.pop_back();
  require(!line.empty(), ErrorKind::argument,
          "{}: {} cannot be read or has no first line; write the password there", secret_variable,
          printable(file));
  return line;
}

}  // namespace

Address read_address(std::string_view text, std::string_view option) {
  std::string_view rest = text.substr(std::min(scheme.size(), text.size()));
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  const std::string_view subject = rest.substr(std::min(slash + 1, rest.size()));
  rest = rest.substr(0, slash);
  const std::size_t at = rest.rfind('@');
  const std::string_view user = at == rest.npos ? "" : rest.substr(0, at + 1);
  const HostAndPort found = host_and_port(rest.substr(user.size()));
  const bool good = text.starts_with(scheme) && is_host(found.host) && found.port > 0 &&
                    (subject.empty() || is_subject(subject, true)) &&
                    subject.find('@') == subject.npos;  // else it is a password with a slash
  require(good, ErrorKind::argument,
          "{}: \"{}\" is not the address of a stream; nats://HOST:PORT is required", option,
          printable(text.substr(text.rfind('@') + 1)));  // no password, wherever it ends
  Address address;
  address.shown = fmt::format("{}{}:{}", scheme, found.host, found.port);
  address.url = fmt::format("{}{}{}:{}", scheme, user, found.host, found.port);
  address.subject = subject;
  if (user.find(':') == user.npos) address.secret = secret_of_file();
  if (!address.secret.empty()) {
    address.user = user.substr(0, user.size() - std::min<std::size_t>(user.size(), 1));
    address.url = address.shown;
  }
  return address;
}

bool is_subject(std::string_view text, bool wildcards) {
  if (text.empty() || text.ends_with('.')) return false;
  while (!text.empty()) {
    const std::string_view part = take_part(text);
    const bool is_wild = wildcards && (part == "*" || (part == ">" && text.empty()));
    if (!is_wild && !is_plain(part)) return false;
  }
  return true;
}

bool subject_matches(std::string_view filter, std::string_view subject) {
  while (!filter.empty() && !subject.empty()) {
    const std::string_view wanted = take_part(filter), part = take_part(subject);
    if (wanted == ">") return true;
    if (wanted != "*" && wanted != part) return false;
  }
  return filter.empty() && subject.empty();
}

}  // namespace fast::stream
