#include <fmt/core.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <fstream>
#include <limits>
#include <optional>

#include "core/host.hpp"

namespace fast {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t no_limit = std::numeric_limits<std::size_t>::max();

/// The number behind `key` in lines of "key number"; an empty key: the file's first word.
std::optional<std::size_t> number_in(const fs::path& path, const std::string& key = "") {
  std::ifstream in(path);
  std::string word;
  while (!key.empty() && in >> word && word != key) {
  }
  std::size_t value = 0;
  if (in >> value) return value;
  return std::nullopt;
}

/// The path of this process's group of a hierarchy, as /proc/self/cgroup has it.
std::optional<fs::path> group_of(const std::string& controller) {
  std::ifstream in("/proc/self/cgroup");
  for (std::string line; std::getline(in, line);) {
    const std::size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string names = fmt::format(",{},", line.substr(first + 1, second - first - 1));
    if (names.find(fmt::format(",{},", controller)) == std::string::npos) continue;
    return fs::path(line.substr(second + 1)).relative_path();
  }
  return std::nullopt;
}

/// A hierarchy's files.
struct Hierarchy {
  fs::path root;
  const char* controller;  ///< "" for version 2
  const char* limit_file;
  const char* used_file;
  const char* cache_key;  ///< null: nothing of what is used can be given back
};

/// What a group leaves of its limit.
std::size_t left_in(const Hierarchy& files, const fs::path& group) {
  const auto limit = number_in(files.root / group / files.limit_file),
             used = number_in(files.root / group / files.used_file);
  if (!limit || !used) return no_limit;
  std::size_t cache = 0;
  if (files.cache_key != nullptr)
    cache = number_in(files.root / group / "memory.stat", files.cache_key).value_or(0);
  const std::size_t held = *used - std::min(*used, cache);
  return *limit - std::min(*limit, held);
}

/// The least that this process's group and those above it leave. In a container its own group may
/// be mounted as the root.
std::size_t left_in_all(const Hierarchy& files) {
  fs::path group = group_of(files.controller).value_or(fs::path());
  std::size_t least = left_in(files, {});
  for (; !group.empty(); group = group.parent_path()) {
    least = std::min(least, left_in(files, group));
  }
  return least;
}

struct ProcessMemory {
  std::size_t addresses = 0, resident = 0;
};
ProcessMemory memory_of_process() {
  std::ifstream in("/proc/self/statm");
  ProcessMemory pages;
  in >> pages.addresses >> pages.resident;
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return {pages.addresses * page, pages.resident * page};
}

std::size_t addresses_left() {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return no_limit;
  const auto most = static_cast<std::size_t>(limit.rlim_cur);
  return most - std::min(most, memory_of_process().addresses);
}

std::size_t processes_of_user() {
  rlimit limit{};
  if (geteuid() == 0 || getrlimit(RLIMIT_NPROC, &limit) != 0) return no_limit;
  return limit.rlim_cur == RLIM_INFINITY ? no_limit : static_cast<std::size_t>(limit.rlim_cur);
}

}  // namespace

std::size_t available_host_memory_bytes() {
  const auto kibibytes = number_in("/proc/meminfo", "MemAvailable:");
  return kibibytes ? *kibibytes * 1024 : no_limit;
}

std::size_t available_memory_bytes() {
  const fs::path root = "/sys/fs/cgroup";
  return std::min({available_host_memory_bytes(), addresses_left(),
                   left_in_all({root, "", "memory.max", "memory.current", "inactive_file"}),
                   left_in_all({root / "memory", "memory", "memory.limit_in_bytes",
                                "memory.usage_in_bytes", "total_inactive_file"})});
}

std::size_t most_threads() {
  const fs::path root = "/sys/fs/cgroup";
  const auto of_kernel = [](const char* name) {
    return number_in(fs::path("/proc/sys") / name).value_or(no_limit);
  };
  return std::min({of_kernel("kernel/threads-max"), of_kernel("kernel/pid_max"),
                   of_kernel("vm/max_map_count") / 2, processes_of_user(),
                   left_in_all({root, "", "pids.max", "pids.current", nullptr}),
                   left_in_all({root / "pids", "pids", "pids.max", "pids.current", nullptr})});
}

std::size_t resident_memory_bytes() { return memory_of_process().resident; }

std::string host_name() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::string size_text(double size_bytes) {
  constexpr const char* units[] = {"bytes", "KiB", "MiB", "GiB", "TiB"};
  std::size_t unit = 0;
  for (; size_bytes >= 1024 && unit < 4; ++unit) size_bytes /= 1024;
  return fmt::format("{:.{}f} {}", size_bytes, unit == 0 || size_bytes >= 100 ? 0 : 1, units[unit]);
}

}  // namespace fast
