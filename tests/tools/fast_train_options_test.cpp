// fast-train's table: what its help shows is accepted.
#include <algorithm>
#include <fast/core/error.hpp>
#include <fast/data/synthetic.hpp>
#include <set>
#include <sstream>

#include "fast_train/capacity.hpp"
#include "fast_train/options.hpp"
#include "fast_train/read_options.hpp"
#include "support/catch.hpp"

using namespace fast;
using fast_train::Options;
using options::OptionSpec;
using options::OptionTable;

namespace {

Options read_line(const std::string& command) {
  std::istringstream stream(command);
  std::vector<std::string> words;
  for (std::string word; stream >> word;) words.push_back(word);
  std::vector<const char*> argv;
  for (const std::string& word : words) argv.push_back(word.c_str());
  Options o;
  fast_train::read_into(o, static_cast<int>(argv.size()), argv.data());
  return o;
}

}  // namespace

TEST_CASE("the example of each group is a command that is accepted and has an option of it") {
  for (const tools::Group& group : fast_train::groups()) {
    INFO(group.example);
    CHECK_NOTHROW(read_line(std::string(group.example)));
    Options o;
    OptionTable table;
    fast_train::add_rows(table, o);
    const bool shown =
        std::any_of(table.rows().begin(), table.rows().end(), [&](const OptionSpec& row) {
          return row.group == group.name &&
                 group.example.find("--" + options::dashed(row.name)) != std::string_view::npos;
        });
    CHECK(shown);
  }
}

TEST_CASE("rules that need the learning rate alone leave the optimizer its momentum") {
  const std::string by_rate = "fast-train --algorithm awc --algorithm-option power=1";
  CHECK(fast_train::momentum_of(read_line(by_rate)) == nn::SgdOptions{}.momentum);
  CHECK(fast_train::momentum_of(read_line(by_rate + " --momentum 0.8")) == 0.8);
  CHECK_NOTHROW(read_line(by_rate + " --optimizer adam"));
  for (const char* rule :
       {"edm", "gut", "quasi_global_momentum", "averaged_momentum", "decentlam"}) {
    const std::string own = std::string("fast-train --algorithm ") + rule;
    CHECK(fast_train::momentum_of(read_line(own)) == 0);
    CHECK_THROWS_WITH(read_line(own + " --optimizer adam"),
                      ContainsSubstring("it brings momentum itself"));
  }
}

TEST_CASE("every row is in a group, has a help and a name of its own") {
  Options o;
  OptionTable table;
  fast_train::add_rows(table, o);
  std::set<std::string_view> groups, names;
  for (const tools::Group& group : fast_train::groups()) groups.insert(group.name);
  for (const std::string_view name : table.names()) {
    INFO(name);
    CHECK(names.insert(name).second);
  }
  for (const OptionSpec& row : table.rows()) {
    INFO(row.name);
    CHECK(groups.count(row.group) == 1);
    CHECK(!row.help.empty());
    CHECK(row.holds());
  }
}

TEST_CASE("every option that a user may set is in the help and in the Markdown") {
  Options o;
  OptionTable table;
  fast_train::add_rows(table, o);
  const tools::Program program = fast_train::command_line();
  const std::string help = tools::help_text(program, program.name);
  const std::string markdown = tools::options_markdown(program);
  for (const OptionSpec& row : table.rows()) {
    const std::string name = "--" + options::dashed(row.name);
    INFO(name);
    CHECK((help.find("  " + name) != std::string::npos) == !row.is_internal);
    CHECK((markdown.find("| `" + name) != std::string::npos) == !row.is_internal);
  }
}

TEST_CASE("lines of the help have at most 100 columns") {
  const tools::Program program = fast_train::command_line();
  std::istringstream help(tools::help_text(program, program.name));
  for (std::string line; std::getline(help, line);) {
    INFO(line);
    CHECK(line.size() <= 100);
  }
}

TEST_CASE("an unknown option is refused with the closest one") {
  CHECK_THROWS_WITH(read_line("fast-train --epoch 3"),
                    ContainsSubstring("there is no option \"--epoch\"") &&
                        ContainsSubstring("did you mean \"--epochs\"?"));
  CHECK_THROWS_WITH(read_line("fast-train --stalness=3"),
                    ContainsSubstring("did you mean \"--staleness\"?"));
  CHECK_THROWS_WITH(read_line("fast-train -help"),
                    ContainsSubstring("there is no option \"-help\"") &&
                        ContainsSubstring("did you mean \"--help\"?"));
  CHECK_THROWS_WITH(read_line("fast-train ring"), ContainsSubstring("\"ring\""));
  CHECK_THROWS_WITH(read_line("fast-train --lr"), ContainsSubstring("--lr"));
}

TEST_CASE("metrics are served to this host alone, unless an address is given") {
  const std::string served = "fast-train --metrics-port 9400";
  CHECK(read_line(served).metrics_listen == "127.0.0.1");
  CHECK(read_line(served + " --metrics-listen 0.0.0.0").metrics_listen == "0.0.0.0");
  CHECK_THROWS_WITH(read_line("fast-train --metrics-listen 0.0.0.0"),
                    ContainsSubstring("add --metrics-port"));
}

TEST_CASE("the last of several values counts, and options of the rule add up") {
  const Options o = read_line(
      "fast-train --epochs 2 --epochs 3 --algorithm choco --algorithm-option top_k=5 "
      "--algorithm-option consensus_step=0.2 --lr=0.25");
  CHECK(o.trainer.epochs == 3);
  CHECK(o.rule.options == std::vector<std::string>{"top_k=5", "consensus_step=0.2"});
  CHECK(o.learning_rate == 0.25);
}

TEST_CASE("a batch size that is not given fits the samples of a round") {
  const auto batch_for = [](const std::string& command, std::size_t samples, int workers) {
    Options o = read_line("fast-train " + command);
    const std::string said =
        fast_train::fit_batch(o, data::synthetic_classification(samples, {2}, 2, 1), workers);
    CHECK(said.empty() == (o.batch_size == 64 || samples == 3));
    return o.batch_size;
  };
  CHECK(batch_for("", 64, 1) == 64);
  CHECK(batch_for("", 63, 1) == 63);
  CHECK(batch_for("", 100, 4) == 25);
  CHECK(batch_for("--accumulate 2", 100, 4) == 12);
  CHECK(batch_for("--validation 0.25", 100, 4) == 18);  // 75 are left
  CHECK(batch_for("", 3, 4) == 1);                      // an error follows
  CHECK(batch_for("--batch-size 64", 10, 1) == 64);
  Options o;
  o.batch_fits = true;
  CHECK(fast_train::fit_batch(o, data::synthetic_classification(10, {2}, 2, 1), 2) ==
        "--batch-size 5: 10 training samples for 2 workers allow no larger one");
}
