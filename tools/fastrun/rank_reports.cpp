#include "rank_reports.hpp"

#include <fmt/core.h>

#include <fstream>
#include <utility>

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

}  // namespace fastrun
