#include "worker/start/startup.hpp"

#define XXH_INLINE_ALL
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/core/version.hpp>
#include <sstream>

#include "codec/block.hpp"
#include "combine/accelerator.hpp"
#include "combine/element_work.hpp"
#include "core/contains.hpp"
#include "core/numbers.hpp"
#include "worker/site_exchange.hpp"
#include "worker/worker_options.hpp"

namespace fast::worker {
namespace {

// What tensors on a device can be combined by, and what cannot.

std::vector<std::string_view> device_algorithms() {
  std::vector<std::string_view> found;
  for (const std::string_view name : algorithm::names()) {
    if (combine::device_rule(*algorithm::by_name(name).make())) found.push_back(name);
  }
  return found;
}

/// False for a rule of the caller's own.
bool runs_with_other_options(std::string_view name) {
  const auto known = algorithm::names();
  return contains(known, name) && combine::device_rule(*algorithm::by_name(name).make());
}

constexpr auto or_mirror = "or hand over a mirror of the tensors in host memory";

}  // namespace

void check_for_device(const ParameterLayout& layout, const WorkerOptions& options) {
  const std::string why_not = why_not_on_device(options, layout.views());
  require(why_not.empty(), ErrorKind::argument, "Worker: {}", why_not);
}

bool is_coded_on_host(const ParameterLayout& layout, const WorkerOptions& options) {
  const codec::Kind kind = options.codec.kind;
  if (kind == codec::Kind::identity) return false;
  const bool is_half = kind == codec::Kind::bf16 || kind == codec::Kind::fp16;
  const auto rule = combine::device_rule(*options.algorithm.make());
  const bool averages = rule && std::holds_alternative<algorithm::Averaging>(*rule);
  const bool doubles = std::ranges::any_of(layout.views(), [](const TensorView& view) {
    return view.dtype == DType::f64 && view.role == Role::parameter;
  });
  return !is_half || options.codec.stochastic || !averages || doubles;
}

}  // namespace fast::worker

namespace fast {

std::string why_not_on_device(const WorkerOptions& options, std::span<const TensorView> tensors) {
  const algorithm::Rule& algorithm = options.algorithm;
  const std::string_view name = algorithm.traits().name;
  if (!combine::device_rule(*algorithm.make())) {
    const bool with_others = worker::runs_with_other_options(name);
    const std::string options = with_others ? " with " + algorithm.traits().parameters : "";
    return fmt::format("algorithm {}{} with tensors on a device; choose {}, {}", name, options,
                       with_others
                           ? "other options of the rule"
                           : fmt::format("one of {}", fmt::join(worker::device_algorithms(), ", ")),
                       worker::or_mirror);
  }
  if (worker::sends_sums(algorithm.traits(), options)) {
    return fmt::format(
        "algorithm {} with tensors on a device at staleness above 0; choose staleness 0, {}", name,
        worker::or_mirror);
  }
  if (options.robust != Robust::none)
    return fmt::format("robust averaging with tensors on a device; take robust none, {}",
                       worker::or_mirror);
  const codec::Kind kind = options.codec.kind;
  const bool takes_halves = kind == codec::Kind::identity || codec::record_of(kind).keeps_halves;
  const auto half = std::ranges::find_if(tensors, [](const TensorView& view) {
    return size_bytes(view.dtype) == sizeof(BFloat16) && view.role == Role::parameter;
  });
  if (takes_halves || half == tensors.end()) return {};
  return fmt::format(
      "codec {} with {} on a device, where messages of 16-bit weights have 16 bits and would be "
      "rounded twice; choose identity or a codec of 16 bits, keep such weights as f32, {}",
      codec::name(options.codec), describe(*half), worker::or_mirror);
}

}  // namespace fast

namespace fast::worker {
namespace {

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

/// "there" and "here" at the first line that differs; an absent line is "nothing".
std::string first_difference(const std::string& a, const std::string& b, int rank_a, int rank_b) {
  const auto left = lines_of(a), right = lines_of(b);
  const std::size_t common = std::min(left.size(), right.size());
  std::size_t at = 0;
  while (at < common && left[at] == right[at]) ++at;
  const auto line = [at](const std::vector<std::string>& lines) {
    return at < lines.size() ? lines[at] : std::string("nothing more");
  };
  return fmt::format("worker {} has {}, worker {} has {}", rank_a, line(left), rank_b, line(right));
}

std::string staleness_text(std::int64_t staleness) {
  return staleness == unbounded_staleness ? "inf" : std::to_string(staleness);
}

}  // namespace

std::string fingerprint(const ParameterLayout& layout, const algorithm::RuleTraits& algorithm,
                        const Schedule& schedule, const WorkerOptions& options) {
  WorkerOptions rows = options;
  options::OptionTable table;
  add_rows(table, rows);
  std::string frozen;
  for (const TensorView& view : options.frozen) frozen += "frozen " + describe(view) + "\n";
  const std::string site = options.site ? options.site->describe() : "no site";
  return fmt::format(
      "library version {}\n{}\nalgorithm {} {}\n{}topology {}\nworkers {}\nperiod {}\n{}\n{}\n{}{}",
      version(), options.must_agree, algorithm.name, algorithm.parameters, table.agreement(),
      schedule.name(), schedule.workers(), schedule.period(), site, layout.describe(),
      manifest(layout), frozen);
}

/// A fingerprint names each tensor. Two are sent, those of the first workers that differ.
void require_agreement(const Group& group, const std::string& fingerprint,
                       const Deadline& deadline) {
  constexpr auto purpose = "Worker: comparing models and options";
  const XXH128_hash_t hash = XXH3_128bits(fingerprint.data(), fingerprint.size());
  const auto hashes =
      group.all_gather({reinterpret_cast<const char*>(&hash), sizeof hash}, deadline, purpose);
  const auto other =
      std::ranges::find_if(hashes, [&](const auto& its) { return its != hashes[0]; });
  if (other == hashes.end()) return;
  const auto differs = static_cast<int>(other - hashes.begin());
  const bool is_told = group.rank() == 0 || group.rank() == differs;
  const auto texts = group.all_gather(is_told ? fingerprint : std::string(), deadline, purpose);
  const auto& there = texts[static_cast<std::size_t>(differs)];
  throw Error(ErrorKind::mismatch,
              fmt::format("Worker: {}; build the same model with the same options on every worker",
                          first_difference(texts[0], there, 0, differs)),
              true);
}

std::vector<TensorView> participating(std::vector<TensorView> views, const WorkerOptions& options) {
  const std::size_t before = views.size();
  if (options.participates) {
    std::erase_if(views, [&](const TensorView& view) { return !options.participates(view); });
    require(
        before == 0 || !views.empty(), ErrorKind::argument,
        "Worker: the `participates` option leaves none of {} tensors; let at least one take part",
        before);
  }
  const Device device = options.accelerator ? options.accelerator->device() : Device{};
  for (const TensorView& view : views) {
    require(view.device == device || options.accelerator, ErrorKind::argument,
            "Worker: {} is in {}; set WorkerOptions::accelerator to that device's "
            "(cuda::accelerator), or hand over a mirror in host memory",
            describe(view), describe(view.device));
    require(view.device == device, ErrorKind::argument,
            "Worker: {} is in {}, the accelerator's is {}; hand over tensors of one device",
            describe(view), describe(view.device), describe(device));
  }
  return views;
}

std::int64_t rounds_per_combination(const WorkerOptions& options) {
  constexpr std::int64_t most = std::int64_t{1} << 40;
  return std::min(
      most, saturating_product(options.mix_every, options.algorithm.traits().timing.combine_every));
}

namespace {

/// What a worker keeps between two combinations is its weights, so that they may follow each other.
bool averages_weights_alone(const algorithm::RuleTraits& rule) {
  return rule.topology.scope == algorithm::Scope::neighbors && rule.timing.average_every == 0 &&
         rule.timing.delay == 0 && rule.memory.vectors == 0 &&
         rule.topology.mixing != algorithm::MixingRequirement::unit && !rule.topology.divides() &&
         rule.messages.vectors == 1 && !rule.messages.weights_apart;
}

void check_mix_times(const WorkerOptions& options, const algorithm::RuleTraits& rule) {
  if (options.mix_times == 1) return;
  std::vector<std::string_view> fitting;
  for (const std::string_view name : algorithm::names()) {
    if (averages_weights_alone(algorithm::by_name(name).traits())) fitting.push_back(name);
  }
  require(averages_weights_alone(rule), ErrorKind::argument,
          "Worker: algorithm {} with mix_times {}; it makes one average a step, as more are for "
          "rules that keep nothing between them: {}",
          rule.name, options.mix_times, fmt::join(fitting, ", "));
  require(options.staleness == 0, ErrorKind::argument,
          "Worker: mix_times {} with staleness {}; several averages a step need staleness 0",
          options.mix_times, staleness_text(options.staleness));
}

}  // namespace

void check_options(const WorkerOptions& options, const algorithm::RuleTraits& algorithm) {
  WorkerOptions rows = options;
  options::OptionTable table;
  add_rows(table, rows);
  table.check_values("Worker");
  const std::string codec = codec::name(options.codec);
  require(algorithm.precision.why_exact.empty() || options.codec.kind == codec::Kind::identity,
          ErrorKind::argument,
          "Worker: algorithm {} with codec {}; it runs with identity only, as {}", algorithm.name,
          codec, algorithm.precision.why_exact);
  const int bits = codec::bits(options.codec.kind);
  require(bits >= algorithm.precision.least_bits, ErrorKind::argument,
          "Worker: algorithm {} with codec {}, {} bits an element; it needs {} at least, as {}",
          algorithm.name, codec, bits, algorithm.precision.least_bits,
          algorithm.precision.why_bits);
  // What diloco with a fraction has not sent decays.
  const bool decays = algorithm.messages.sparsity.bounded() && algorithm.memory.needs_equal_start;
  require(
      !decays || !codec::record_of(options.codec.kind).random, ErrorKind::argument,
      "Worker: algorithm {} with a fraction and codec {}, which shrinks what it codes; choose a "
      "codec that does not, as what is left decays here",
      algorithm.name, codec);
  require(algorithm.timing.why_synchronous.empty() || options.staleness == 0, ErrorKind::argument,
          "Worker: algorithm {} with staleness {}; it runs at staleness 0 only, as {}",
          algorithm.name, staleness_text(options.staleness), algorithm.timing.why_synchronous);
  require(algorithm.messages.delivery != algorithm::Delivery::every || options.staleness == 0,
          ErrorKind::argument, "Worker: algorithm {} needs every message; use staleness 0, not {}",
          algorithm.name, options.staleness);
  require(!algorithm.messages.sparsity.bounded() || options.staleness == 0, ErrorKind::argument,
          "Worker: algorithm {} with staleness {}; messages of few entries need staleness 0",
          algorithm.name, staleness_text(options.staleness));
  check_mix_times(options, algorithm);
  require(!options.on_mean.call || options.on_mean.every > 0, ErrorKind::argument,
          "Worker: on_mean every {} rounds; a number of 1 or more is required",
          options.on_mean.every);
  require(options.on_mean.worker >= 0, ErrorKind::argument,
          "Worker: on_mean of worker {}; a number of 0 or more is required",
          options.on_mean.worker);
}

}  // namespace fast::worker
