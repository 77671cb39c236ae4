#include "stream/security.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <cstdlib>
#include <fast/core/error.hpp>
#include <fstream>
#include <iterator>

#include "core/message.hpp"

namespace fast::stream {
namespace {

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

std::string public_nkey(const std::string& file) { return line_of(file, "U"); }

}  // namespace fast::stream
