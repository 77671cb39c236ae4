#include "options/option_table.hpp"

#include <fast/core/error.hpp>

#include "support/catch.hpp"

using namespace fast;
using namespace fast::options;

namespace {

struct Sample {
  int epochs = 5;
  double rate = 0.1;
  bool quiet = false;
  std::string color = "red";
  std::vector<std::string> extras;
};

void add_sample_rows(OptionTable& table, Sample& sample) {
  table.group("training");
  table.add("epochs", sample.epochs, number<int>(one_or_more()), "passes").agreed();
  table.add("learning_rate", sample.rate, number<double>(positive()), "rate").also("lr");
  table.group("output");
  table.add("quiet", sample.quiet, "print less")
      .only_if([&sample] { return sample.epochs > 1; }, "one epoch prints nothing; leave it out");
  table.add("color", sample.color, choice({"red", "green"}), "color").agreed();
  table.add("extra", sample.extras, "more");
}

struct SampleTable {
  SampleTable() { add_sample_rows(table, sample); }
  std::string refusal(const char* name, const char* text) {
    try {
      table.set(table.at(name), {text}, std::string("--") + name);
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::argument);
      return error.what();
    }
    return "no error";
  }
  Sample sample;
  OptionTable table;
};

}  // namespace

TEST_CASE("a row is found by its name and its alias, with either dash") {
  SampleTable t;
  REQUIRE(t.table.find("learning-rate") != nullptr);
  CHECK(t.table.find("learning-rate") == t.table.find("lr"));
  CHECK(t.table.find("learning") == nullptr);
  CHECK(t.table.at("color").group == "output");
  CHECK(dashed("learning_rate") == "learning-rate");
}

TEST_CASE("setting a row sets the member, and the default is known after it") {
  SampleTable t;
  t.table.set(t.table.at("epochs"), {"9"}, "--epochs");
  t.table.set(t.table.at("extra"), {"a", "b"}, "--extra");
  t.table.set(t.table.at("quiet"), {"true"}, "--quiet");
  CHECK(t.sample.epochs == 9);
  CHECK(t.sample.extras == std::vector<std::string>{"a", "b"});
  CHECK(t.sample.quiet);
  CHECK(t.table.at("epochs").initial == std::vector<std::string>{"5"});
  CHECK(t.table.at("epochs").given_at == "--epochs");
  CHECK(t.table.at("color").given_at.empty());
}

TEST_CASE("a value that is refused leaves the member, and the error says what is allowed") {
  SampleTable t;
  CHECK(t.refusal("epochs", "0") == "--epochs: 0; a whole number, at least 1, is required");
  CHECK(t.refusal("epochs", "x\n") ==
        "--epochs: \"x\\n\"; a whole number, at least 1, is required");
  CHECK(t.refusal("color", "gren") ==
        "--color: \"gren\" is unknown; choose red or green; did you mean \"green\"?");
  CHECK(t.refusal("quiet", "yes") == "--quiet: \"yes\"; true or false is required");
  CHECK(t.sample.epochs == 5);
  CHECK(t.sample.color == "red");
}

TEST_CASE("an option without effect is refused when it was given") {
  SampleTable t;
  t.sample.epochs = 1;
  CHECK_NOTHROW(t.table.check_needs());
  t.table.set(t.table.at("quiet"), {"true"}, "run.toml:3: quiet");
  CHECK_THROWS_WITH(
      t.table.check_needs(),
      "run.toml:3: quiet: without effect in this run: one epoch prints nothing; leave it out");
}

TEST_CASE("members that a program has set out of range are found") {
  SampleTable t;
  CHECK_NOTHROW(t.table.check_values("Worker"));
  t.sample.rate = -1;
  CHECK_THROWS_WITH(t.table.check_values("Worker"),
                    "Worker: learning_rate -1; a positive finite number is required");
}

TEST_CASE("the agreement has the present values of the rows that must agree") {
  SampleTable t;
  t.sample.epochs = 7;
  t.sample.rate = 3;
  CHECK(t.table.agreement() == "epochs 7\ncolor red\n");
}
