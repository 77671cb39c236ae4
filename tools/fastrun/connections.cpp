#include "fastrun/connections.hpp"

#include <fmt/core.h>

#include <cstdlib>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

#include "core/text.hpp"
#include "fastrun/ranks.hpp"

namespace fastrun {
namespace {

constexpr fast::Seconds between_looks{1};

struct Child {
  pid_t process = -1;
  std::string program;
  bool has_ended = false;
  int status = 0;  ///< as of waitpid()

  bool has_failed() const { return has_ended && status != 0; }
};

/// By /proc/PROCESS/stat: "17 (ssh) Z ...", whose 52nd word is the status.
Child child_at(pid_t process) {
  std::ifstream file(fmt::format("/proc/{}/stat", process));
  std::string line;
  std::getline(file, line);
  const std::size_t begin = line.find('('), end = line.rfind(')');
  if (begin == std::string::npos || end == std::string::npos) return {};
  constexpr int words_up_to_status = 50;
  std::istringstream words(line.substr(end + 1));
  std::string state, last;
  words >> state;
  for (int k = 1; k < words_up_to_status; ++k) words >> last;
  const int status = words ? std::atoi(last.c_str()) : 0;
  return {process, line.substr(begin + 1, end - begin - 1), state == "Z", status};
}

/// In the order in which they were started.
std::vector<Child> children_of(pid_t process) {
  std::ifstream file(fmt::format("/proc/{0}/task/{0}/children", process));
  std::vector<Child> children;
  for (pid_t child = 0; file >> child;) children.push_back(child_at(child));
  return children;
}

std::size_t first_failed(const std::vector<Child>& children) {
  std::size_t k = 0;
  while (k < children.size() && !children[k].has_failed()) ++k;
  return k;
}

}  // namespace

std::string host_at(std::size_t k, const std::string& hosts) {
  std::vector<std::string_view> names;
  for (std::string_view name : fast::split_text(hosts, ',')) {
    name = name.substr(0, name.find(':'));
    if (!name.empty() && (names.empty() || names.back() != name)) names.push_back(name);
  }
  return std::string(k < names.size() ? names[k] : "a host");
}

std::optional<std::string> Connections::failure(pid_t mpiexec, fast::Clock::time_point now) {
  if (mpiexec <= 0 || now - looked_ < between_looks) return std::nullopt;
  looked_ = now;
  const std::vector<Child> children = children_of(mpiexec);
  const std::size_t k = first_failed(children);
  const pid_t failed = k < children.size() ? children[k].process : -1;
  if (std::exchange(failed_, failed) != failed || failed < 0) return std::nullopt;
  return fmt::format("{} to {} {}", children[k].program, host_at(k, hosts_),
                     describe(children[k].status));
}

}  // namespace fastrun
