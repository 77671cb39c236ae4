#include "fastrun/fastrun.hpp"

#include <fmt/core.h>

#include <string>
#include <vector>

#include "cli/command_line.hpp"
#include "support/catch.hpp"

using Words = std::vector<std::string>;

namespace {

/// What is left of `fastrun WORDS...` after the options.
Words program_of(const Words& words) {
  fastrun::Options options;
  bool doctor = false;
  tools::Command app("fastrun", "");
  fastrun::describe(app, options, doctor);
  app.parse(Words(words.rbegin(), words.rend()));  // CLI11 wants them from the last one
  return app.remaining();
}

/// Why `fastrun WORDS...` is refused; empty: it is not.
std::string error_of(const Words& words) {
  try {
    program_of(words);
  } catch (const CLI::ParseError& error) {
    return error.what();
  }
  return {};
}

/// What fastrun prints for `fastrun WORDS...`; empty: it starts the program.
std::string refusal_of(const Words& words) {
  fastrun::Options options;
  bool doctor = false;
  tools::Command app("fastrun", "");
  fastrun::describe(app, options, doctor);
  try {
    app.parse(Words(words.rbegin(), words.rend()));
  } catch (const CLI::ParseError& error) {
    return tools::refusal(app, error);
  }
  return {};
}

}  // namespace

TEST_CASE("no option of fastrun takes the program for its value") {
  fastrun::Options options;
  bool doctor = false;
  tools::Command app("fastrun", "");
  fastrun::describe(app, options, doctor);
  const Words program{"./train", "--spares", "7", "more"};
  int found = 0;
  for (const CLI::Option* option : app.get_options()) {
    const std::string name = option->get_name();
    if (name == "--help") continue;
    ++found;
    Words words{name};
    if (option->get_items_expected_max() > 0) words.emplace_back("5");  // a valid value of each
    words.insert(words.end(), program.begin(), program.end());
    INFO(name);
    CHECK(program_of(words) == program);
  }
  CHECK(found > 10);
}

TEST_CASE("an option that may be repeated takes one value each time") {
  const Words program{"./train", "5"};
  for (const std::string name : {"--grow-at", "--mpiexec-option"}) {
    const Words words{name, "1", name, "2", "./train", "5"};
    INFO(name);
    CHECK(program_of(words) == program);
  }
}

TEST_CASE("a number that makes no sense is refused with what is required") {
  const std::string from_1 = "; a whole number, at least 1, is required";
  const std::string from_0 = "; a whole number, 0 or more, is required";
  const std::string seconds = "; a finite number, 0 or more, is required";
  CHECK(error_of({"-n", "0"}) == "--ranks: 0" + from_1);
  CHECK(error_of({"-n", "two"}) == "--ranks: \"two\"" + from_1);
  CHECK(error_of({"--min-workers", "0"}) == "--min-workers: 0" + from_1);
  CHECK(error_of({"--min-workers=-1"}) == "--min-workers: -1" + from_1);
  CHECK(error_of({"--ppn=-1"}) == "--ppn: -1" + from_0);
  CHECK(error_of({"--threads=-3"}) == "--threads: -3" + from_0);
  CHECK(error_of({"--spares=-1"}) == "--spares: -1" + from_0);
  CHECK(error_of({"--grow-at=-1"}) == "--grow-at: -1" + seconds);
  CHECK(error_of({"--start-deadline=-5"}) == "--start-deadline: -5" + seconds);
  CHECK(error_of({"--launch-deadline", "0"}) ==
        "--launch-deadline: 0; a positive finite number is required");
  CHECK(error_of({"--lost-after", "1"}) ==
        "--lost-after: 1; a number, 2 or more and below 1000000, is required");
}

TEST_CASE("hosts without a name are refused, as of an empty variable of a shell") {
  const std::string names = "; names of hosts, separated by commas, are required";
  for (const std::string hosts : {"", ",", "node1,", ",node1", "node1,,node2", ":2"}) {
    INFO(hosts);
    CHECK(error_of({"--hosts", hosts, "./train"}) == "--hosts: \"" + hosts + "\"" + names);
  }
  CHECK(error_of({"--hosts=", "-n", "2", "./train"}) == "--hosts: \"-n\"" + names);
  for (const std::string hosts : {"node1", "node1,node2:2", "me@node1,10.0.0.1"})
    CHECK(error_of({"--hosts", hosts, "./train"}).empty());
}

TEST_CASE("a refusal is about fastrun's options, not about those of the program") {
  const std::string ranks =
      "--ranks: 0; a whole number, at least 1, is required; --help lists the options";
  CHECK(refusal_of({"-n", "0", "./train", "--epochs", "2"}) == ranks);
  CHECK(refusal_of({"-n", "0", "--", "./train", "--epochs", "2"}) == ranks);
  CHECK(refusal_of({"--wach", "-n", "0", "./train", "--epochs", "2"}) ==
        "there is no option \"--wach\"; --help lists the options; did you mean \"--watch\"?");
}

TEST_CASE("a value that is missing, given twice or of another type is refused in plain words") {
  const std::string help = "; --help lists the options";
  CHECK(refusal_of({"-n"}) == "--ranks: a value is missing" + help);
  CHECK(refusal_of({"-n", "2", "-n", "3"}) == "--ranks: one is allowed, 2 are given" + help);
  CHECK(refusal_of({"--watch=maybe"}) == "--watch: \"maybe\"; true or false is required" + help);
}

TEST_CASE("the least numbers are taken") {
  CHECK(error_of({"-n", "1", "--min-workers", "1", "--ppn", "0", "--threads", "0", "--spares", "0",
                  "--grow-at", "0", "--start-deadline", "0", "--launch-deadline", "0.5",
                  "--lost-after", "2", "./train"})
            .empty());
}

TEST_CASE("more workers than there are ranks cannot be required") {
  fastrun::Options options;
  options.ranks = options.min_workers = 3;
  CHECK(fastrun::contradiction(options).empty());
  options.min_workers = 4;
  options.spares = 1;
  CHECK(fastrun::contradiction(options) ==
        "--min-workers is 4, --ranks is 3; start more ranks, or require fewer");
}

TEST_CASE("no more spares can join than there are") {
  fastrun::Options options;
  options.spares = 1;
  options.grow_at = {1, 2};
  CHECK(fastrun::contradiction(options) ==
        "--grow-at is given 2 times, --spares is 1; start more spares");
}

namespace {

/// The words as take_np_for_n() leaves them.
Words with_n(Words words) {
  fastrun::Options options;
  bool doctor = false;
  tools::Command app("fastrun", "");
  fastrun::describe(app, options, doctor);
  words.insert(words.begin(), "fastrun");
  std::vector<char*> all;
  for (std::string& word : words) all.push_back(word.data());
  fastrun::take_np_for_n(app, static_cast<int>(all.size()), all.data());
  return {all.begin() + 1, all.end()};
}

}  // namespace

TEST_CASE("-np is taken for -n, and left to the program") {
  CHECK(with_n({"-np", "4", "./train", "-np", "2"}) == Words{"-n", "4", "./train", "-np", "2"});
  CHECK(with_n({"--watch", "--hosts", "a,b", "-np", "4", "x"}) ==
        Words{"--watch", "--hosts", "a,b", "-n", "4", "x"});
  CHECK(with_n({"--ppn=2", "-np", "4", "x"}) == Words{"--ppn=2", "-n", "4", "x"});
  CHECK(with_n({"--", "-np"}) == Words{"--", "-np"});
  CHECK(with_n({"-n"}) == Words{"-n"});
}
