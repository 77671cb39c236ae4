#include "cli/command.hpp"
#include "support/catch.hpp"

using namespace fast::options;
using Catch::Matchers::Contains;

namespace {

struct Values {
  int epochs = 5;
  std::string kind = "plain", data;
  bool quiet = false;
};

tools::Program pages_of_rows() {
  Values values;
  OptionTable table;
  table.group("run");
  table.add("epochs", values.epochs, number<int>(one_or_more()), "passes").also("e");
  table.add("the_kind", values.kind, choice({"plain", "fancy"}), "plain or fancy");
  table.add("data", values.data, text(), "a path\\name").offer({"small", std::string(files)});
  table.add("quiet", values.quiet, "no text");
  table.add("hidden", values.quiet, "of programs").internal();
  return tools::program_of(table, {{"run", "A run", "learn --epochs 3"}}, "learn",
                           "Learns much. And more.");
}

TEST_CASE("a program of a table has its rows, with what stands for their values") {
  const tools::Program program = pages_of_rows();
  REQUIRE(program.sections.size() == 1);
  const auto& options = program.sections[0].options;
  REQUIRE(options.size() == 4);
  CHECK(options[0].names == std::vector<std::string>{"--epochs", "-e"});
  CHECK(options[0].value == "N");
  CHECK(options[0].help == "passes");
  CHECK(options[0].initial == "5");
  CHECK(options[1].names == std::vector<std::string>{"--the-kind"});
  CHECK(options[1].offers == std::vector<std::string>{"plain", "fancy"});
  CHECK(options[2].offers == std::vector<std::string>{"small", "<file>"});
  CHECK(options[3].value.empty());
}

TEST_CASE("a program of CLI11 has options, arguments and subcommands, and what they offer") {
  tools::Command shows("shows", "Shows things.");
  std::string what, color = "red";
  bool large = false;
  tools::Command& one = shows.add_command("one", "One thing", "shows one box");
  tools::offer(one.add_option("thing", what, "its name")->required(), {"box", "<file>"});
  one.begin_group("Look", "shows one box --large");
  tools::offer(one.add_option("-c,--color", color, "its color"), {"red", "blue"});
  one.add_flag("--large", large, "large letters");
  const tools::Program program = tools::program_of(shows);
  REQUIRE(program.commands.size() == 1);
  const tools::Program& command = program.commands[0];
  CHECK(command.name == "one");
  REQUIRE(command.arguments.size() == 1);
  CHECK(command.arguments[0].names == std::vector<std::string>{"thing"});
  CHECK(command.arguments[0].offers == std::vector<std::string>{"box", "<file>"});
  CHECK(command.example == "shows one box");
  REQUIRE(command.sections.size() == 2);
  CHECK(command.sections[0].title == "Look");
  CHECK(command.sections[0].example == "shows one box --large");
  const auto& options = command.sections[0].options;
  REQUIRE(options.size() == 2);
  CHECK(options[0].names == std::vector<std::string>{"--color", "-c"});
  CHECK(options[0].value == "TEXT");
  CHECK(options[0].initial == "red");
  CHECK(options[0].offers == std::vector<std::string>{"red", "blue"});
  CHECK(options[1].value.empty());
  CHECK(command.sections[1].options[0].names == std::vector<std::string>{"--help", "-h"});
  CHECK(command.sections[1].example == "shows one --help");
}

TEST_CASE("the help has usage, arguments, groups with their examples and defaults") {
  tools::Command shows("shows", "Shows things.", "shows box");
  std::string what;
  double size = 4e6;
  shows.add_option("thing", what, "its name")->required();
  shows.begin_group("Look", "shows box --size 3");
  shows.add_option("--size", size, "its size");
  const std::string help = tools::help_text(tools::program_of(shows), "shows");
  CHECK_THAT(help, Contains("Shows things.\n\nUsage: shows [OPTIONS] thing\nExample: shows box\n"));
  CHECK_THAT(help, Contains("\nArguments:\n  thing  "));
  CHECK_THAT(help, Contains("\nLook:\n  --size X                  its size [4e6]\n"));
  CHECK_THAT(help, Contains("  Example: shows box --size 3\n"));
  CHECK_THAT(help, Contains("\nProgram:\n  --help, -h"));
}

TEST_CASE("the page of a program has a table for each group, and a heading for each subcommand") {
  tools::Command shows("shows", "Shows things.");
  int size = 3;
  tools::Command& one = shows.add_command("one", "One <thing>");
  one.begin_group("Look", "shows one --size 3");
  one.add_option("--size", size, "its size|length");
  tools::Command& two = shows.add_command("two", "Two things");
  two.begin_group("Look", "shows two --size 4");
  two.add_option("--size", size, "its size|length");
  const std::string page = tools::program_markdown(tools::program_of(shows));
  CHECK_THAT(page, Contains("<!-- options: shows -->\n") && Contains("<!-- end -->\n"));
  CHECK_THAT(page, Contains("\n### shows one\n"));
  CHECK_THAT(page, Contains("\n| Look | default | meaning |\n|---|---|---|\n"));
  CHECK_THAT(page, Contains("| `--size` | `3` | its size\\|length |\n"));
  CHECK_THAT(page, Contains("\nExample: `shows one --size 3`\n"));
  CHECK_THAT(page, Contains("Look: see [shows one](#shows-one).\nExample: `shows two --size 4`"));
  CHECK_THAT(page, !Contains("--help"));
}

TEST_CASE("a word that is none of the choices is refused with the closest one") {
  tools::Command shows("shows", "");
  std::string color;
  tools::restrict(shows.add_option("--color", color, "its color"), {"red", "blue"});
  const char* arguments[] = {"shows", "--color", "bleu"};
  CHECK_THROWS_WITH(shows.parse(3, arguments),
                    "--color: \"bleu\" is unknown; choose red or blue; did you mean \"blue\"?");
}

TEST_CASE("what is offered restricts nothing and stays out of the help") {
  tools::Command shows("shows", "");
  std::string color;
  tools::offer(shows.add_option("--color", color, "its color"), {"red"});
  CHECK_THAT(tools::help_text(tools::program_of(shows), "shows"), !Contains("red"));
  const char* arguments[] = {"shows", "--color", "green"};
  shows.parse(3, arguments);
  CHECK(color == "green");
}

TEST_CASE("a manual page has the name in short, each option, and no command by accident") {
  const std::string page = tools::manual_page(pages_of_rows());
  CHECK_THAT(page, Contains(".TH LEARN 1"));
  CHECK_THAT(page, Contains(".SH NAME\nlearn \\- learns much\n"));
  CHECK_THAT(page, Contains("\\fB\\-\\-epochs\\fR, \\fB\\-e\\fR \\fIN\\fR\npasses [5]\n"));
  CHECK_THAT(page, Contains(".SS \"A run\""));
  CHECK_THAT(page, Contains("a path\\ename"));
  CHECK_THAT(page, !Contains("hidden"));
}

TEST_CASE("text that begins like a command of roff is text") {
  const tools::Program program{.name = "p", .text = ".TH x\n'quoted'"};
  CHECK_THAT(tools::manual_page(program), Contains("\\&.TH x\n\\&'quoted'"));
}

TEST_CASE("only one argument asks for a page") {
  const tools::Program program = pages_of_rows();
  const auto describe = [&] { return program; };
  const char* man[] = {"learn", "--help-man"};
  const char* bash[] = {"learn", "--help-bash"};
  const char* more[] = {"learn", "--help-man", "x"};
  CHECK(tools::requested_page(describe, 2, man) == tools::manual_page(program));
  CHECK(tools::requested_page(describe, 2, bash) == tools::bash_completion(program));
  CHECK_FALSE(tools::requested_page(describe, 3, more).has_value());
  CHECK_FALSE(tools::requested_page(describe, 1, man).has_value());
}

}  // namespace

TEST_CASE("a path that is printed in a command is one word of a shell") {
  CHECK(tools::shell_word("runs/ring-1.toml") == "runs/ring-1.toml");
  CHECK(tools::shell_word("my runs/a") == "'my runs/a'");
  CHECK(tools::shell_word("train-*.tar") == "'train-*.tar'");
  CHECK(tools::shell_word("it's") == "'it'\\''s'");
  CHECK(tools::shell_word("") == "''");
}
