// What autotune remembers and measures, with ways that a replaced clock times.
#include "nn/cuda/tuner.hpp"

#include <fmt/format.h>

#include <cstdlib>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "support/catch.hpp"
#include "support/contents.hpp"
#include "support/temporary_directory.hpp"

using namespace fast;
using namespace fast::cuda;
using namespace fast::testing;

namespace {

const std::string card = "Card 1 (9.0), cuDNN 91900, cuBLASLt 130100";

struct Said {
  std::vector<std::pair<LogLevel, std::string>> lines;
  LogSink sink() {
    return [this](LogLevel level, std::string_view text) { lines.emplace_back(level, text); };
  }
};

/// A process with one network. A measurement takes one second of its clock.
class Process {
 public:
  explicit Process(const TemporaryDirectory& folder, const std::string& of = card)
      : tuner_(TuningFile(folder.path(), of, said.sink()), said.sink(), [this] { return now; }) {}

  void begin() { tuner_.begin(); }
  void end() { tuner_.end(); }
  /// Ways take so many milliseconds; 0: not supported; negative: fails when it is measured.
  std::optional<std::size_t> choose(const std::string& work, const std::vector<double>& ways_ms) {
    return tuner_.choose(
        work,
        Ways<std::size_t>{ways_ms.size(), [](std::size_t i) { return fmt::format("way {}", i); },
                          [&](std::size_t i) -> std::optional<std::size_t> {
                            if (ways_ms[i] == 0) return std::nullopt;
                            return i;
                          },
                          [&](std::size_t& i, std::optional<double>) -> std::optional<double> {
                            now += std::chrono::seconds(1);
                            ++measured;
                            if (ways_ms[i] < 0) return std::nullopt;
                            return ways_ms[i];
                          }});
  }
  /// Chooses in one go. Returns how many ways were measured.
  int measures(const std::string& work, const std::vector<double>& ways_ms, std::size_t expected) {
    measured = 0;
    begin();
    CHECK(choose(work, ways_ms) == expected);
    end();
    return measured;
  }

  Clock::time_point now{};
  int measured = 0;
  Said said;

 private:
  Tuner tuner_;
};

class Variable {
 public:
  Variable(const char* name, const std::optional<std::string>& value) : name_(name) {
    if (const char* before = std::getenv(name)) before_ = before;
    set(value);
  }
  ~Variable() { set(before_); }
  void set(const std::optional<std::string>& value) const {
    value ? setenv(name_, value->c_str(), 1) : unsetenv(name_);
  }

 private:
  const char* name_;
  std::optional<std::string> before_;
};

std::filesystem::path only_file(const TemporaryDirectory& folder) {
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder.path()))
    found.push_back(entry.path());
  REQUIRE(found.size() == 1);
  return found.front();
}

}  // namespace

TEST_CASE("of the first four ways that the device supports, the fastest is taken") {
  const TemporaryDirectory folder;
  Process process(folder);
  CHECK(process.measures("a", {4, 3, 2, 3, 1}, 2) == 4);
  CHECK(process.measures("b", {0, 4, 0, 3, 2, 3, 1}, 4) == 4);
  CHECK(process.measures("one way", {7}, 0) == 0);
  process.begin();
  CHECK_FALSE(process.choose("none", {0, 0}).has_value());
  process.end();
}

TEST_CASE("equal works are measured once, in a process and in later ones") {
  const TemporaryDirectory folder;
  Process first(folder);
  CHECK(first.measures("a", {3, 1, 2}, 1) == 3);
  CHECK(first.measures("a", {3, 1, 2}, 1) == 0);
  Process second(folder);
  CHECK(second.measures("a", {3, 1, 2}, 1) == 0);
  CHECK(second.measures("b", {1, 2}, 0) == 2);
  REQUIRE(second.said.lines.size() == 2);
  CHECK(second.said.lines[0].first == LogLevel::debug);
  CHECK(second.said.lines[0].second ==
        "cuda: autotune: 1 shapes in 0.00 s: 0 measured, 1 known from earlier runs, 0 left to the "
        "heuristics");
  CHECK(second.said.lines[1].first == LogLevel::info);
  CHECK_THAT(second.said.lines[1].second, ContainsSubstring("1 shapes in 2.00 s: 1 measured"));
}

TEST_CASE("when the time is used up, the first way is taken, and later runs go on from there") {
  const TemporaryDirectory folder;
  const std::vector<double> ways{4, 2, 1, 3};
  const auto run = [&](const std::vector<std::size_t>& expected) {
    Process process(folder);
    process.begin();
    for (std::size_t i = 0; i < expected.size(); ++i)
      CHECK(process.choose(std::to_string(i), ways) == expected[i]);
    process.end();
    REQUIRE(process.said.lines.size() == 1);
    return process.said.lines[0].second;
  };
  // 10 s are 10 measurements: all of two works, and the first two ways of the third.
  CHECK_THAT(run({2, 2, 1, 0, 0}),
             ContainsSubstring("5 shapes in 10.00 s: 2 measured, 0 known from earlier runs, 3 left "
                               "to the heuristics (the limit is 10 s)"));
  CHECK_THAT(run({2, 2, 2, 2, 1}),
             ContainsSubstring("2 measured, 2 known from earlier runs, 1 le"));
  CHECK_THAT(run({2, 2, 2, 2, 2}),
             ContainsSubstring("1 measured, 4 known from earlier runs, 0 le"));
  CHECK_THAT(run({2, 2, 2, 2, 2}),
             ContainsSubstring("0 measured, 5 known from earlier runs, 0 le"));
}

TEST_CASE("the time of a network is counted while it is prepared, over all its batch sizes") {
  const TemporaryDirectory folder;
  Process process(folder);
  const std::vector<double> ways{4, 2, 1, 3};
  CHECK(process.measures("a", ways, 2) == 4);
  process.now += std::chrono::hours(1);
  CHECK(process.measures("b", ways, 2) == 4);
  CHECK(process.choose("between", ways) == 0);
  CHECK(process.measures("c", ways, 1) == 2);
  CHECK(process.measures("d", ways, 0) == 0);
  CHECK(process.measures("a", ways, 2) == 0);
}

TEST_CASE("ways that fail are not remembered, nor is a way that is gone") {
  const TemporaryDirectory folder;
  CHECK(Process(folder).measures("a", {-1, -1}, 0) == 2);
  CHECK(Process(folder).measures("a", {-1, 3, -1}, 1) == 3);
  CHECK(Process(folder).measures("a", {5}, 0) == 0);        // way 1 is no longer proposed
  CHECK(Process(folder).measures("a", {0, 4, 3}, 2) == 2);  // way 0 is no longer supported
  CHECK(Process(folder).measures("a", {1, 1, 3}, 2) == 0);
}

TEST_CASE("results are of one card and of one version of its libraries") {
  const TemporaryDirectory folder;
  CHECK(Process(folder).measures("a", {2, 1}, 1) == 2);
  const auto path = only_file(folder);
  for (const char* other :
       {"Card 1 (9.0), cuDNN 91901, cuBLASLt 130100", "Card 1 (9.0), cuDNN 91900, cuBLASLt 130101",
        "Card 1 (8.9), cuDNN 91900, cuBLASLt 130100", "Card 2"}) {
    const TuningFile file(folder.path(), other, {});
    CHECK(file.path() != path);
    // Also if its file has been copied.
    std::filesystem::copy_file(path, file.path());
    Process process(folder, other);
    CHECK(process.said.lines.empty());
    CHECK(process.measures("a", {1, 2}, 0) == 2);
    CHECK(Process(folder, other).measures("a", {1, 2}, 0) == 0);
  }
  CHECK(Process(folder).measures("a", {2, 1}, 1) == 0);
}

TEST_CASE("a file that was cut off anywhere gives no wrong result, and is written anew") {
  const TemporaryDirectory folder;
  CHECK(Process(folder).measures("a", {2, 1}, 1) == 2);
  CHECK(Process(folder).measures("b", {1, 2}, 0) == 2);
  const auto path = only_file(folder);
  const std::string whole = contents(path);
  for (std::size_t size = 0; size < whole.size(); ++size) {
    std::ofstream(path, std::ios::binary) << whole.substr(0, size);
    const TuningFile file(folder.path(), card, {});
    CHECK(file.find("a") == nullptr);
    CHECK(file.find("b") == nullptr);
  }
  const std::string heading = whole.substr(0, whole.find('\n') + 1);
  for (const std::string& text :
       {std::string(), std::string("\0\xff", 2), heading + "a\tway 1\n", heading + "a\nend 1\n",
        heading + "a\t\nend 1\n", heading + "\tway 1\nend 1\n", heading + "a\tway 1\tb\nend 1\n",
        heading + "a\tway 1\nend 2\n", heading + "end 0"}) {
    std::ofstream(path, std::ios::binary) << text;
    Process process(folder);
    REQUIRE(process.said.lines.size() == 1);
    CHECK_THAT(process.said.lines[0].second,
               ContainsSubstring(path.string() + " is damaged; it is ignored and written anew"));
    CHECK(process.measures("a", {2, 1}, 1) == 2);
    CHECK(Process(folder).measures("a", {2, 1}, 1) == 0);
  }
}

TEST_CASE("processes that write at once leave a whole file") {
  const TemporaryDirectory folder;
  TuningFile one(folder.path(), card, {}), two(folder.path(), card, {});
  one.add("a", "way 1");
  two.add("b", "way 2");
  one.save();
  two.save();
  const TuningFile both(folder.path(), card, {});
  REQUIRE(both.find("a") != nullptr);
  REQUIRE(both.find("b") != nullptr);
  CHECK(*both.find("a") == "way 1");
  CHECK(*both.find("b") == "way 2");

  std::vector<Said> said(4);
  std::vector<std::thread> writers;
  for (std::size_t t = 0; t < said.size(); ++t)
    writers.emplace_back([&, t] {
      for (int i = 0; i < 20; ++i) {
        TuningFile file(folder.path(), card, said[t].sink());
        file.add(fmt::format("work {} of {}", i, t), "way 3");
        file.save();
      }
    });
  for (std::thread& writer : writers) writer.join();
  for (const Said& of : said) CHECK(of.lines.empty());
  CHECK(only_file(folder) == both.path());  // nothing temporary is left
}

TEST_CASE("who has measured nothing writes nothing") {
  const TemporaryDirectory folder;
  CHECK(Process(folder).measures("a", {2, 1}, 1) == 2);
  Process process(folder);
  std::filesystem::remove(only_file(folder));
  CHECK(process.measures("a", {2, 1}, 1) == 0);
  CHECK(std::filesystem::is_empty(folder.path()));
}

TEST_CASE("results that cannot be kept are told once, as information") {
  const TemporaryDirectory folder;
  std::ofstream(folder / "file") << "no folder";
  for (const std::filesystem::path& place : {folder / "file", std::filesystem::path()}) {
    Said said;
    TuningFile file(place, card, said.sink());
    for (const char* work : {"a", "b"}) {
      file.add(work, "way 1");
      file.save();
      CHECK(*file.find(work) == "way 1");
    }
    REQUIRE(said.lines.size() == 1);
    CHECK(said.lines[0].first == LogLevel::info);
    CHECK_THAT(said.lines[0].second, ContainsSubstring("results are not kept"));
  }
}

TEST_CASE("results lie where caches of the user lie") {
  const Variable cache("XDG_CACHE_HOME", "/somewhere"), home("HOME", "/home/me");
  CHECK(cache_folder() == "/somewhere/fast");
  for (const auto& unusable : {std::optional<std::string>("relative"),
                               std::optional<std::string>(""), std::optional<std::string>()}) {
    cache.set(unusable);
    CHECK(cache_folder() == "/home/me/.cache/fast");
  }
  home.set(std::nullopt);
  CHECK(cache_folder().empty());
}
