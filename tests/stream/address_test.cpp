#include "stream/broker.hpp"

#include <cstdlib>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <filesystem>
#include <fstream>
#include <string>
#include <utility>
#include <vector>

#include "support/catch.hpp"
#include "support/seed.hpp"
#include "support/temporary_directory.hpp"

using namespace fast;

namespace {

using Lines = std::vector<std::string>;

/// Sets a variable of the environment while it exists.
class Variable {
 public:
  Variable(std::string name, const std::filesystem::path& value) : name_(std::move(name)) {
    setenv(name_.c_str(), value.c_str(), 1);
  }
  ~Variable() { unsetenv(name_.c_str()); }
  Variable(const Variable&) = delete;
  Variable& operator=(const Variable&) = delete;

 private:
  std::string name_;
};

std::string write(const std::filesystem::path& file, std::string_view text, int mode = 0600) {
  std::ofstream(file) << text;
  std::filesystem::permissions(file, std::filesystem::perms(mode));
  return file.string();
}

template <class T>
const T& one_of(Rng& random, const std::vector<T>& choices) {
  return choices[random.below(choices.size())];
}

}  // namespace

TEST_CASE("the address of a stream has a host, and may have a port, a subject and a user") {
  const auto plain = stream::read_address("nats://host", "--stream");
  CHECK(plain.servers == Lines{"nats://host:4222"});
  CHECK(plain.subject.empty());
  CHECK_FALSE(plain.is_tls());
  const auto whole = stream::read_address("nats://me:secret@host.org:99/images.>", "--data");
  CHECK(whole.servers == Lines{"nats://host.org:99"});
  CHECK(whole.user == "me");
  CHECK(whole.secret == "secret");
  CHECK(whole.shown == "nats://host.org:99");
  CHECK(whole.subject == "images.>");
  CHECK(stream::read_address("nats://[::1]:7", "--data").shown == "nats://[::1]:7");
  CHECK(stream::read_address("tls://[::1]", "--data").shown == "tls://[::1]:4222");
  CHECK(stream::read_address("tls://host", "--data").is_tls());
}

TEST_CASE("an address lists servers of one scheme, with one user") {
  const auto two = stream::read_address("tls://a:1,tls://b/run7", "--site-url");
  CHECK(two.servers == Lines{"tls://a:1", "tls://b:4222"});
  CHECK(two.shown == "tls://a:1,tls://b:4222");
  CHECK(two.subject == "run7");
  const auto with_user = stream::read_address("nats://me:p,w@a,nats://b,nats://me:p,w@c", "--data");
  CHECK(with_user.servers == Lines{"nats://a:4222", "nats://b:4222", "nats://c:4222"});
  CHECK(with_user.user == "me");
  CHECK(with_user.secret == "p,w");
  for (const char* text :
       {"nats://a,tls://b", "tls://a,nats://b/s", "nats://a,b", "nats://a,", "nats://a,nats://",
        "nats://a/s,nats://b", "nats://me:x@a,nats://you:x@b", "tls://a,tls://[::1]"}) {
    INFO(text);
    CHECK_THROWS_AS(stream::read_address(text, "--data"), Error);
  }
  CHECK_THROWS_WITH(stream::read_address("nats://a,tls://b", "--data"),
                    ContainsSubstring("mixes nats:// and tls://"));
}

TEST_CASE("drawn addresses are read as they were written") {
  const std::uint64_t seed = test_seed(19);
  INFO("FAST_TEST_SEED=" << seed);
  Rng random(seed);
  for (int turn = 0; turn < 2000; ++turn) {
    const std::string scheme = one_of<std::string>(random, {"nats://", "tls://"});
    const std::string user = scheme == "tls://" ? "" : one_of<std::string>(random, {"", "u:p@"});
    const std::string subject = one_of<std::string>(random, {"", "a", "a.b-c.>", "*.x", "run7"});
    std::string text;
    Lines servers;
    const std::uint64_t count = 1 + random.below(4);
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::string host =
          one_of<std::string>(random, {"a", "b.example.org", "127.0.0.1", "x_y-1"});
      const std::uint64_t port = 1 + random.below(65535);
      const bool says_port = random.below(2) == 0;
      text += (i > 0 ? "," : "") + scheme + (i == 0 || random.below(2) == 0 ? user : "") + host +
              (says_port ? ":" + std::to_string(port) : "");
      servers.push_back(scheme + host + ":" + (says_port ? std::to_string(port) : "4222"));
    }
    if (!subject.empty()) text += "/" + subject;
    INFO(text);
    const auto read = stream::read_address(text, "--data");
    CHECK(read.servers == servers);
    CHECK(read.subject == subject);
    CHECK(read.secret == (user.empty() ? "" : "p"));
    CHECK(read.shown.find('@') == std::string::npos);
  }
}

TEST_CASE("drawn mistakes are refused with one line that keeps the password") {
  const std::uint64_t seed = test_seed(20);
  INFO("FAST_TEST_SEED=" << seed);
  Rng random(seed);
  const std::string good = "nats://me:S3cretS3cret@host.org:4222,nats://other:99/a.b";
  for (int turn = 0; turn < 5000; ++turn) {
    std::string text = good;
    for (std::uint64_t changes = 1 + random.below(3); changes > 0; --changes) {
      const std::size_t at = random.below(text.size());
      const char by =
          one_of<char>(random, {'/', ':', '@', ',', '[', ']', ' ', '\n', '.', '0', '>'});
      // The secret stays whole, so that it can be looked for; a second copy of a part is none.
      const std::size_t secret = text.find("S3cretS3cret");
      if (secret != text.npos && at >= secret && at < secret + 12) continue;
      if (random.below(2) == 0) {
        text[at] = by;
      } else {
        text.insert(at, 1, by);
      }
    }
    INFO(text);
    try {
      const auto read = stream::read_address(text, "--data");
      CHECK(read.shown.find("S3cret") == std::string::npos);
    } catch (const Error& error) {
      const std::string line = error.what();
      CHECK(line.find('\n') == std::string::npos);
      // Without an @, nothing says that there is a password.
      if (text.find('@') > text.find("S3cret") && text.find('@') != text.npos)
        CHECK(line.find("S3cretS3cret") == std::string::npos);
    }
  }
}

TEST_CASE("a password or a token may stand in a file") {
  testing::TemporaryDirectory directory;
  const auto file = directory / "secret";
  write(file, "p@ss/word:1\r\nnext line\n");
  const Variable variable("FAST_NATS_PASSWORD_FILE", file);
  const auto with_user = stream::read_address("nats://me@host/a", "--stream");
  CHECK(with_user.user == "me");
  CHECK(with_user.secret == "p@ss/word:1");
  CHECK(with_user.servers == Lines{"nats://host:4222"});
  CHECK(with_user.subject == "a");
  CHECK(with_user.notices.empty());
  const auto with_token = stream::read_address("tls://host/a", "--stream");
  CHECK(with_token.user.empty());
  CHECK(with_token.secret == "p@ss/word:1");
  const auto of_its_own = stream::read_address("nats://me:other@host/a", "--stream");
  CHECK(of_its_own.secret == "other");
  write(file, "\n");
  CHECK_THROWS_WITH(stream::read_address("nats://host", "--stream"),
                    ContainsSubstring("FAST_NATS_PASSWORD_FILE"));
  std::filesystem::remove(file);
  CHECK_THROWS_WITH(
      stream::read_address("nats://me@host", "--stream"),
      ContainsSubstring("FAST_NATS_PASSWORD_FILE") && ContainsSubstring("there is no such file"));
}

TEST_CASE("a secret in the address is a notice with nats://, and refused with tls://") {
  const auto token = stream::read_address("nats://t0ken@host", "--stream");
  CHECK(token.user.empty());
  CHECK(token.secret == "t0ken");
  for (const char* text : {"nats://me:t0ken@host", "nats://t0ken@host"}) {
    const auto notices = stream::read_address(text, "--stream").notices;
    REQUIRE(notices.size() == 1);
    CHECK_THAT(notices[0],
               ContainsSubstring("FAST_NATS_PASSWORD_FILE") && !ContainsSubstring("t0ken"));
  }
  for (const char* text : {"tls://me:t0ken@host", "tls://t0ken@host"}) {
    CHECK_THROWS_WITH(stream::read_address(text, "--stream"),
                      ContainsSubstring("lists of processes show") && !ContainsSubstring("t0ken"));
  }
}

TEST_CASE("files of certificates, keys and logins are looked at before a server is asked") {
  testing::TemporaryDirectory directory;
  const std::string good = write(directory / "good", "-----BEGIN\n");
  const std::string nkey = write(directory / "nkey", "SUAX\nUBX\n");
  const std::string shared = write(directory / "shared", "secret\n", 0644);
  const std::string none = (directory / "none").string();
  const auto read = [](const stream::Security& security) {
    return stream::read_address("tls://host", "--data", security);
  };
  struct Case {
    stream::Security security;
    const char* text;
  };
  for (const Case& one : {
           Case{{.ca_file = none}, "there is no such file"},
           Case{{.ca_file = directory.path()}, "it is a directory"},
           Case{{.certificate_file = good}, "are required together"},
           Case{{.key_file = good}, "FAST_NATS_CERTIFICATE_FILE"},
           Case{{.certificate_file = good, .key_file = none}, "FAST_NATS_KEY_FILE"},
           Case{{.nkey_file = good}, "seed (SU...)"},
           Case{{.credentials_file = good}, "nsc generate creds"},
           Case{{.password_file = good, .nkey_file = nkey}, "choose one"},
       }) {
    INFO(one.text);
    CHECK_THROWS_WITH(read(one.security),
                      ContainsSubstring("--data: ") && ContainsSubstring(one.text));
  }
  const auto with_notice = read({.password_file = shared});
  CHECK(with_notice.secret == "secret");
  REQUIRE(with_notice.notices.size() == 1);
  CHECK_THAT(with_notice.notices[0], ContainsSubstring("chmod 600 " + shared));
}

TEST_CASE("the environment names files where a program does not") {
  testing::TemporaryDirectory directory;
  const std::string ca = write(directory / "ca", "x\n"), nkey = write(directory / "nkey", "x\n");
  const Variable of_ca("FAST_NATS_CA_FILE", ca), of_nkey("FAST_NATS_NKEY_FILE", nkey);
  const Variable of_certificate("FAST_NATS_CERTIFICATE_FILE", "certificate");
  const Variable of_key("FAST_NATS_KEY_FILE", "key");
  const auto all = stream::with_environment({});
  CHECK(all.ca_file == ca);
  CHECK(all.nkey_file == nkey);
  CHECK(all.certificate_file == "certificate");
  CHECK(all.key_file == "key");
  const auto own = stream::with_environment(
      {.ca_file = "own", .certificate_file = "mine", .credentials_file = "site.creds"});
  CHECK(own.ca_file == "own");
  CHECK(own.key_file.empty());
  CHECK(own.nkey_file.empty());
  CHECK(own.credentials_file == "site.creds");
}

TEST_CASE("what is no address is refused, without its password") {
  for (const char* text : {"",
                           "nats:/",
                           "nats://",
                           "http://host",
                           "nats://host:0",
                           "nats://host:70000",
                           "nats://host:x",
                           "nats://ho st",
                           "nats://host/a..b",
                           "nats://host/a b",
                           "nats://host/>.a",
                           "host:4222",
                           "nats://a:b:7",
                           "nats://::1",
                           "nats://[::1",
                           "nats://[]:7",
                           "tls://",
                           "tls:/host",
                           "TLS://host",
                           "nats://[host]:1"}) {
    INFO(text);
    CHECK_THROWS_AS(stream::read_address(text, "--stream"), Error);
  }
  // A slash ends the address, and the last @ ends the password.
  for (const char* address :
       {"nats://me:secret@host:0", "nats://me:Ab/secret@host:4222", "nats://me:p@secret@host:99999",
        "me:secret@host", "nats://me:12/secret@host"}) {
    INFO(address);
    try {
      stream::read_address(address, "--stream");
      FAIL("accepted");
    } catch (const Error& error) {
      const std::string text = error.what();
      CHECK(text.find("--stream") != std::string::npos);
      CHECK(text.find("secret") == std::string::npos);
    }
  }
}

TEST_CASE("subjects and their wildcards") {
  CHECK(stream::is_subject("a.b-1.c_d", false));
  CHECK_FALSE(stream::is_subject("a.*", false));
  CHECK(stream::is_subject("a.*.c", true));
  CHECK(stream::is_subject(">", true));
  for (const char* text : {"", ".", "a.", ".a", "a..b", "a b", "a.>.b", "a>"}) {
    INFO(text);
    CHECK_FALSE(stream::is_subject(text, true));
  }
  struct Case {
    const char *filter, *subject;
    bool matches;
  };
  for (const Case& one : {Case{"a", "a", true},
                          {"a", "b", false},
                          {"a", "a.b", false},
                          {"a.b", "a", false},
                          {"a.*", "a.b", true},
                          {"a.*", "a.b.c", false},
                          {"a.>", "a.b.c", true},
                          {"a.>", "a", false},
                          {">", "a.b", true},
                          {"*.b", "a.b", true},
                          {"*.b", "a.c", false}}) {
    INFO(one.filter << " " << one.subject);
    CHECK(stream::subject_matches(one.filter, one.subject) == one.matches);
  }
}
