// fast-data: turns data sets into shards that are mapped into memory or into messages of a stream,
// and says what files hold.

#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdio>
#include <fast/core/error.hpp>
#include <fast/core/random.hpp>
#include <fast/data/load.hpp>
#include <fast/data/shards.hpp>
#include <filesystem>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "cli/command.hpp"
#include "cli/command_line.hpp"
#include "cli/exit_status.hpp"
#include "core/message.hpp"
#include "data/files/origins.hpp"
#include "data/options/rows.hpp"
#include "fast_data/publish.hpp"
#include "options/option_table.hpp"

using namespace fast;
namespace fs = std::filesystem;

namespace {

constexpr char footer[] =
    "A shard is complete when it has its name; a conversion that was killed leaves *.part. Exit "
    "status: 0, or 1 or 2 with one line that says what is wrong. docs/reference/data.md "
    "describes all formats. fast-train --data DIRECTORY trains on the shards of a directory.";

constexpr int most_faults_shown = 5;

/// "256MB", "1GiB" or a number of bytes.
std::size_t bytes_of(const std::string& text) {
  constexpr std::pair<std::string_view, std::size_t> units[] = {
      {"", 1},          {"B", 1},         {"KB", 1'000},   {"MB", 1'000'000}, {"GB", 1'000'000'000},
      {"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}};
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  const std::string_view unit(end, static_cast<std::size_t>(text.data() + text.size() - end));
  for (const auto& [name, size] : units) {
    std::size_t bytes = 0;
    const bool fits = !__builtin_mul_overflow(number, size, &bytes);
    if (error == std::errc() && name == unit && fits && bytes > 0) return bytes;
  }
  fail(ErrorKind::argument, "--shard-size: \"{}\"; a size is required (256MB, 1GiB)",
       printable(text));
}

std::string form_of(const data::Dataset& part) {
  return fmt::format("{} samples of {} {}, {}", part.size(), fmt::join(part.sample_shape(), "x"),
                     part.is_bytes() ? "bytes" : "floats",
                     part.targets().empty()
                         ? fmt::format("{} classes", part.classes())
                         : fmt::format("{} numbers to predict", part.target_size()));
}

/// The directory is new or empty.
void make_directory(const fs::path& directory) {
  std::error_code error;
  fs::create_directories(directory, error);
  require(!error, ErrorKind::resource, "{} cannot be made: {}; choose another directory",
          printable(directory.string()), error.message());
  require(fs::is_empty(directory, error) && !error, ErrorKind::argument,
          "{} is not empty; choose a new directory, so that shards of two sets do not "
          "mix",
          printable(directory.string()));
}

struct Conversion {
  std::string from, to, shard_size = "256MB";
  std::optional<std::uint64_t> shuffle;
};

std::string shards_of(std::size_t count) {
  return fmt::format("{} shard{}", count, count == 1 ? "" : "s");
}

void convert(const Conversion& conversion, const data::LoadOptions& reading) {
  const std::size_t shard_bytes = bytes_of(conversion.shard_size);
  const data::Splits splits = data::load(conversion.from, reading);
  data::refuse_origins(splits, conversion.from, "packed shards");
  make_directory(conversion.to);
  for (const auto& [name, part] :
       {std::pair("train", &splits.train), std::pair("test", &splits.test)}) {
    int faults = 0;
    const auto left_out = [&](const std::string& why) {
      if (++faults <= most_faults_shown) fast::say("fast-data: left out: {}\n", why);
    };
    if (const data::SampleSource* source = part->source(); source && source->left_out() > 0)
      fast::say("fast-data: {} samples are left out; the first: {}\n", source->left_out(),
                source->why_left_out());
    const auto files = data::write_packed(
        conversion.shuffle ? fast_data::shuffled(*part, *conversion.shuffle) : *part, conversion.to,
        name, shard_bytes, left_out, {splits.features, splits.class_names, splits.target});
    if (faults > most_faults_shown)
      fast::say("fast-data: left out: {} more\n", faults - most_faults_shown);
    fmt::print("{}: {} in {}\n", name, form_of(data::open_packed(files)), shards_of(files.size()));
  }
  fmt::print("{} written; train with: fast-train --data {}\n", printable(conversion.to),
             tools::shell_word(conversion.to));
}

void show_shard(const std::string& path) {
  const data::PackedInfo info = data::read_packed_info(path);
  const std::vector<std::size_t> damaged = data::damaged_in(path);
  require(
      damaged.empty(), ErrorKind::data,
      "packed: {}: {} damaged samples, the first is sample {}; convert the data again, or go on "
      "without them",
      printable(path), damaged.size(), damaged.empty() ? 0 : damaged.front());
  fmt::print("{}: shard {} of {} of \"{}\"\n", printable(path), info.index, info.shards,
             printable(info.name));
  fmt::print("{} samples of {} {}\n", info.samples, fmt::join(info.sample_shape, "x"),
             info.is_bytes ? "bytes" : "floats");
  if (info.has_labels) {
    fmt::print("labels of {} classes\n", info.classes);
  } else {
    fmt::print("numbers to predict, shape ({})\n", fmt::join(info.target_shape, ", "));
  }
  fmt::print("all samples whole\n");
}

/// The columns of a table, and what was found and not used.
void show_features(const data::Splits& splits) {
  std::vector<std::string> names;
  for (const std::string& name : splits.features) names.push_back(printable(name));
  if (!names.empty()) fmt::print("features: {}\n", fmt::join(names, ", "));
  for (const std::string& note : splits.notes) fmt::print("{}\n", note);
}

/// The size of numbers to predict, or the classes of which no sample is there.
void show_targets(const data::Dataset& train) {
  if (!train.targets().empty()) {
    double sum = 0, squares = 0;
    for (const float target : train.targets()) sum += target;
    const double mean = sum / static_cast<double>(train.targets().size());
    for (const float target : train.targets()) squares += (target - mean) * (target - mean);
    const double variance = squares / static_cast<double>(train.targets().size());
    fmt::print("targets: mean {:.4f}, standard deviation {:.4f}\n", mean, std::sqrt(variance));
    return;
  }
  std::vector<int> missing(static_cast<std::size_t>(train.classes()));
  std::iota(missing.begin(), missing.end(), 0);
  const std::set<int> found(train.labels().begin(), train.labels().end());
  std::erase_if(missing, [&](int label) { return found.contains(label); });
  if (missing.empty()) return;
  fmt::print("no training sample has class {}{}\n",
             fmt::join(missing.begin(), missing.begin() + std::min<int>(5, missing.size()), ", "),
             missing.size() > 5 ? ", ..." : "");
}

void show(const std::string& from, const data::LoadOptions& reading) {
  std::error_code ignored;
  if (from.ends_with(data::packed_ending) && fs::is_regular_file(from, ignored))
    return show_shard(from);
  const data::Splits splits = data::load(from, reading);
  for (const auto& [name, part] :
       {std::pair("train", &splits.train), std::pair("test", &splits.test)}) {
    fmt::print("{}: {}", name, form_of(*part));
    if (part->is_streamed()) fmt::print(" in {}", shards_of(part->shards().size()));
    if (const data::SampleSource* source = part->source(); source && source->left_out() > 0)
      fmt::print(", {} left out ({})", source->left_out(), source->why_left_out());
    fmt::print("\n");
  }
  show_features(splits);
  show_targets(splits.train);
  const data::Normalization& moments = splits.normalization;
  std::vector<double> means(moments.mean.begin(), moments.mean.end());
  for (std::size_t c = 0; c < moments.origins.size(); ++c) means[c] += moments.origins[c];
  fmt::print("mean {:.4f}\nstandard deviation {:.4f}\n", fmt::join(means, " "),
             fmt::join(moments.stddev, " "));
}

tools::Command& add_convert(tools::Command& program, Conversion& conversion) {
  tools::Command& command = program.add_command(
      "convert", "Writes the training and the test part of a data set as shards.");
  tools::offer(command.add_option("from", conversion.from, fast_data::data_help)->required(),
               {"<file>", "<directory>"});
  command.add_option("to", conversion.to, "a new directory for the shards")->required();
  command.begin_group("Writing", "fast-data convert images packed --shard-size 64MB --shuffle 7");
  command.add_option("--shard-size", conversion.shard_size, "most bytes of values in a shard");
  command.add_option("--shuffle", conversion.shuffle,
                     "write the samples in a random order, by this seed");
  return command;
}

tools::Command& add_info(tools::Command& program, Conversion& conversion) {
  tools::Command& command =
      program.add_command("info", "Says what a shard or a data set holds.",
                          "fast-data info packed/train-00000-of-00004.packed");
  tools::offer(command.add_option("file", conversion.from, "a shard, or a data set as for convert")
                   ->required(),
               {"<file>", "<directory>"});
  return command;
}

int run(int argc, char** argv) {
  data::LoadOptions reading;
  options::OptionTable table;
  data::add_rows(table, reading);
  tools::TableOptions options(table);
  tools::Command program(
      "fast-data", "Makes shards or messages of a stream from data sets, and says what files hold.",
      "fast-data convert images packed");
  program.footer(footer);
  Conversion conversion;
  tools::Command& converted = add_convert(program, conversion);
  options.add_to(converted, "fast-data convert prices.csv packed --target price");
  tools::Command& info = add_info(program, conversion);
  options.add_to(info, "fast-data info 'train-{000..011}.tar' --test-data 'test-*.tar'");
  fast_data::PublishOptions publication;
  tools::Command& published =
      program.add_command("publish", "Publishes the samples of a data set to a stream.");
  fast_data::add_options(published, publication);
  options.add_to(published,
                 "fast-data publish prices.csv nats://127.0.0.1:4222/prices --target price");
  if (const auto status = tools::parse(program, argc, argv)) return *status;
  options.take();
  data::resolve_size(reading);
  if (converted.parsed()) convert(conversion, reading);
  if (info.parsed()) show(conversion.from, reading);
  if (published.parsed()) fast_data::publish(publication, reading);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  return tools::run_program("fast-data", [&] { return run(argc, argv); });
}
