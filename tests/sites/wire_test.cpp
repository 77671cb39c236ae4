#include "sites/wire.hpp"

#include <fmt/format.h>

#include <functional>
#include <random>

#include "support/catch.hpp"

using namespace fast;
using namespace fast::sites;

namespace {

Status example_status() {
  Status status{.run = "run7",
                .site = "heidelberg",
                .incarnation = 0xfedcba9876543210,
                .about = "61706 f32 parameters, \"gasloc\"\n",
                .begun = true,
                .first = 3,
                .next = 12,
                .round = 610,
                .newest = {},
                .known = {{"a", 1}, {"b-2", 1ULL << 33U}},
                .former = {{"c", 1ULL << 54U}}};
  status.newest.push_back(
      {Content::message, 11, 600, 32.5, "7", 10, 100'000, std::string(64, 'a')});
  status.newest.push_back({Content::state, 12, 600, 32.5, "8", -1, 5, std::string(64, 'b')});
  return status;
}

}  // namespace

TEST_CASE("a status comes as it was sent") {
  const Status sent = example_status();
  const auto got = decode_status(encode(sent));
  REQUIRE(got);
  CHECK(got->run == sent.run);
  CHECK(got->site == sent.site);
  CHECK(got->incarnation == sent.incarnation);
  CHECK(got->about == sent.about);
  CHECK(got->begun);
  CHECK_FALSE(got->leaving);
  CHECK((got->first == 3 && got->next == 12));
  CHECK(got->round == 610);
  CHECK(got->newest == sent.newest);
  CHECK(got->known == sent.known);
  CHECK(got->former == sent.former);
}

TEST_CASE("a message of another format is known by it, and no other message is") {
  CHECK(other_format("{\"format\":2,\"site\":\"a\"}\n") == 2);
  for (const std::string& text : {encode(example_status()), std::string("{}\n"), std::string(),
                                  std::string("{\"format\":2.5}\n"), std::string("[2]\n")})
    CHECK_FALSE(other_format(text));
}

TEST_CASE("wishes come as they were sent, and others are none") {
  CHECK(decode_wish(encode(Content::state)) == Content::state);
  CHECK(decode_wish(encode(Content::message)) == Content::message);
  for (const char* text : {"", "{}\n", "{\"content\": \"state\"}\n", "\n", "x"})
    CHECK_FALSE(decode_wish(text));
}

TEST_CASE("requests and chunks come as they were sent, whatever their bytes") {
  const auto request = decode_request(encode(ChunkRequest{"b", 5, Content::state, 3, 16, 4, 17}));
  REQUIRE(request);
  CHECK((request->reader == "b" && request->incarnation == 5 && request->number == 3));
  CHECK((request->content == Content::state && request->first == 16 && request->count == 4));
  CHECK(request->sent_us == 17);

  std::string bytes;
  for (int c = 0; c < 256; ++c) bytes += static_cast<char>(c);
  const auto values = std::as_bytes(std::span(bytes));
  const std::string text =
      encode(Chunk{"a", 9, Content::message, 4, 2, false, sha256_of(values), values, 17, 20, 21});
  const auto chunk = decode_chunk(text);
  REQUIRE(chunk);
  CHECK((chunk->site == "a" && chunk->incarnation == 9 && chunk->number == 4 && chunk->index == 2));
  CHECK((chunk->asked_us == 17 && chunk->heard_us == 20 && chunk->sent_us == 21));
  CHECK(std::ranges::equal(chunk->bytes, values));
  CHECK(chunk->sha256 == sha256_of(chunk->bytes));
}

TEST_CASE("SHA-256 is that of FIPS 180-2") {
  const std::string text = "abc";
  CHECK(sha256_of(std::as_bytes(std::span(text))) ==
        "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
}

TEST_CASE("a publication's hash is that of its chunks' hashes") {
  const std::string bytes = std::string(chunk_bytes, 'x') + "abc";
  const auto all = std::as_bytes(std::span(bytes));
  const auto hashes = chunk_hashes(all);
  REQUIRE(hashes.size() == 2);
  CHECK(hashes[0] == sha256_of(all.first(chunk_bytes)));
  CHECK(hashes[1] == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  const std::string joined = hashes[0] + hashes[1];
  CHECK(hash_of_chunks(hashes) == sha256_of(std::as_bytes(std::span(joined))));
  CHECK(chunk_hashes({}).empty());
}

TEST_CASE("what is no message of this format is none") {
  CHECK_FALSE(decode_status(""));
  CHECK_FALSE(decode_status("{}\n"));
  CHECK_FALSE(decode_status("null\n"));
  CHECK_FALSE(decode_chunk(encode(example_status())));
  std::string other = encode(example_status());
  const std::string own = fmt::format("\"format\":{}", wire_format);
  REQUIRE(other.find(own) != other.npos);
  other.replace(other.find(own), own.size(), "\"format\":2");
  CHECK_FALSE(decode_status(other));
}

TEST_CASE("names and numbers that are out of range make a message none") {
  const auto with = [](const std::function<void(Status&)>& change) {
    Status status = example_status();
    change(status);
    return decode_status(encode(status)).has_value();
  };
  CHECK(with([](Status&) {}));
  for (const char* name : {"", "a b", "a.b", "a\r\nPUB x 1", "*"})
    CHECK_FALSE(with([&](Status& status) { status.site = name; }));
  CHECK_FALSE(with([](Status& status) { status.round = -1; }));
  CHECK_FALSE(with([](Status& status) { status.next = std::int64_t{1} << 60; }));
  CHECK_FALSE(with([](Status& status) { status.newest[0].samples = -1; }));
  CHECK_FALSE(with([](Status& status) { status.newest[0].samples = 0; }));
  CHECK_FALSE(with([](Status& status) { status.newest[0].samples = 1e300; }));
  CHECK_FALSE(with([](Status& status) { status.newest[0].number = -5; }));
  CHECK_FALSE(with([](Status& status) { status.newest[0].bytes = 1ULL << 60U; }));
  CHECK_FALSE(with([](Status& status) { status.newest[0].base = 11; }));
  CHECK_FALSE(with([](Status& status) { status.newest[0].base = -2; }));
  for (const char* format : {"1e300", "2.5", "-1", "null", "\"3\""}) {
    std::string text = encode(example_status());
    const std::string own = fmt::format("\"format\":{}", wire_format);
    text.replace(text.find(own), own.size(), fmt::format("\"format\":{}", format));
    INFO(text);
    CHECK_FALSE(decode_status(text));
  }
  for (const char* number : {"1e300", "1.5", "-1", "null", "\"3\"", "18446744073709551615"}) {
    std::string text = encode(example_status());
    const std::string round = "\"round\":610";
    text.replace(text.find(round), round.size(), fmt::format("\"round\":{}", number));
    INFO(text);
    CHECK_FALSE(decode_status(text));
  }
  CHECK_FALSE(decode_request(encode(ChunkRequest{"a\r\n", 5, Content::state, 3, 16, 4})));
  CHECK_FALSE(decode_chunk(encode(Chunk{"a b", 9, Content::message, 4, 2, false, "", {}})));
}

TEST_CASE("damaged messages throw nothing") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  std::mt19937 random(seed);
  const std::string whole = encode(example_status());
  for (int i = 0; i < 2000; ++i) {
    std::string text = whole.substr(0, 1 + random() % whole.size());
    for (unsigned k = 0; k < 1 + random() % 4; ++k)
      text[random() % text.size()] = static_cast<char>(random());
    CHECK_NOTHROW(decode_status(text));
    CHECK_NOTHROW(decode_request(text));
    CHECK_NOTHROW(decode_chunk(text));
  }
}

TEST_CASE("the chunks of a publication are all of its bytes") {
  for (const std::uint64_t bytes : {0ULL, 1ULL, 65535ULL, 65536ULL, 65537ULL, 200'000ULL}) {
    Publication what;
    what.bytes = bytes;
    std::uint64_t sum = 0;
    for (std::size_t i = 0; i < what.chunks(); ++i) {
      CHECK(what.chunk_size(i) > 0);
      sum += what.chunk_size(i);
    }
    CHECK(sum == bytes);
    CHECK(what.chunk_size(what.chunks()) == 0);
  }
}
