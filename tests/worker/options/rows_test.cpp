#include "worker/worker_options.hpp"

#include <fast/exchange/local.hpp>
#include <fast/topology/stencil.hpp>

#include "support/catch.hpp"
#include "worker/constant.hpp"

using namespace fast;
using options::Fit;
using options::OptionSpec;
using options::OptionTable;

namespace {

/// A text of another value than the row's.
std::string another_value(OptionSpec& row) {
  for (const std::string& name : row.names) {
    if (name != row.text()) return name;
  }
  return row.kind == options::Kind::flag ? "true" : row.text() == "7" ? "8" : "7";
}

/// What two workers say that differ in one option.
std::string mismatch_in(const std::string& name) {
  try {
    local::run(2, [&](const Group& group) {
      WorkerOptions options = testing::quick();
      OptionTable table;
      add_rows(table, options);
      OptionSpec& row = table.at(name);
      if (group.rank() == 1) table.set(row, {another_value(row)}, name);
      testing::Constant worker(group, stencil::ring(), 1, options);
    });
  } catch (const Error& error) {
    CHECK(error.kind() == ErrorKind::mismatch);
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("workers that differ in an option that must agree are refused with the option's name") {
  WorkerOptions options;
  OptionTable table;
  add_rows(table, options);
  int checked = 0;
  for (const OptionSpec& row : table.rows()) {
    if (!row.must_agree) continue;
    INFO(row.name);
    CHECK_THAT(mismatch_in(row.name), ContainsSubstring("worker 0 has " + row.name + " "));
    ++checked;
  }
  CHECK(checked >= 7);
}

TEST_CASE("workers may differ in options of their own") {
  for (const char* name : {"deadline", "suspect_after", "rejoin_after", "remote_rate"}) {
    INFO(name);
    CHECK(mismatch_in(name) == "no error");
  }
}

TEST_CASE("an option that a program has set out of range is refused by its name") {
  const auto refusal = [](auto&& change) -> std::string {
    try {
      local::run(1, [&](const Group& group) {
        WorkerOptions options = testing::quick();
        change(options);
        testing::Constant worker(group, stencil::ring(), 1, options);
      });
    } catch (const Error& error) {
      CHECK(error.kind() == ErrorKind::argument);
      return error.what();
    }
    return "no error";
  };
  CHECK_THAT(refusal([](WorkerOptions& o) { o.staleness = -1; }),
             ContainsSubstring("Worker: staleness -1; a whole number, 0 or more, or inf"));
  CHECK_THAT(refusal([](WorkerOptions& o) { o.mix_every = 0; }),
             ContainsSubstring("Worker: mix_every 0; a whole number, at least 1"));
  CHECK_THAT(refusal([](WorkerOptions& o) { o.deadline = Seconds(0); }),
             ContainsSubstring("Worker: deadline 0; a positive"));
  CHECK_THAT(refusal([](WorkerOptions& o) { o.remote_bytes_per_s = -1; }),
             ContainsSubstring("Worker: remote_rate -"));
}

TEST_CASE("a rule is chosen by name, with its options") {
  RuleChoice rule;
  OptionTable table;
  add_rows(table, rule);
  table.set(table.at("algorithm"), {"gossip_pga"}, "--algorithm");
  table.set(table.at("algorithm_option"), {"period=8"}, "--algorithm-option");
  CHECK(rule.rule().traits().parameters == "period=8");
  rule.options = {"perod=8"};
  CHECK_THROWS_WITH(rule.rule(), ContainsSubstring("did you mean \"period\"?"));
}
