#include "fast_data/publish.hpp"

#include <fmt/core.h>

#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <functional>
#include <memory>
#include <numeric>
#include <utility>
#include <vector>

#include "core/message.hpp"
#include "data/files/origins.hpp"
#include "data/files/split.hpp"
#include "data/options/rows.hpp"
#include "feed/sample_messages.hpp"
#include "stream/broker.hpp"

namespace fast_data {

using namespace fast;

namespace {

/// Another order of samples in memory.
class Shuffled final : public data::SampleSource {
 public:
  Shuffled(data::Dataset samples, std::vector<std::size_t> order)
      : samples_(std::move(samples)), order_(std::move(order)) {}
  bool is_bytes() const override { return samples_.is_bytes(); }
  std::vector<std::size_t> shards() const override { return {order_.size()}; }
  void read(std::size_t sample, std::span<std::byte> into) const override {
    samples_.copy(order_[sample], into);
  }

 private:
  data::Dataset samples_;
  std::vector<std::size_t> order_;
};

}  // namespace

data::Dataset shuffled(const data::Dataset& samples, std::uint64_t seed) {
  std::vector<std::size_t> order(samples.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  Rng(mix_seed(seed, 0xda7a)).shuffle(std::span(order));
  data::Targets targets = data::chosen_targets(samples, order);
  return {samples.name(), samples.sample_shape(),
          std::make_shared<Shuffled>(samples, std::move(order)), std::move(targets)};
}

namespace {

constexpr std::size_t most_faults_shown = 5;

stream::Address address_of(const PublishOptions& options) {
  stream::Address address = stream::read_address(options.to, "publish");
  require(stream::is_subject(address.subject, false), ErrorKind::argument,
          "publish: {}: a subject without wildcards is missing; nats://HOST:PORT/SUBJECT is "
          "required",
          address.shown);
  return address;
}

void log(LogLevel, std::string_view text) {
  fast::say("fast-data: {}\n", printable(std::string(text)));
}

}  // namespace

void add_options(tools::Command& command, PublishOptions& options) {
  tools::offer(command.add_option("from", options.from, data_help)->required(),
               {"<file>", "<directory>"});
  command.add_option("to", options.to, "a subject of a stream: nats:// or tls://HOST:PORT/SUBJECT")
      ->required();
  command.begin_group("Publishing",
                      "fast-data publish packed nats://127.0.0.1:4222/samples --shuffle 7");
  tools::restrict(command.add_option("--part", options.part, "train or test"), {"train", "test"});
  command.add_option("--shuffle", options.shuffle, "publish in a random order, by this seed");
  tools::restrict<std::size_t>(
      command.add_option(
          "--repeat", options.repeat,
          "publish all samples so many times, each time in another order with --shuffle"),
      fast::options::one_or_more());
  command.add_option(
      "--id", options.id,
      "begin of the messages' ids: the stream stores a message of the same id once within "
      "its duplicate window [of the subject, the data set, its options, part and --shuffle]");
  tools::restrict<std::size_t>(command.add_option("--outstanding", options.outstanding,
                                                  "messages that wait for the stream's answer"),
                               fast::options::one_or_more());
}

void publish(const PublishOptions& options, const data::LoadOptions& reading) {
  const stream::Address address = address_of(options);
  for (const std::string& notice : address.notices) log(LogLevel::warning, notice);
  const auto broker = stream::connect(address, {.name = "fast-data", .log = log});
  const auto sink = broker->sink(address.subject);
  const data::Splits splits = data::load(options.from, reading);
  data::refuse_origins(splits, options.from, "messages");
  const data::Dataset& part = options.part == "train" ? splits.train : splits.test;
  std::string id = options.id;
  if (id.empty()) {
    const std::string how = address.subject + "\n" + data::text_of(reading);
    id = fmt::format("{}-{}-{}-{:016x}", options.from, options.part,
                     options.shuffle ? fmt::format("{}", *options.shuffle) : "in-order",
                     std::hash<std::string>()(how));
  }
  feed::Published all;
  std::size_t faults = 0;
  for (std::size_t turn = 0; turn < options.repeat; ++turn) {
    const auto left_out = [&faults](const std::string& why) {
      if (++faults <= most_faults_shown) log(LogLevel::warning, "left out: " + why);
    };
    const feed::Publication publication{address.subject, fmt::format("{}-{}", id, turn),
                                        options.outstanding};
    const feed::Published done =
        feed::publish(options.shuffle ? shuffled(part, *options.shuffle + turn) : part, *sink,
                      publication, left_out);
    all.stored += done.stored;
    all.repeated += done.repeated;
    all.left_out += done.left_out;
  }
  fmt::print("{}/{}: {} samples stored, {} were there already, {} left out\n", address.shown,
             printable(address.subject), all.stored, all.repeated, all.left_out);
}

}  // namespace fast_data
