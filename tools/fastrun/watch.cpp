#include "fastrun/watch.hpp"

#include <fmt/core.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <numeric>
#include <sstream>
#include <utility>

#include "core/message.hpp"
#include "fastrun/channel.hpp"

namespace fastrun {

namespace {

constexpr char begins_status = 's';

/// 'R', 'S', 'T' and so on; the name before it may have any characters.
char state_of(pid_t process) {
  std::ifstream in(fmt::format("/proc/{}/stat", process));
  const std::string text{std::istreambuf_iterator<char>(in), {}};
  const std::size_t name_ends = text.rfind(')');
  return name_ends == std::string::npos || name_ends + 2 >= text.size() ? '?' : text[name_ends + 2];
}

}  // namespace

RankReports::Taken RankReports::take(std::string_view bytes) {
  Taken taken;
  for (const char byte : bytes) {
    if (line_.empty() && byte != begins_status) {
      taken.notes.push_back(static_cast<fast::mpi::LauncherNote>(byte));
    } else if (byte != '\n') {
      line_ += byte;
    } else {
      taken.statuses.push_back(std::exchange(line_, {}).substr(1));
    }
  }
  return taken;
}

bool is_stopped(pid_t process) {
  if (state_of(process) == 'T') return true;
  std::ifstream children(fmt::format("/proc/{0}/task/{0}/children", process));
  for (pid_t child = 0; children >> child;) {
    if (is_stopped(child)) return true;
  }
  return false;
}

namespace {

using fast::Clock;
using fast::Seconds;

constexpr Seconds silent_after{5};
constexpr Seconds between_tables{0.5}, between_lines{3};

/// What several ranks do together.
struct Sum {
  std::size_t ranks = 0, training = 0;
  long least_step = std::numeric_limits<long>::max(), most_step = -1;
  double samples_per_second = 0, wait = 0;
  std::size_t waits = 0;

  void add(const WatchedRank& rank, Clock::time_point now) {
    ++ranks;
    if (rank.state_at(now) == "training") {
      ++training;
      if (!std::isnan(rank.samples_per_second)) samples_per_second += rank.samples_per_second;
    }
    if (rank.step >= 0) {
      least_step = std::min(least_step, rank.step);
      most_step = std::max(most_step, rank.step);
    }
    if (!std::isnan(rank.wait)) {
      wait += rank.wait;
      ++waits;
    }
  }
  std::string rounds() const {
    if (most_step < 0) return "-";
    if (least_step == most_step) return fmt::format("{}", most_step);
    return fmt::format("{}..{}", least_step, most_step);
  }
  std::string wait_text() const {
    return waits == 0 ? "-" : fmt::format("{:.0f} %", 100 * wait / static_cast<double>(waits));
  }
};

std::string number(double value, int decimals) {
  return std::isnan(value) ? "-" : fmt::format("{:.{}f}", value, decimals);
}

std::string line_of(std::size_t number_of_rank, const WatchedRank& rank, std::size_t host_width,
                    Clock::time_point now) {
  const auto count = [](long value) { return value < 0 ? "-" : std::to_string(value); };
  return fmt::format("{:>5}  {:<{}}  {:>9} {:>6} {:>10} {:>6} {:>5}  {:<16}  {}", number_of_rank,
                     rank.host, host_width, count(rank.step), count(rank.epoch),
                     number(rank.samples_per_second, 0),
                     std::isnan(rank.wait) ? "-" : fmt::format("{:.0f} %", 100 * rank.wait),
                     number(rank.age, 1), rank.state_at(now), rank.words);
}

/// Without what aligns a table.
std::string in_one_line(const std::string& text) {
  std::istringstream words(text);
  std::string line;
  for (std::string word; words >> word;) line += (line.empty() ? "" : " ") + word;
  return line;
}

/// Those that do not train first, then those that are behind.
std::vector<std::size_t> by_need(const std::vector<WatchedRank>& ranks, Clock::time_point now) {
  std::vector<std::size_t> order(ranks.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  const auto need = [&](std::size_t r) {
    return std::pair(ranks[r].state_at(now) == "training", ranks[r].step);
  };
  std::ranges::stable_sort(order, [&](std::size_t a, std::size_t b) { return need(a) < need(b); });
  return order;
}

/// A site that was not seen for longer is not shown, as in the status of fast-sites.
constexpr Seconds remembered{600};

using Sites = std::vector<std::pair<std::string, WatchedSite>>;

/// As the rank has it that has spoken last: it has taken the place of a lost one. While it is
/// silent, it hears nothing.
Sites sites_of(const std::vector<WatchedRank>& ranks, Clock::time_point now) {
  const WatchedRank* latest = nullptr;
  for (const WatchedRank& rank : ranks)
    if (!rank.sites.empty() && (latest == nullptr || rank.heard > latest->heard)) latest = &rank;
  if (latest == nullptr) return {};
  Sites sites(latest->sites.begin(), latest->sites.end());
  const double silent_s = std::max(0.0, Seconds(now - latest->heard).count());
  for (auto& [name, site] : sites) site.seen_s += silent_s;
  std::erase_if(sites, [](const auto& one) { return one.second.seen_s > remembered.count(); });
  return sites;
}

std::string seen_text(const WatchedSite& site) { return number(site.seen_s, 1) + " s"; }
std::string delay_text(const WatchedSite& site) { return number(1e3 * site.delay_s, 0) + " ms"; }

/// A heading and a line for each, on `most` lines. Of more, those that have been silent for
/// longest.
std::vector<std::string> table_of_sites(Sites sites, std::size_t most) {
  if (sites.empty() || most < 2) return {};
  const std::size_t all = sites.size();
  if (all + 1 > most) {
    std::ranges::stable_sort(sites, std::greater(), [](const auto& s) { return s.second.seen_s; });
    sites.resize(most - 1);
    std::ranges::sort(sites, {}, &Sites::value_type::first);
  }
  std::size_t width = 14;
  for (const auto& [name, site] : sites) width = std::max(width, name.size());
  const std::string title =
      sites.size() < all ? fmt::format("site, {} of {}", sites.size(), all) : "site";
  std::vector<std::string> lines = {
      fmt::format("{:<{}} {:>9} {:>9} {:>9} {:>6}", title, width, "seen", "delay", "round", "age")};
  for (const auto& [name, site] : sites)
    lines.push_back(fmt::format("{:<{}} {:>9} {:>9} {:>9} {:>6}", name, width, seen_text(site),
                                delay_text(site), number(site.round, 0), number(site.age, 0)));
  return lines;
}

std::string cut(std::string line, std::size_t width) {
  line = fast::printable(line);
  if (line.size() >= width) line.resize(width - 1);
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line + "\n";
}

}  // namespace

std::string WatchedRank::state_at(Clock::time_point now) const {
  if (stopped) return "stopped";
  if (!trains) return state;
  const Seconds silence = now - heard;
  if (silence < silent_after) return "training";
  return fmt::format("silent for {:.0f} s", silence.count());
}

void take_status(WatchedRank& rank, std::string_view status, Clock::time_point now) {
  std::istringstream words{std::string(status)};
  std::string name, value;
  WatchedSite* site = nullptr;
  while (words >> name >> value) {
    const double number = std::strtod(value.c_str(), nullptr);
    if (name == "site") site = &rank.sites[value];
    if (site != nullptr) {
      if (name == "seen_s") site->seen_s = number;
      if (name == "delay_s") site->delay_s = number;
      if (name == "round") site->round = number;
      if (name == "age") site->age = number;
      continue;
    }
    if (name == "step") rank.step = static_cast<long>(number);
    if (name == "epoch") rank.epoch = static_cast<long>(number);
    if (name == "samples_per_second") rank.samples_per_second = number;
    if (name == "wait") rank.wait = number;
    if (name == "age") rank.age = number;
  }
  rank.trains = true;
  rank.heard = now;
}

std::string watch_table(const std::vector<WatchedRank>& ranks, ScreenSize size,
                        Clock::time_point now) {
  std::size_t room = std::max<std::size_t>(size.height, 5) - 3;  // below the two headings
  const std::vector<std::string> of_sites = table_of_sites(sites_of(ranks, now), room / 2);
  room -= of_sites.size();
  const bool all_fit = ranks.size() <= room;
  std::vector<std::size_t> order = by_need(ranks, now);
  Sum shown, others;
  for (const WatchedRank& rank : ranks) shown.add(rank, now);
  if (!all_fit) {
    for (std::size_t k = room - 1; k < order.size(); ++k) others.add(ranks[order[k]], now);
    order.resize(room - 1);
  }
  std::ranges::sort(order);
  std::size_t host_width = 4;
  for (const WatchedRank& rank : ranks) host_width = std::max(host_width, rank.host.size());
  host_width = std::min<std::size_t>(host_width, 16);
  std::string text = cut(
      fmt::format("{} of {} ranks train, round {}, {:.0f} samples/s, {} waiting", shown.training,
                  shown.ranks, shown.rounds(), shown.samples_per_second, shown.wait_text()),
      size.width);
  text += cut(
      fmt::format("{:>5}  {:<{}}  {:>9} {:>6} {:>10} {:>6} {:>5}  {:<16}  {}", "rank", "host",
                  host_width, "round", "epoch", "samples/s", "wait", "age", "state", "last words"),
      size.width);
  for (const std::size_t r : order) text += cut(line_of(r, ranks[r], host_width, now), size.width);
  if (!all_fit) {
    text += cut(fmt::format("and {} more: {} train, round {}, {:.0f} samples/s, {} waiting",
                            others.ranks, others.training, others.rounds(),
                            others.samples_per_second, others.wait_text()),
                size.width);
  }
  for (const std::string& line : of_sites) text += cut(line, size.width);
  return text;
}

std::string watch_lines(const std::vector<WatchedRank>& ranks, Clock::time_point now) {
  Sum all;
  for (const WatchedRank& rank : ranks) all.add(rank, now);
  std::string text =
      fmt::format("fastrun: {} of {} ranks train, round {}, {:.0f} samples/s, {} waiting\n",
                  all.training, all.ranks, all.rounds(), all.samples_per_second, all.wait_text());
  for (std::size_t r = 0; r < ranks.size(); ++r) {
    const std::string state = ranks[r].state_at(now);
    if (state == "training") continue;
    text += fmt::format("fastrun:   rank {}: {}", r, state);
    if (ranks[r].step >= 0) text += fmt::format(", in round {}", ranks[r].step);
    text += "\n";
  }
  for (const auto& [name, site] : sites_of(ranks, now))
    text += fmt::format("fastrun:   site {}: seen {} ago, delay {}, round {}, age {}\n",
                        fast::printable(name), seen_text(site), delay_text(site),
                        number(site.round, 0), number(site.age, 0));
  return text;
}

ScreenSize screen_size(int descriptor) {
  winsize found{};
  if (ioctl(descriptor, TIOCGWINSZ, &found) != 0 || found.ws_col == 0 || found.ws_row == 0)
    return {};
  return {found.ws_col, found.ws_row};
}

Watch::Watch(std::size_t ranks)
    : ranks_(ranks),
      on_terminal_(isatty(STDERR_FILENO) != 0),
      next_(Clock::now() + std::chrono::duration_cast<Clock::duration>(
                               on_terminal_ ? Seconds(0) : between_lines)) {}

void Watch::joined(int rank, const std::string& host) {
  at(rank).host = host;
  at(rank).state = "running";
}

void Watch::hear(int rank, std::string_view kind, const std::string& text) {
  if (kind == "status") take_status(at(rank), text, Clock::now());
  if (kind == "words") at(rank).words = in_one_line(text);
  if (kind == "stopped") at(rank).stopped = true;
  if (kind == "goes") at(rank).stopped = false;
}

void Watch::ended(int rank, const std::string& how) {
  at(rank).state = how;
  at(rank).trains = at(rank).stopped = false;
}

void Watch::draw() {
  const auto now = Clock::now();
  if (now < next_ || !is_writable(STDERR_FILENO)) return;  // a stopped terminal holds nothing up
  next_ = now + std::chrono::duration_cast<Clock::duration>(on_terminal_ ? between_tables
                                                                         : between_lines);
  if (!on_terminal_) {
    std::fputs(watch_lines(ranks_, now).c_str(), stderr);
    return;
  }
  const std::string table = watch_table(ranks_, screen_size(STDERR_FILENO), now);
  erase();
  if (std::exchange(line_is_open_, false)) std::fputc('\n', stderr);
  std::fputs(table.c_str(), stderr);
  std::fflush(stderr);
  drawn_lines_ = static_cast<std::size_t>(std::ranges::count(table, '\n'));
}

void Watch::erase() {
  if (drawn_lines_ == 0) return;
  std::fputs(fmt::format("\x1b[{}A\r\x1b[J", drawn_lines_).c_str(), stderr);
  std::fflush(stderr);
  drawn_lines_ = 0;
  next_ = {};  // soon again
}

void Watch::make_room(int descriptor, std::string_view text) {
  if (!on_terminal_ || text.empty() || isatty(descriptor) == 0) return;
  erase();
  line_is_open_ = !text.ends_with('\n');
}

void Watch::finish() {
  if (!on_terminal_) return;
  next_ = {};
  draw();
  drawn_lines_ = 0;
}

}  // namespace fastrun
