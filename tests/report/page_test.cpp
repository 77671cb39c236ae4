#include "fast_report/page.hpp"

#include <fast/core/error.hpp>
#include <regex>
#include <sstream>

#include "core/whole_file.hpp"
#include "fast_report/html.hpp"
#include "run_directory.hpp"
#include "support/catch.hpp"

using namespace fast_report;
using report_test::MadeRun;
using report_test::RunDirectory;

namespace {

const std::string attack = "</script><script>alert(1)</script><img src=x onerror=alert(1)>\"'&";

Run hostile_run() {
  MadeRun made(2);
  for (const int rank : {0, 1}) {
    made.line(rank, "start", 0,
              {{"workers", 2},
               {"topology", attack},
               {"algorithm", attack},
               {"host", attack},
               {"validation", attack}});
    made.line(rank, "event", 1, {{"event", attack}, {"text", attack}});
    made.line(rank, "epoch", 2,
              {{"epoch", 1},
               {"loss", 1},
               {"accuracy", 0.5},
               {"test_" + attack, 0.5},
               {"validated", attack},
               {"phases", {{attack, 1}}}});
  }
  made.run.name = attack;
  made.run.directory = attack;
  made.run.options = {{attack, attack}};
  made.run.remarks = {attack};
  made.run.faults = {attack};
  return made.done();
}

std::size_t count(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (auto at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) ++found;
  return found;
}

/// All but the text of Vega.
std::string before_scripts(const std::string& page) {
  return page.substr(0, page.find("<script nonce"));
}

std::string content(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

}  // namespace

TEST_CASE("text cannot become markup") {
  REQUIRE(escaped("a<b>&\"'") == "a&lt;b&gt;&amp;&quot;&#39;");
  REQUIRE(list({attack}).find("<script") == std::string::npos);
}

TEST_CASE("JSON in a script has no <, and means the same") {
  const nlohmann::json value = {{attack, attack}, {"n", 1.5}};
  const std::string text = json_text(value);
  REQUIRE(text.find('<') == std::string::npos);
  REQUIRE(nlohmann::json::parse(text) == value);
  REQUIRE_NOTHROW(json_text("\xff\xfe"));
}

TEST_CASE("what is in a run's files does not become a script or an element") {
  const Run run = hostile_run();
  for (const auto& runs : {std::vector<Run>{run}, std::vector<Run>{run, run}}) {
    const std::string page = page_of(runs);
    REQUIRE(before_scripts(page).find("<img") == std::string::npos);
    REQUIRE(page.find("<script>") == std::string::npos);
    // Vega's own text has "<script" nowhere; the page has four scripts and the data.
    REQUIRE(count(page, "<script nonce=\"") == 4);
    REQUIRE(count(page, "<script") == 5);
    REQUIRE(page.find("alert(1)&lt;") != std::string::npos);
  }
}

TEST_CASE("a page names no other file and no other host to load from") {
  MadeRun made(1);
  made.line(0, "start", 0).line(0, "epoch", 1, {{"epoch", 1}, {"loss", 1}});
  const std::string page = page_of({made.done()});
  REQUIRE_FALSE(std::regex_search(before_scripts(page), std::regex("(src|href|url)[=(]")));
  REQUIRE(page.find("default-src 'none'") != std::string::npos);
}

TEST_CASE(
    "a page draws each measure of the task, the mean over the workers' samples in the title") {
  MadeRun made(2);
  for (const int rank : {0, 1}) {
    made.line(rank, "start", 0);
    for (const int epoch : {1, 2}) {
      made.line(rank, "epoch", epoch,
                {{"epoch", epoch},
                 {"loss", 1},
                 {"test_loss", 1},
                 {"test_samples", 100 + 200 * rank},
                 {"test_covered", (rank + 1) / 4.0 / epoch}});
    }
  }
  const std::string page = page_of({made.done()});
  REQUIRE(page.find("covered: test 0.4375 → 0.2188") != std::string::npos);
  REQUIRE(page.find("samples: test") == std::string::npos);
  REQUIRE(page.find("loss: test") == std::string::npos);
}

TEST_CASE("each page has another key for its scripts") { REQUIRE(nonce() != nonce()); }

TEST_CASE("runs of the same name are told apart by their paths") {
  std::vector<Run> runs(3);
  runs[0].name = runs[1].name = "run";
  runs[0].directory = "a/run";
  runs[1].directory = "b/run";
  runs[2].name = "other";
  REQUIRE(names_of(runs) == std::vector<std::string>{"a/run", "b/run", "other"});
  REQUIRE(names_of({runs[0], runs[0]}) == std::vector<std::string>{"a/run", "a/run (2)"});
}

TEST_CASE("a report replaces a report, and nothing else") {
  const RunDirectory directory;
  const auto report = directory.path() / "report.html", notes = directory.path() / "notes.html";
  directory.write("notes.html", "<!DOCTYPE html>\n<p>mine</p>\n");
  REQUIRE_THROWS_WITH(require_replaceable(notes, false), ContainsSubstring("--overwrite"));
  REQUIRE_NOTHROW(require_replaceable(notes, true));
  REQUIRE_NOTHROW(require_replaceable(report, false));
  fast::write_whole(report, page_of({hostile_run()}));
  REQUIRE_NOTHROW(require_replaceable(report, false));
  fast::write_whole(report, "new");
  REQUIRE(content(report) == "new");
  REQUIRE(content(notes) == "<!DOCTYPE html>\n<p>mine</p>\n");
}

TEST_CASE("a page that cannot be written leaves nothing behind") {
  const RunDirectory directory;
  REQUIRE_THROWS_AS(require_replaceable(directory.path(), true), fast::Error);
  REQUIRE_THROWS_WITH(require_replaceable(directory.path() / "no" / "x.html", false),
                      ContainsSubstring("No such file"));
  std::size_t files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(directory.path()))
    files += entry.is_regular_file() ? 1 : 0;
  REQUIRE(files == 0);
}

TEST_CASE("numbers are short") {
  REQUIRE(grouped(-1234567) == "-1,234,567");
  REQUIRE(grouped(999) == "999");
  REQUIRE(percent(0.891) == "89.1 %");
  REQUIRE(percent(0.0123) == "1.23 %");
  REQUIRE(duration(0.4) == "0.40 s");
  REQUIRE(duration(59.96) == "1 min 0 s");
  REQUIRE(duration(245) == "4 min 5 s");
  REQUIRE(duration(11520) == "3 h 12 min");
  REQUIRE(short_number(0.00012345) == "0.0001234");
  REQUIRE(short_number(52345.4) == "52,345");
  REQUIRE(counted(1, "run") == "1 run");
}
