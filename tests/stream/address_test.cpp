#include "stream/broker.hpp"

#include <cstdlib>
#include <fast/core/error.hpp>
#include <filesystem>
#include <fstream>

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

using namespace fast;

TEST_CASE("the address of a stream has a host, and may have a port, a subject and a user") {
  const auto plain = stream::read_address("nats://host", "--stream");
  CHECK(plain.url == "nats://host:4222");
  CHECK(plain.subject.empty());
  const auto whole = stream::read_address("nats://me:secret@host.org:99/images.>", "--data");
  CHECK(whole.url == "nats://me:secret@host.org:99");
  CHECK(whole.shown == "nats://host.org:99");
  CHECK(whole.subject == "images.>");
  CHECK(stream::read_address("nats://[::1]:7", "--data").shown == "nats://[::1]:7");
  CHECK(stream::read_address("nats://[::1]", "--data").shown == "nats://[::1]:4222");
}

TEST_CASE("a password or a token may stand in a file") {
  testing::TemporaryDirectory directory;
  const auto file = directory.path() / "secret";
  std::ofstream(file) << "p@ss/word:1\r\nnext line\n";
  setenv("FAST_NATS_PASSWORD_FILE", file.c_str(), 1);
  const auto with_user = stream::read_address("nats://me@host/a", "--stream");
  const auto with_token = stream::read_address("nats://host/a", "--stream");
  const auto of_its_own = stream::read_address("nats://me:other@host/a", "--stream");
  std::ofstream(file, std::ios::trunc) << "\n";
  CHECK_THROWS_WITH(stream::read_address("nats://host", "--stream"),
                    ContainsSubstring("FAST_NATS_PASSWORD_FILE"));
  std::filesystem::remove(file);
  CHECK_THROWS_WITH(stream::read_address("nats://me@host", "--stream"),
                    ContainsSubstring("FAST_NATS_PASSWORD_FILE"));
  unsetenv("FAST_NATS_PASSWORD_FILE");
  CHECK(with_user.user == "me");
  CHECK(with_user.secret == "p@ss/word:1");
  CHECK(with_user.url == "nats://host:4222");
  CHECK(with_user.shown == "nats://host:4222");
  CHECK(with_user.subject == "a");
  CHECK(with_token.user.empty());
  CHECK(with_token.secret == "p@ss/word:1");
  CHECK(of_its_own.secret.empty());
  CHECK(of_its_own.url == "nats://me:other@host:4222");
  CHECK(stream::read_address("nats://me@host", "--stream").url == "nats://me@host:4222");
}

TEST_CASE("what is no address is refused, without its password") {
  for (const char* text : {"", "nats:/", "nats://", "http://host", "nats://host:0",
                           "nats://host:70000", "nats://host:x", "nats://ho st", "nats://host/a..b",
                           "nats://host/a b", "nats://host/>.a", "host:4222"}) {
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
