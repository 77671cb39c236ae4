#include "train/progress.hpp"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "core/message.hpp"

namespace fast::train {
namespace {

constexpr double bar_interval_s = 0.1;
constexpr double line_interval_s = 5;
constexpr std::size_t widest_bar = 30;
constexpr std::size_t narrowest_bar = 5;

std::string time_text(double seconds) {
  const long s = std::lround(std::clamp(seconds, 0.0, 1e9));
  if (s < 3600) return fmt::format("{}:{:02}", s / 60, s % 60);
  return fmt::format("{}:{:02}:{:02}", s / 3600, s / 60 % 60, s % 60);
}

double fraction(std::size_t done, std::size_t all) {
  return all == 0 ? 0 : std::min(1.0, static_cast<double>(done) / static_cast<double>(all));
}

std::string head(const ProgressState& s) {
  return fmt::format("epoch {}/{}", std::min(s.epoch + 1, s.epochs), s.epochs);
}

std::string accuracy_text(const ProgressState::Accuracy& a, bool with_note) {
  const bool has_note = with_note && !a.note.empty();
  return fmt::format("{} {}{}{}{}", a.samples, a.name, a.name.empty() ? "" : " ",
                     measure_text(a.form, a.part), has_note ? " (" + a.note + ")" : "");
}

std::string tail(const ProgressState& s, bool with_note) {
  std::string text = fmt::format("{}/{} | loss {}", s.round, s.rounds,
                                 s.loss ? fmt::format("{:.4f}", *s.loss) : "-");
  if (s.accuracy) text += " | " + accuracy_text(*s.accuracy, with_note);
  text += fmt::format(" | {:.0f} samples/s", s.samples_per_second);
  const double done = fraction(s.epoch * s.rounds + s.round, s.epochs * s.rounds);
  if (done > 0) text += fmt::format(" | {} left", time_text(s.elapsed_s * (1 - done) / done));
  return text;
}

/// Of the terminal that fastrun shows what ranks print on; 0: it shows it elsewhere.
std::size_t launcher_columns() {
  const char* columns = std::getenv("FASTRUN_COLUMNS");
  return columns == nullptr ? 0 : std::strtoul(columns, nullptr, 10);
}

std::size_t terminal_width(std::FILE* out) {
  winsize size{};
  if (ioctl(fileno(out), TIOCGWINSZ, &size) == 0 && size.ws_col > 0) return size.ws_col;
  const std::size_t columns = launcher_columns();
  return columns > 0 ? columns : 80;
}

/// What fastrun reads is a pipe.
bool is_pipe(std::FILE* out) {
  struct stat found {};
  return fstat(fileno(out), &found) == 0 && S_ISFIFO(found.st_mode);
}

ProgressStyle style_for(std::FILE* out) {
  if (isatty(fileno(out)) != 0) return ProgressStyle::bar;
  if (launcher_columns() > 0 && is_pipe(out)) return ProgressStyle::bar;
  return std::getenv("FASTRUN_WATCH") != nullptr ? ProgressStyle::none : ProgressStyle::lines;
}

}  // namespace

std::string progress_bar(const ProgressState& state, std::size_t width) {
  constexpr std::size_t brackets = 4;  // " [" and "] "
  const std::string before = head(state);
  std::string after = tail(state, true);
  if (before.size() + after.size() + brackets + narrowest_bar > width) after = tail(state, false);
  const std::size_t taken = before.size() + after.size() + brackets;
  const std::size_t length =
      std::clamp(width > taken ? width - taken : 0, narrowest_bar, widest_bar);
  const auto filled =
      static_cast<std::size_t>(fraction(state.round, state.rounds) * static_cast<double>(length));
  std::string bar(filled, '=');
  if (filled < length) bar += '>';
  bar.resize(length, ' ');
  return fmt::format("{} [{}] {}", before, bar, after).substr(0, width);
}

std::string progress_line(const ProgressState& state) {
  return head(state) + " | " + tail(state, true);
}

Progress::Progress(std::FILE* out, ProgressStyle style)
    : out_(out), style_(style == ProgressStyle::automatic ? style_for(out) : style) {}

void Progress::update(const ProgressState& state) {
  if (style_ == ProgressStyle::none) return;
  if (state.elapsed_s < next_s_ && state.round != state.rounds) return;
  const bool is_bar = style_ == ProgressStyle::bar;
  next_s_ = state.elapsed_s + (is_bar ? bar_interval_s : line_interval_s);
  print(state);
}

/// The next state is soon there: this one waits for nobody.
void Progress::write(std::string_view text) const { write_or_drop(out_, text, Seconds(0)); }

void Progress::print(const ProgressState& state) {
  if (style_ == ProgressStyle::bar) {
    write(fmt::format("\r{}\x1b[K", progress_bar(state, terminal_width(out_) - 1)));
    line_open_ = true;
  } else {
    write(progress_line(state) + "\n");
  }
}

void Progress::finish() {
  if (!line_open_) return;
  write("\n");
  line_open_ = false;
}

}  // namespace fast::train
