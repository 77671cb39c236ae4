#include "feed/sample_messages.hpp"

#include <fast/core/error.hpp>

#include <cstring>
#include <limits>

#include "support/catch.hpp"

using namespace fast;

namespace {

data::Dataset images() {
  return {"images", {1, 2, 2}, std::vector<std::uint8_t>{1, 2, 3, 4, 50, 60, 70, 255}, {2, 0}, 3};
}

data::Dataset points() {
  return {"points",
          {2},
          std::vector<float>{0.1F, -2.5F, 1e-30F, 4},
          data::Targets{std::vector<float>{0.1F, 1.5F, -3e20F, 0.0F}, {2}, 0}};
}

stream::Message received(stream::Outgoing sent) {
  return {sent.subject, std::move(sent.body), std::move(sent.headers), 17};
}

}  // namespace

TEST_CASE("a sample with class labels comes back as it was sent") {
  const data::Dataset all = images();
  for (std::size_t i = 0; i < 2; ++i) {
    const stream::Message message = received(feed::message_of(all, i, "in"));
    const feed::Sample sample = feed::sample_in(message, all);
    const auto values = std::get<std::span<const std::uint8_t>>(all.values()).subspan(4 * i, 4);
    CHECK(std::equal(values.begin(), values.end(), sample.values.begin(), sample.values.end(),
                     [](std::uint8_t a, char b) { return a == static_cast<std::uint8_t>(b); }));
    CHECK(sample.labels == std::vector<std::int32_t>{all.labels()[i]});
    CHECK(sample.targets.empty());
  }
  const stream::Outgoing message = feed::message_of(all, 0, "in");
  CHECK(message.subject == "in");
  CHECK(message.headers.at("X-Tensor-Type") == "u8");
  CHECK(message.headers.at("X-Tensor-Shape") == "1x2x2");
  CHECK(message.headers.at("X-Label") == "2");
}

TEST_CASE("float values and targets come back with the same bits") {
  const data::Dataset all = points();
  for (std::size_t i = 0; i < 2; ++i) {
    const stream::Message message = received(feed::message_of(all, i, "in"));
    const feed::Sample sample = feed::sample_in(message, all);
    std::array<float, 2> values{};
    REQUIRE(sample.values.size() == sizeof values);
    std::memcpy(values.data(), sample.values.data(), sizeof values);
    for (std::size_t k = 0; k < 2; ++k) {
      CHECK(values[k] == std::get<std::span<const float>>(all.values())[2 * i + k]);
      CHECK(sample.targets.at(k) == all.targets()[2 * i + k]);
    }
  }
}

TEST_CASE("malformed messages are refused with their number and what is required") {
  const stream::Message good = received(feed::message_of(images(), 0, "in"));
  const auto refuses = [&](const char* header, const char* value, const char* text) {
    stream::Message bad = good;
    bad.headers[header] = value;
    CHECK_THROWS_WITH(feed::sample_in(bad, images()),
                      ContainsSubstring("message 17") && ContainsSubstring(text));
  };
  refuses("X-Tensor-Type", "f32", "need u8");
  refuses("X-Tensor-Shape", "2x2", "1x2x2");
  refuses("X-Label", "", "1 number is required");
  refuses("X-Label", "cat", "1 number is required");
  refuses("X-Label", "1 2", "1 number is required");
  refuses("X-Label", "3", "classes are 0 to 2");
  refuses("X-Label", "-1", "classes are 0 to 2");
  stream::Message bad = good;
  bad.body += "x";
  CHECK_THROWS_WITH(feed::sample_in(bad, images()), ContainsSubstring("5 bytes"));
  bad = good;
  bad.headers.clear();
  CHECK_THROWS_WITH(feed::sample_in(bad, images()), ContainsSubstring("X-Tensor-Type"));
  bad = received(feed::message_of(points(), 0, "in"));
  bad.headers["X-Target"] = "1 nan";
  CHECK_THROWS_WITH(feed::sample_in(bad, points()), ContainsSubstring("finite"));
  bad = good;
  bad.headers.clear();
  bad.has_damaged_headers = true;
  CHECK_THROWS_WITH(feed::sample_in(bad, images()),
                    ContainsSubstring("message 17: its headers cannot be read"));

  stream::Message without_shape = good;
  without_shape.headers.erase("X-Tensor-Shape");
  CHECK_NOTHROW(feed::sample_in(without_shape, images()));
}

TEST_CASE("values that are not finite, and tokens that a model does not have, are refused") {
  const auto with_value = [](float value) {
    stream::Message message = received(feed::message_of(points(), 0, "in"));
    std::memcpy(message.body.data() + sizeof value, &value, sizeof value);
    return message;
  };
  for (const float bad :
       {std::numeric_limits<float>::quiet_NaN(), -std::numeric_limits<float>::infinity()}) {
    CHECK_THROWS_WITH(feed::sample_in(with_value(bad), points()),
                      ContainsSubstring("message 17: value 1 is ") && ContainsSubstring("finite"));
  }
  stream::Message tokens = with_value(4);
  const float first = 0;
  std::memcpy(tokens.body.data(), &first, sizeof first);
  CHECK_NOTHROW(feed::sample_in(tokens, points(), 5));
  CHECK_THROWS_WITH(feed::sample_in(tokens, points(), 4),
                    ContainsSubstring("token 4; whole numbers from 0 to 3"));
  const stream::Message bytes = received(feed::message_of(images(), 0, "in"));  // 1, 2, 3, 4
  CHECK_NOTHROW(feed::sample_in(bytes, images(), 5));
  CHECK_THROWS_WITH(feed::sample_in(bytes, images(), 4), ContainsSubstring("token 4"));
  CHECK_THROWS_WITH(feed::sample_in(with_value(1.5F), points(), 9),
                    ContainsSubstring("token 0.1"));  // the first value
}
