#include <sys/stat.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <fast/core/error.hpp>
#include <fstream>
#include <iterator>
#include <utility>

#include "core/message.hpp"
#include "core/text.hpp"
#include "stream/broker.hpp"

namespace fast::stream {
namespace {

constexpr char password_variable[] = "FAST_NATS_PASSWORD_FILE";

/// A file of Security, the variable that names it, and what it holds.
struct Part {
  std::string Security::*file;
  const char *variable, *what;
  bool is_secret, logs_in;
};

constexpr Part ca{&Security::ca_file, "FAST_NATS_CA_FILE", "the file of trusted certificates",
                  false, false};
constexpr Part certificate{&Security::certificate_file, "FAST_NATS_CERTIFICATE_FILE",
                           "the file of the client's certificate", false, false};
constexpr Part key{&Security::key_file, "FAST_NATS_KEY_FILE", "the file of the client's key", true,
                   false};
constexpr Part password{&Security::password_file, password_variable, "the password's file", true,
                        true};
constexpr Part nkey{&Security::nkey_file, "FAST_NATS_NKEY_FILE", "the nkey's file", true, true};
constexpr Part credentials{&Security::credentials_file, "FAST_NATS_CREDENTIALS_FILE",
                           "the credentials' file", true, true};
constexpr const Part* parts[] = {&ca, &certificate, &key, &password, &nkey, &credentials};

std::string of_environment(const Part& part) {
  const char* file = std::getenv(part.variable);
  return file == nullptr ? "" : file;
}

bool logs_in(const Security& security) {
  return std::ranges::any_of(
      parts, [&](const Part* part) { return part->logs_in && !(security.*part->file).empty(); });
}

/// The first line that begins with `begin`, without what a terminal would not show at its end.
std::string line_of(const std::string& file, std::string_view begin) {
  std::ifstream in(file);
  for (std::string line; std::getline(in, line);) {
    while (!line.empty() && (line.back() == '\r' || (!begin.empty() && line.back() == ' ')))
      line.pop_back();
    if (line.starts_with(begin)) return line;
    if (begin.empty()) break;
  }
  return {};
}

bool has_text(const std::string& file, std::string_view text) {
  std::ifstream in(file);
  const std::string all{std::istreambuf_iterator<char>(in), {}};
  return all.find(text) != all.npos;
}

[[noreturn]] void unusable(std::string_view option, const Part& part, const std::string& file,
                           std::string_view why) {
  fail(ErrorKind::argument, "{}: {}, {}, cannot be used: {} ({} names it)", option, part.what,
       printable(file), why, part.variable);
}

/// What is wrong with the content. Empty: nothing is seen here.
std::string_view fault_of(const Part& part, const std::string& file) {
  if (&part == &password && line_of(file, "").empty())
    return "it has no first line; write the password there";
  if (&part == &nkey && (line_of(file, "SU").empty() || public_nkey(file).empty()))
    return "a line with the user's seed (SU...) and a line with its public key (U...) are required";
  if (&part == &credentials &&
      !(has_text(file, "BEGIN NATS USER JWT") && has_text(file, "BEGIN USER NKEY SEED")))
    return "a user's JWT and seed are required, as \"nsc generate creds\" writes them";
  return {};
}

void check(std::string_view option, const Part& part, const std::string& file, Address& address) {
  if (const std::string why = why_unreadable_file(file); !why.empty())
    unusable(option, part, file, why);
  if (const std::string_view fault = fault_of(part, file); !fault.empty())
    unusable(option, part, file, fault);
  struct stat found {};
  if (part.is_secret && stat(file.c_str(), &found) == 0 && (found.st_mode & S_IROTH) != 0) {
    address.notices.push_back(fmt::format("{}: everybody may read {}, {}; chmod 600 {}", option,
                                          part.what, printable(file), printable(file)));
  }
}

void take(Security& into, const Part& part) {
  if ((into.*part.file).empty()) into.*part.file = of_environment(part);
}

/// Files of Security: what can be seen before a server is asked. Reads the secret of the password's
/// file, unless the address has one. Adds notices. Throws Error(argument), naming `option`, when a
/// file cannot be used, and when two things log in.
void check_security(std::string_view option, Address& address) {
  const Security& security = address.security;
  require(security.certificate_file.empty() == security.key_file.empty(), ErrorKind::argument,
          "{}: the client's certificate and its key are required together; set {} and {}", option,
          certificate.variable, key.variable);
  for (const Part* part : parts) {
    const std::string& file = security.*part->file;
    // A password in the address comes before the file.
    if (!file.empty() && (part != &password || address.secret.empty()))
      check(option, *part, file, address);
  }
  if (address.secret.empty() && !security.password_file.empty())
    address.secret = line_of(security.password_file, "");
  const int logins = (address.secret.empty() ? 0 : 1) + (security.nkey_file.empty() ? 0 : 1) +
                     (security.credentials_file.empty() ? 0 : 1);
  require(logins < 2, ErrorKind::argument,
          "{}: a password or token, an nkey and credentials do not log in together; choose one of "
          "the address, {}, {} and {}",
          option, password.variable, nkey.variable, credentials.variable);
}

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

}  // namespace

Security with_environment(Security given) {
  take(given, ca);
  if (given.certificate_file.empty() && given.key_file.empty()) {
    take(given, certificate);
    take(given, key);
  }
  if (logs_in(given)) return given;
  for (const Part* part : {&password, &nkey, &credentials}) take(given, *part);
  return given;
}

std::string public_nkey(const std::string& file) { return line_of(file, "U"); }

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
