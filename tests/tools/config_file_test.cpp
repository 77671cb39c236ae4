#include "cli/config_file.hpp"

#include <fmt/ranges.h>

#include <fast/core/error.hpp>
#include <fstream>

#include "fast_train/options.hpp"
#include "fast_train/read_options.hpp"
#include "support/catch.hpp"
#include "support/seed.hpp"
#include "support/temporary_directory.hpp"
#include "tools/random_options.hpp"

using namespace fast;
using fast_train::Options;
using options::OptionSpec;
using options::OptionTable;

namespace {

/// The error of a file with that text.
std::string refusal_of(const std::string& text) {
  Options o;
  OptionTable table;
  fast_train::add_rows(table, o);
  try {
    tools::parse_config(table, text, "run.toml");
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::argument);
    return error.what();
  }
  return "no error";
}

Options options_in(const std::string& text) {
  Options o;
  OptionTable table;
  fast_train::add_rows(table, o);
  tools::parse_config(table, text, "run.toml");
  return o;
}

/// All values as text.
std::vector<std::string> values_of(const Options& o) {
  Options copy = o;
  OptionTable table;
  fast_train::add_rows(table, copy);
  std::vector<std::string> values;
  for (const OptionSpec& row : table.rows()) {
    values.push_back(fmt::format("{} {}", row.name, row.values().size()));
    for (const std::string& value : row.values()) values.push_back(value);
  }
  return values;
}

Options read(const std::vector<std::string>& arguments) {
  std::vector<const char*> argv{"fast-train"};
  for (const std::string& argument : arguments) argv.push_back(argument.c_str());
  Options o;
  fast_train::read_into(o, static_cast<int>(argv.size()), argv.data());
  return o;
}

}  // namespace

TEST_CASE("a file sets options by the names of the command line, with either dash") {
  const Options o = options_in(
      "lr = 1\nbatch-size = 32\nmix_every = 2\nstaleness = inf\ncheckpoint-every = \"10min\"\n"
      "algorithm-option = [\"period=8\"]\naugment = true\nseed = \"18446744073709551615\"\n"
      "closing-rounds = 3\ntopology = \"ring\" # a comment\nsuspect-after = 2.5\n");
  CHECK(o.learning_rate == 1.0);
  CHECK(o.batch_size == 32U);
  CHECK(o.trainer.worker.mix_every == 2);
  CHECK(o.trainer.worker.staleness == unbounded_staleness);
  CHECK(o.trainer.checkpoints.every_s == 600);
  CHECK(o.rule.options == std::vector<std::string>{"period=8"});
  CHECK(o.augment);
  CHECK(o.trainer.seed == ~std::uint64_t{0});
  CHECK(o.trainer.closing_rounds == 3);
  CHECK(o.trainer.worker.suspect_after == Seconds(2.5));
  CHECK(!options_in("suspect-after = \"auto\"\n").trainer.worker.suspect_after);
  CHECK(o.topology == "ring");
}

TEST_CASE("an unknown key is refused with file, line and the closest name") {
  CHECK(refusal_of("epochs = 3\n\nstalenes = 1\n") ==
        "run.toml:3: there is no option \"stalenes\"; --help lists the options; did you mean "
        "\"staleness\"?");
  CHECK_THAT(refusal_of("[exchange]\nx = 1\n"), ContainsSubstring("run.toml:1: exchange: a table"));
  CHECK_THAT(refusal_of("[optimization]\nx = 1\n"), ContainsSubstring("run.toml:1: there is no"));
  CHECK_THAT(refusal_of("must-agree = \"x\"\n"), ContainsSubstring("there is no option"));
  CHECK_THAT(refusal_of("config = \"x\"\n"), ContainsSubstring("of the command line only"));
}

TEST_CASE("a value of the wrong type is refused with file, line and the right type") {
  const auto refused = [](const char* text, const char* found, const char* required) {
    INFO(text);
    CHECK_THAT(refusal_of(text),
               ContainsSubstring(fmt::format("a {} was found; {} is required", found, required)));
  };
  refused("epochs = \"3\"", "string", "a whole number");
  refused("epochs = 3.0", "fraction", "a whole number");
  refused("lr = true", "truth value", "a number");
  refused("augment = 1", "whole number", "true or false");
  refused("topology = 3", "whole number", "a string");
  refused("staleness = 1.5", "fraction", "a whole number or a string");
  refused("algorithm-option = \"period=8\"", "string", "a list of strings");
  refused("algorithm-option = [1]", "list", "a list of strings");
  refused("epochs = 1979-05-27", "date or time", "a whole number");
}

TEST_CASE("a value out of range is refused with file and line") {
  CHECK(refusal_of("\nlr = -1\n") == "run.toml:2: lr: -1; a positive finite number is required");
  CHECK(
      refusal_of("codec = \"b16\"") ==
      "run.toml:1: codec: \"b16\" is unknown; choose identity, bf16, bf16_stochastic, fp16, int8, "
      "int8_stochastic, int4, int2, qsgd4 or qsgd2; did you mean \"bf16\"?");
}

TEST_CASE("an option that a file sets twice, by two of its names, is refused") {
  CHECK(refusal_of("lr = 0.5\nlearning_rate = 0.1\n") ==
        "run.toml:1: \"learning_rate\" and \"lr\" are one option; leave one out");
  CHECK_THAT(refusal_of("batch-size = 8\nbatch_size = 9\n"),
             Catch::Contains("are one option; leave one out"));
}

TEST_CASE("text that is not TOML is refused with line and column") {
  CHECK_THAT(refusal_of("epochs = 3\ntopology = \"ring\n"), ContainsSubstring("run.toml:2:"));
  CHECK_THAT(refusal_of("epochs = 3\nepochs = 4\n"), ContainsSubstring("run.toml:2:"));
  for (const std::string text : {"ring", "torus2d", "fashion-mnist", "int8", "none"}) {
    CHECK_THAT(refusal_of("topology = " + text + "\n"),
               ContainsSubstring("run.toml:1:") && ContainsSubstring("; a text needs quotes"));
  }
  CHECK_THAT(refusal_of("épochs = 3\n"), ContainsSubstring("run.toml:1"));
}

TEST_CASE("random settings read back from the file that was written") {
  const std::uint64_t seed = test_seed(11);
  for (std::uint64_t run = 0; run < 200; ++run) {
    INFO("seed " << seed << ", run " << run);
    Rng rng(mix_seed(seed, run));
    Options o;
    OptionTable table;
    fast_train::add_rows(table, o);
    std::size_t number = 0;
    for (const OptionSpec& row : table.rows()) {
      ++number;
      if (row.is_internal || row.on_command_line || rng.below(3) == 0) continue;
      testing::set_at_random(table, table.at(row.name), rng);
    }
    const std::string text = tools::config_text(table, table, fast_train::groups(), "fast-train");
    INFO(text);
    CHECK(number > 60);
    CHECK(values_of(options_in(text)) == values_of(o));
  }
}

TEST_CASE("a file that was written gives the run of its command line") {
  const testing::TemporaryDirectory directory;
  const std::string file = (directory.path() / "run.toml").string();
  for (const std::vector<std::string>& arguments : std::vector<std::vector<std::string>>{
           {},
           {"--lr", "0.1", "--momentum", "0.5", "--nesterov", "--augment"},
           {"--optimizer", "adamw", "--beta1", "0.8", "--prefetch", "3"},
           {"--exchange", "allreduce", "--epochs", "2"},
           {"--algorithm", "decentlam", "--algorithm-option", "momentum=0.8"},
           {"--shards", "dirichlet:0.1", "--take-over", "--staleness", "inf", "--slow", "1:4"},
           {"--balance", "measured", "--slow", "1:2,2:4"},
           {"--balance", "4,2,1"},
           {"--device", "cuda", "--precision", "bf16", "--autotune", "--step-ms", "0.1"},
           {"--out", "a \"b\"", "--checkpoint-every", "90s", "--keep", "5", "--remote-rate", "0.3"},
       }) {
    INFO(fmt::format("{}", fmt::join(arguments, " ")));
    const Options given = read(arguments);
    std::ofstream(file) << fast_train::config_of(given);
    Options back = read({"--config", file});
    back.requests.config.clear();
    CHECK(values_of(back) == values_of(given));
    CHECK(fast_train::config_of(back) == fast_train::config_of(given));
  }
}

TEST_CASE("the command line wins over the file") {
  const testing::TemporaryDirectory directory;
  const std::string file = (directory.path() / "run.toml").string();
  std::ofstream(file) << "epochs = 3\naugment = true\nalgorithm = \"local\"\n"
                         "algorithm-option = [\"period=8\"]\nlr = 0.5\n";
  const Options o = read(
      {"--epochs", "9", "--config", file, "--augment=false", "--algorithm-option", "period=2"});
  CHECK(o.trainer.epochs == 9);
  CHECK(!o.augment);
  CHECK(o.rule.options == std::vector<std::string>{"period=2"});
  CHECK(o.learning_rate == 0.5);
}

TEST_CASE("an option of a file that has no effect is refused, unless it is the default") {
  const testing::TemporaryDirectory directory;
  const std::string file = (directory.path() / "run.toml").string();
  std::ofstream(file) << "# staleness\nstaleness = 2\n";
  CHECK_THROWS_WITH(read({"--config", file, "--exchange", "allreduce"}),
                    ContainsSubstring("run.toml:2: staleness: without effect in this run"));
  std::ofstream(file) << "staleness = 0\n";
  CHECK_NOTHROW(read({"--config", file, "--exchange", "allreduce"}));
  CHECK_THROWS_WITH(read({"--staleness", "0", "--exchange", "allreduce"}),
                    ContainsSubstring("--staleness: without effect in this run"));
}
