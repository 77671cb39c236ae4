#include <fast/train/progress.hpp>
#include <limits>
#include <memory>

#include "support/catch.hpp"

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

TEST_CASE("odd states are still printed") {
  CHECK_THAT(progress_line({}), StartsWith("epoch 0/0 | 0/0"));
  ProgressState state = halfway;
  state.loss = std::numeric_limits<double>::quiet_NaN();
  CHECK_THAT(progress_line(state), ContainsSubstring("loss nan"));
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
    Progress progress(capture.file, Progress::Style::bar);
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
