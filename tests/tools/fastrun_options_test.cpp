#include "fastrun/options.hpp"

#include <fmt/core.h>

#include <string>
#include <vector>

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
