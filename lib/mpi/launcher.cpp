#include "mpi/launcher.hpp"

#include <fmt/core.h>

#include <poll.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <fast/mpi/environment.hpp>
#include <sstream>
#include <string>

namespace fast::mpi {

void notify_launcher(LauncherNote note) {
  const char* descriptor = std::getenv(launcher_descriptor);
  if (descriptor == nullptr) return;
  [[maybe_unused]] const ssize_t ignored = write(std::atoi(descriptor), &note, 1);
}

bool launcher_watches() { return std::getenv(launcher_watch) != nullptr; }

void notify_launcher_status(std::string_view status) {
  const char* descriptor = std::getenv(launcher_descriptor);
  if (descriptor == nullptr) return;
  const std::string line = fmt::format("s{}\n", status.substr(0, 1000));
  pollfd pipe{std::atoi(descriptor), POLLOUT, 0};
  // A pipe that is writable takes a line of less than PIPE_BUF whole.
  if (poll(&pipe, 1, 0) != 1 || (pipe.revents & POLLOUT) == 0) return;
  [[maybe_unused]] const ssize_t ignored = write(pipe.fd, line.data(), line.size());
}

namespace {

int news_descriptor() {
  const char* descriptor = std::getenv(launcher_news);
  return descriptor == nullptr ? -1 : std::atoi(descriptor);
}

struct News {
  int rank = 0;
  std::string what;
};

std::vector<News> news() {
  const int descriptor = news_descriptor();
  struct stat found {};
  if (descriptor < 0 || fstat(descriptor, &found) != 0 || found.st_size == 0) return {};
  std::string text(static_cast<std::size_t>(found.st_size), '\0');
  const ssize_t count = pread(descriptor, text.data(), text.size(), 0);
  std::istringstream lines(text.substr(0, static_cast<std::size_t>(std::max<ssize_t>(0, count))));
  std::vector<News> all;
  for (News one; lines >> one.rank >> one.what;) all.push_back(one);
  return all;
}

bool is_failure(const News& one) { return one.what == "failed"; }
bool is_death(const News& one) { return one.what == "died" || is_failure(one); }
bool is_end(const News& one) { return one.what == "left" || is_death(one); }

/// The places of those ranks of which there is such news.
template <class Condition>
std::vector<int> places_in(const std::vector<int>& ranks, const Condition& condition) {
  const std::vector<News> all = news();
  std::vector<int> places;
  for (std::size_t place = 0; place < ranks.size(); ++place) {
    const bool found = std::ranges::any_of(
        all, [&](const News& one) { return one.rank == ranks[place] && condition(one); });
    if (found) places.push_back(static_cast<int>(place));
  }
  return places;
}

}  // namespace

bool launcher_reports_ends() { return news_descriptor() >= 0; }

bool some_rank_has_ended() {
  const std::vector<News> all = news();
  return std::ranges::any_of(all, is_end);
}

std::vector<int> ended_among(const std::vector<int>& ranks) { return places_in(ranks, is_end); }

std::vector<int> died_among(const std::vector<int>& ranks) { return places_in(ranks, is_death); }

std::vector<int> failed_among(const std::vector<int>& ranks) {
  return places_in(ranks, is_failure);
}

bool asked_to_leave() {
  const std::vector<News> all = news();
  return std::ranges::any_of(all, [](const News& one) { return one.what == "asked"; });
}

int growths_asked() {
  const std::vector<News> all = news();
  return static_cast<int>(std::ranges::count(all, "grow", &News::what));
}

}  // namespace fast::mpi
