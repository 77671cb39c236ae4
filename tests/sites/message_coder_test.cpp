// Messages between sites in few bits: what readers hold is what the sender holds, and errors do not
// add up.
#include "sites/message_coder.hpp"

#include <fast/core/random.hpp>

#include <cmath>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "support/catch.hpp"

using namespace fast;
using namespace fast::sites;

namespace {

/// A tensor of floats, one of doubles, and a buffer, packed.
struct Packed {
  std::vector<float> weights = std::vector<float>(1000);
  std::vector<double> bias = std::vector<double>(300);
  std::vector<float> statistics = std::vector<float>(40);
  ParameterLayout layout() {
    TensorView buffer = view_of("c", std::span(statistics));
    buffer.role = Role::buffer;
    return ParameterLayout(
        {view_of("a", std::span(weights)), view_of("b", std::span(bias)), buffer});
  }
  std::shared_ptr<AlignedBuffer> pack() {
    const ParameterLayout all = layout();
    auto packed = std::make_shared<AlignedBuffer>(all.size_bytes());
    all.gather(packed->data());
    return packed;
  }
  void unpack(const AlignedBuffer& packed) { layout().scatter(packed.data()); }
};

Packed drawn(std::uint64_t seed) {
  Rng rng(seed);
  Packed model;
  for (float& value : model.weights) value = static_cast<float>(rng.normal());
  for (double& value : model.bias) value = rng.normal();
  for (float& value : model.statistics) value = static_cast<float>(rng.normal());
  return model;
}

Received received(const MessageCoder::Coded& coded, std::int64_t number,
                  std::uint64_t incarnation = 7) {
  Received message{"b", incarnation, {}, coded.bytes};
  message.what.number = number;
  message.what.base = coded.base;
  return message;
}

/// A reader whose own message is zero: what it decodes is what it holds of the other.
struct Reader {
  MessageCoder coder;
  explicit Reader(codec::Kind kind, double fraction = 1)
      : coder(Packed().layout(), kind, fraction) {
    coder.encode(Packed().pack(), 0, true);
  }
  std::optional<Packed> read(const Received& message) {
    const auto bytes = coder.decode(message);
    if (!bytes) return std::nullopt;
    Packed model;
    model.unpack(*bytes);
    return model;
  }
};

double largest(const Packed& a, const Packed& b) {
  double most = 0;
  for (std::size_t e = 0; e < a.weights.size(); ++e)
    most = std::max(most, std::abs(static_cast<double>(a.weights[e]) - b.weights[e]));
  for (std::size_t e = 0; e < a.bias.size(); ++e)
    most = std::max(most, std::abs(a.bias[e] - b.bias[e]));
  return most;
}

/// Root mean square.
double distance(const Packed& a, const Packed& b) {
  double squares = 0;
  for (std::size_t e = 0; e < a.weights.size(); ++e)
    squares += std::pow(static_cast<double>(a.weights[e]) - b.weights[e], 2);
  return std::sqrt(squares / static_cast<double>(a.weights.size()));
}

codec::Kind kind_of(std::string_view name) {
  return name == "sparse" ? codec::Kind::sparse : codec::by_name(name).kind;
}

}  // namespace

TEST_CASE("differences to what readers hold come to the message, and buffers are exact") {
  const char* name = GENERATE("int4", "int2");
  INFO(name);
  MessageCoder sender(Packed().layout(), kind_of(name));
  Reader reader(kind_of(name));
  Packed model = drawn(5);
  MessageCoder::Coded first = sender.encode(drawn(4).pack(), 1, true);
  CHECK(first.base == -1);
  CHECK(first.bytes->size_bytes() == sender.whole_bytes());
  CHECK(largest(*reader.read(received(first, 1)), drawn(4)) < 4 * std::ldexp(1, -8));
  double before = largest(drawn(4), model) + 4 * std::ldexp(1, -8);  // of bf16
  double before_rms = 2;
  for (int k = 2; k < 30; ++k) {
    const MessageCoder::Coded coded = sender.encode(model.pack(), k, false);
    CHECK(coded.base == k - 1);
    CHECK(coded.bytes->size_bytes() == sender.difference_bytes());
    const auto held = reader.read(received(coded, k));
    REQUIRE(held);
    CHECK(held->statistics == model.statistics);
    // int4: half of 1/7 of the largest difference of a block. int2: less, in the mean square.
    const double now = largest(*held, model), now_rms = distance(*held, model);
    if (std::string_view(name) == "int4") CHECK(now <= before / 14 + 1e-6);
    CHECK(now_rms <= before_rms + 1e-6);
    before = now;
    before_rms = now_rms;
  }
  CHECK(before_rms < 0.05);
}

TEST_CASE("of a sparse difference the largest entries travel, and the others later") {
  const double fraction = 0.1006;
  const std::size_t entries = 130;  // of 1300 parameters: 130.78 without its fraction
  MessageCoder sender(Packed().layout(), codec::Kind::sparse, fraction);
  Reader reader(codec::Kind::sparse, fraction);
  // A count, indices of 4 bytes, and doubles, as there are some; then the buffer, from a line of
  // the cache on.
  const std::size_t coded_bytes = 8 + 4 * entries + 8 * entries;
  CHECK(sender.difference_bytes() == (coded_bytes + 63) / 64 * 64 + 40 * sizeof(float));
  Packed model = drawn(5);
  const auto whole = sender.encode(Packed().pack(), 0, true);
  CHECK(whole.base == -1);
  REQUIRE(reader.read(received(whole, 0)));
  Packed expected;  // what readers hold
  for (int k = 1; k < 10; ++k) {
    INFO("message " << k);
    std::vector<double> sizes;
    for (std::size_t e = 0; e < 1000; ++e)
      sizes.push_back(std::abs(static_cast<double>(model.weights[e] - expected.weights[e])));
    for (std::size_t e = 0; e < 300; ++e)
      sizes.push_back(std::abs(model.bias[e] - expected.bias[e]));
    std::vector<double> sorted = sizes;
    std::ranges::sort(sorted, std::greater<>());
    REQUIRE(sorted[entries - 1] > sorted[entries]);  // values are drawn: none are equal
    for (std::size_t e = 0; e < 1000; ++e)
      if (sizes[e] >= sorted[entries - 1]) expected.weights[e] = model.weights[e];
    for (std::size_t e = 0; e < 300; ++e)
      if (sizes[1000 + e] >= sorted[entries - 1]) expected.bias[e] = model.bias[e];
    const auto coded = sender.encode(model.pack(), k, false);
    CHECK(coded.base == k - 1);
    CHECK(coded.bytes->size_bytes() == sender.difference_bytes());
    const auto held = reader.read(received(coded, k));
    REQUIRE(held);
    CHECK(largest(*held, expected) < 1e-6);
    CHECK(held->statistics == model.statistics);
    expected = *held;
  }
  CHECK(largest(expected, model) > 0);
  REQUIRE(reader.read(received(sender.encode(model.pack(), 10, false), 10)));
  const auto last = reader.read(received(sender.encode(model.pack(), 11, false), 11));
  REQUIRE(last);
  CHECK(largest(*last, model) < 1e-6);
}

TEST_CASE("a difference is taken only by readers of the message that it refers to") {
  const codec::Kind kind = kind_of(GENERATE("int4", "sparse"));
  MessageCoder sender(Packed().layout(), kind);
  Reader reader(kind), late(kind);
  const auto first = sender.encode(drawn(1).pack(), 4, false);
  CHECK(first.base == -1);  // the first one of all
  CHECK(reader.read(received(first, 4)));
  const auto second = sender.encode(drawn(2).pack(), 5, false);
  CHECK_FALSE(late.read(received(second, 5)));
  CHECK(reader.read(received(second, 5)));
  CHECK_FALSE(reader.read(received(second, 5)));  // not twice
  const auto third = sender.encode(drawn(3).pack(), 6, false);
  CHECK_FALSE(reader.read(received(third, 6, 8)));  // of another process
  const auto whole = sender.encode(drawn(3).pack(), 7, true);
  const auto a = reader.read(received(whole, 7)), b = late.read(received(whole, 7));
  REQUIRE((a && b));
  CHECK(largest(*a, *b) == 0);
  reader.coder.forget("b");
  const auto next = sender.encode(drawn(4).pack(), 8, false);
  CHECK_FALSE(reader.read(received(next, 8)));
  CHECK(late.read(received(next, 8)));
}

TEST_CASE(
    "a coder that begins anew sends a whole message, and what a code cannot hold is an error") {
  MessageCoder sender(Packed().layout(), kind_of("int4"));
  sender.encode(drawn(1).pack(), 4, false);
  CHECK(sender.encode(drawn(2).pack(), 5, false).base == 4);
  sender.restart();
  CHECK(sender.encode(drawn(3).pack(), 9, false).base == -1);
  CHECK(sender.encode(drawn(3).pack(), 10, false).base == 9);
  Packed large;
  large.weights[3] = 70'000;
  CHECK_NOTHROW(MessageCoder(Packed().layout(), kind_of("bf16")).encode(large.pack(), 0, true));
  CHECK_THROWS_WITH(MessageCoder(Packed().layout(), kind_of("fp16")).encode(large.pack(), 0, true),
                    ContainsSubstring("too large for codec fp16"));
}

TEST_CASE("readers of sites that have gone are forgotten") {
  MessageCoder sender(Packed().layout(), kind_of("int4"));
  Reader reader(kind_of("int4"));
  CHECK(reader.read(received(sender.encode(drawn(1).pack(), 0, true), 0)));
  reader.coder.keep_only({"a", "b"});
  CHECK(reader.read(received(sender.encode(drawn(2).pack(), 1, false), 1)));
  reader.coder.keep_only({"a"});
  CHECK_FALSE(reader.read(received(sender.encode(drawn(3).pack(), 2, false), 2)));
}

TEST_CASE("what int8 loses is in later messages: their sum follows that of the weights") {
  MessageCoder sender(Packed().layout(), codec::Kind::int8);
  Reader reader(codec::Kind::int8);
  const Packed model = drawn(11);
  std::vector<double> sum(model.weights.size());
  const int messages = 50;
  for (int k = 0; k < messages; ++k) {
    const auto held = reader.read(received(sender.encode(drawn(11).pack(), k, false), k));
    REQUIRE(held);
    for (std::size_t e = 0; e < sum.size(); ++e) sum[e] += held->weights[e];
  }
  double largest_value = 0;
  for (const float value : model.weights)
    largest_value = std::max(largest_value, std::abs(static_cast<double>(value)));
  for (std::size_t e = 0; e < sum.size(); ++e)
    CHECK(std::abs(sum[e] - messages * static_cast<double>(model.weights[e])) <
          largest_value / 127);
}

TEST_CASE("a rule takes its own message and the difference of what both sites have sent") {
  const char* name = GENERATE("identity", "bf16", "int8", "int4");
  INFO(name);
  MessageCoder sender(Packed().layout(), kind_of(name)), own(Packed().layout(), kind_of(name));
  Reader reader(kind_of(name));
  Packed mine = drawn(21), result;
  const auto sent = own.encode(mine.pack(), 0, true);
  const auto theirs = sender.encode(drawn(22).pack(), 0, true);
  const auto held = reader.read(received(theirs, 0)), mine_held = reader.read(received(sent, 0, 9));
  REQUIRE((held && mine_held));
  const auto taken = own.decode(received(theirs, 0));
  REQUIRE(taken);
  result.unpack(*taken);
  for (std::size_t e = 0; e < mine.weights.size(); ++e) {
    const double expected = kind_of(name) == codec::Kind::identity
                                ? held->weights[e]
                                : static_cast<double>(mine.weights[e]) + held->weights[e] -
                                      static_cast<double>(mine_held->weights[e]);
    CHECK(result.weights[e] == Approx(expected).margin(1e-6));
  }
}
