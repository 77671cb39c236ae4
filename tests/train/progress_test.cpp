#include <fmt/core.h>
#include <unistd.h>

#include <cstdlib>
#include <limits>
#include <memory>

#include "support/catch.hpp"
#include "train/progress.hpp"

using namespace fast::train;
using Catch::Matchers::StartsWith;

namespace {

const ProgressState halfway{1, 4, 50, 100, 0.43125, 12345.6, 30};

struct Capture {
  std::FILE* file = std::tmpfile();
  ~Capture() { std::fclose(file); }
  std::string text() const {
    std::string all(static_cast<std::size_t>(std::ftell(file)), '\0');
    std::rewind(file);
    all.resize(std::fread(all.data(), 1, all.size(), file));
    return all;
  }
};

}  // namespace

TEST_CASE("a line says epoch, round, loss, speed and the time left") {
  CHECK(progress_line(halfway) == "epoch 2/4 | 50/100 | loss 0.4313 | 12346 samples/s | 0:50 left");
}

TEST_CASE("a bar is as full as its epoch") {
  CHECK_THAT(progress_bar(halfway, 200), StartsWith("epoch 2/4 [===============>              ] "));
  ProgressState state = halfway;
  state.round = 100;
  CHECK_THAT(progress_bar(state, 200), ContainsSubstring("[" + std::string(30, '=') + "] 100/100"));
  state.round = 0;
  CHECK_THAT(progress_bar(state, 200), ContainsSubstring("[>" + std::string(29, ' ') + "] 0/100"));
}

TEST_CASE("a bar fits every width") {
  for (std::size_t width = 0; width < 120; ++width) {
    CHECK(progress_bar(halfway, width).size() <= width);
  }
  CHECK(progress_bar(halfway, 80).size() == 80);
  CHECK_THAT(progress_bar(halfway, 79), ContainsSubstring("0:50 left"));
}

TEST_CASE("what is said of an accuracy follows it, and a narrow bar leaves it out") {
  ProgressState state = halfway;
  state.accuracy = {.samples = "test", .part = 0.5};
  CHECK_THAT(progress_line(state), ContainsSubstring("| test 50.00 % | 12346 samples/s"));
  state.accuracy->note = "epoch 1";
  CHECK_THAT(progress_line(state), ContainsSubstring("| test 50.00 % (epoch 1) | 12346 samples/s"));
  CHECK_THAT(progress_bar(state, 200), ContainsSubstring("(epoch 1)"));
  const std::string narrow = progress_bar(state, progress_line(state).size());
  CHECK_THAT(narrow, !ContainsSubstring("(") && ContainsSubstring("0:50 left"));
}

TEST_CASE("odd states are still printed") {
  CHECK_THAT(progress_line({}), StartsWith("epoch 0/0 | 0/0"));
  ProgressState state = halfway;
  state.loss = std::numeric_limits<double>::quiet_NaN();
  CHECK_THAT(progress_line(state), ContainsSubstring("loss nan"));
  state.loss.reset();
  CHECK_THAT(progress_line(state), ContainsSubstring("| loss - |"));
  state.elapsed_s = 10000;
  CHECK_THAT(progress_line(state), ContainsSubstring("4:37:47 left"));
  state.epoch = 4;
  CHECK_THAT(progress_bar(state, 200),
             ContainsSubstring("epoch 4/4") && ContainsSubstring("0:00 left"));
}

TEST_CASE("a file gets a line every five seconds and at the end of an epoch") {
  const Capture capture;
  {
    Progress progress(capture.file);
    ProgressState state{0, 1, 0, 120, 1, 1, 0};
    for (state.round = 1; state.round <= 120; ++state.round) {
      state.elapsed_s = static_cast<double>(state.round) / 10;
      progress.update(state);
    }
  }
  const std::string text = capture.text();
  CHECK(std::count(text.begin(), text.end(), '\n') == 4);  // 0.1, 5.1, 10.1 and 12 s
  CHECK_THAT(text, ContainsSubstring("| 1/120 |") && ContainsSubstring("| 51/120 |") &&
                       ContainsSubstring("| 120/120 |"));
  CHECK(text.find('\r') == std::string::npos);
}

TEST_CASE("a bar is rewritten in place and its line ended once") {
  const Capture capture;
  {
    Progress progress(capture.file, ProgressStyle::bar);
    ProgressState state = halfway;
    progress.update(state);
    progress.update(state);  // too soon
    state.elapsed_s += 1;
    progress.update(state);
    progress.finish();
  }
  const std::string text = capture.text();
  CHECK(std::count(text.begin(), text.end(), '\r') == 2);
  CHECK(std::count(text.begin(), text.end(), '\n') == 1);
  CHECK(text.back() == '\n');
}

namespace {

/// What a style prints to a pipe, as fastrun gives it to its ranks, or to a file.
std::string printed(ProgressStyle style, bool to_pipe) {
  int ends[2];
  REQUIRE(pipe(ends) == 0);
  const Capture capture;
  std::FILE* out = to_pipe ? fdopen(ends[1], "w") : capture.file;
  {
    Progress progress(out, style);
    progress.update(halfway);
  }
  if (!to_pipe) return capture.text();
  std::fclose(out);
  std::string text(1000, '\0');
  text.resize(static_cast<std::size_t>(read(ends[0], text.data(), text.size())));
  return text;
}

struct Variable {
  Variable(const char* name, const char* value) : name(name) { setenv(name, value, 1); }
  ~Variable() { unsetenv(name); }
  const char* name;
};

}  // namespace

TEST_CASE("progress is a bar where fastrun shows it on a terminal, and lines elsewhere") {
  const std::string line = progress_line(halfway) + "\n";
  CHECK(printed(ProgressStyle::automatic, true) == line);
  CHECK(printed(ProgressStyle::none, true).empty());
  CHECK_THAT(printed(ProgressStyle::bar, true),
             StartsWith(fmt::format("\r{}", progress_bar(halfway, 79))));
  const Variable columns("FASTRUN_COLUMNS", "60");
  CHECK_THAT(printed(ProgressStyle::automatic, true),
             StartsWith(fmt::format("\r{}\x1b", progress_bar(halfway, 59))));
  CHECK(printed(ProgressStyle::automatic, false) == line);
  CHECK(printed(ProgressStyle::lines, true) == line);
}

TEST_CASE("a table of fastrun's replaces progress") {
  const Variable watch("FASTRUN_WATCH", "1");
  CHECK(printed(ProgressStyle::automatic, true).empty());
  CHECK(printed(ProgressStyle::lines, true) == progress_line(halfway) + "\n");
}
