#include "stream/address.hpp"

#include <fast/core/error.hpp>

#include "support/catch.hpp"

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

TEST_CASE("what is no address is refused, without its password") {
  for (const char* text : {"", "nats:/", "nats://", "http://host", "nats://host:0",
                           "nats://host:70000", "nats://host:x", "nats://ho st", "nats://host/a..b",
                           "nats://host/a b", "nats://host/>.a", "host:4222"}) {
    INFO(text);
    CHECK_THROWS_AS(stream::read_address(text, "--stream"), Error);
  }
  // A slash ends the address, and the last @ ends the password.
  for (const char* address : {"nats://me:secret@host:0", "nats://me:Ab/secret@host:4222",
                              "nats://me:p@secret@host:99999", "me:secret@host"}) {
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
