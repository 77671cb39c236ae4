#include "train/checkpoint/run_directories.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/vfs.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <fast/core/error.hpp>
#include <fstream>
#include <functional>
#include <iterator>
#include <regex>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "core/contains.hpp"
#include "core/whole_file.hpp"
#include "train/checkpoint/manifest.hpp"

namespace fast::train {
namespace {

constexpr std::chrono::milliseconds between_tries{50};

/// On a file system of this host alone.
bool is_local(int descriptor) {
  constexpr unsigned zfs = 0x2fc12fc1;
  constexpr unsigned local[] = {EXT4_SUPER_MAGIC, XFS_SUPER_MAGIC,       BTRFS_SUPER_MAGIC, zfs,
                                F2FS_SUPER_MAGIC, OVERLAYFS_SUPER_MAGIC, TMPFS_MAGIC};
  struct statfs found {};
  return fstatfs(descriptor, &found) == 0 && contains(local, static_cast<unsigned>(found.f_type));
}

Descriptor open_directory(const std::filesystem::path& directory) {
  std::error_code ignored;
  std::filesystem::create_directories(directory, ignored);
  Descriptor opened(open(directory.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  return opened.is_open() && is_local(opened.get()) ? std::move(opened) : Descriptor();
}

/// True also where there are no locks.
bool try_lock(int descriptor, int how) {
  return flock(descriptor, how | LOCK_NB) == 0 || errno != EWOULDBLOCK;
}

/// As long as this exists, no other first worker of this host looks whether it is alone in the
/// directory. It is the name of a socket, which the system takes back when the process ends.
/// Another lock of the directory would be an exchange of marks itself. Where there is no such
/// socket, there is no gate.
class Gate {
 public:
  explicit Gate(int directory) : socket_(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    struct stat found {};
    if (!socket_.is_open() || fstat(directory, &found) != 0) return;
    const std::string text = fmt::format("fast directory {:x} {:x}", found.st_dev, found.st_ino);
    sockaddr_un name{};
    name.sun_family = AF_UNIX;
    text.copy(name.sun_path + 1, sizeof name.sun_path - 1);  // from 1 on: no file
    const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + text.size());
    const bool is_bound = bind(socket_.get(), reinterpret_cast<sockaddr*>(&name), length) == 0;
    is_ours_ = is_bound || errno != EADDRINUSE;
  }
  bool is_ours() const { return is_ours_; }

 private:
  Descriptor socket_;
  bool is_ours_ = true;
};

/// Leaves a mark in any case. The system exchanges a mark for another one in two steps: between
/// them there is none, and others may lock. So all that exchange marks do it one after the other.
bool is_alone_in(int descriptor) {
  const Gate gate(descriptor);
  if (!gate.is_ours()) return false;
  const bool alone = try_lock(descriptor, LOCK_EX);
  return try_lock(descriptor, LOCK_SH) && alone;
}

}  // namespace

DirectoryLock::DirectoryLock(std::filesystem::path directory)
    : directory_(std::move(directory)), descriptor_(open_directory(directory_)) {
  if (descriptor_.is_open()) try_lock(descriptor_.get(), LOCK_SH);
}

void DirectoryLock::require_alone(Seconds patience) const {
  if (!descriptor_.is_open()) return;
  const Deadline deadline(patience);
  while (!is_alone_in(descriptor_.get())) {
    require(!deadline.expired(), ErrorKind::argument,
            "Trainer: another run writes to {} now; end it first, or choose another directory",
            directory_.string());
    std::this_thread::sleep_for(between_tries);
  }
}

namespace {

using std::filesystem::path;

constexpr const char* log_end = ".log";
constexpr const char* number_file = "run.json";

std::string read_number(const path& directory) {
  std::ifstream in(directory / number_file);
  const auto json = nlohmann::json::parse(in, nullptr, false);
  return json.is_object() ? json.value("run", std::string()) : std::string();
}

void write_number(const path& directory, const std::string& number) {
  if (read_number(directory) == number) return;
  const std::string text = nlohmann::ordered_json{{"format", "fast run 1"}, {"run", number}}.dump();
  write_durably(directory / number_file, {bytes_of(text + "\n")});
}

/// A number and that end.
bool is_numbered(const std::string& name, std::string_view end) {
  if (!name.ends_with(end) || name.size() == end.size()) return false;
  return std::ranges::all_of(std::string_view(name).substr(0, name.size() - end.size()),
                             [](unsigned char c) { return std::isdigit(c) != 0; });
}

/// Metrics of an epoch or of a test within one. A run that ended before has no result.
bool has_result(const path& metrics) {
  std::error_code problem;
  if (!std::filesystem::is_regular_file(metrics, problem)) return false;
  std::ifstream in(metrics);
  for (std::string line; std::getline(in, line);) {
    for (const char* kind : {R"({"kind":"epoch",)", R"({"kind":"evaluation",)"})
      if (line.starts_with(kind)) return true;
  }
  return false;
}

/// config.toml and config-2.toml that begin as a run's do.
bool is_configuration(const path& file) {
  static const std::regex pattern(R"(config(-\d+)?\.toml)");
  if (!std::regex_match(file.filename().string(), pattern)) return false;
  std::ifstream in(file);
  std::string line;
  return std::getline(in, line) && line.starts_with(configuration_mark);
}

/// Of the timelines and event files that a run writes.
bool is_observed(const path& file) {
  static const std::regex pattern(
      R"(trace-\d+\.\d+[ab]\.pftrace|merged\.pftrace|events\.out\.tfevents\..*)");
  return std::regex_match(file.filename().string(), pattern);
}

std::vector<path> entries(const path& directory) {
  std::error_code problem;
  std::vector<path> all;
  for (const auto& entry : std::filesystem::directory_iterator(directory, problem))
    all.push_back(entry.path());
  std::ranges::sort(all);
  return all;
}

/// The first checkpoint there.
std::optional<path> checkpoint_in(const path& directory) {
  for (const path& entry : entries(directory)) {
    if (round_of(entry)) return entry;
  }
  return std::nullopt;
}

/// A result in a run's output. Files of a run that ended before its first result do not count.
std::optional<path> result_in(const path& out) {
  for (const path& file : entries(out / metrics_directory)) {
    if (is_metrics_name(file.filename().string()) && has_result(file)) return file;
  }
  if (has_result(out / merged_metrics_name)) return out / merged_metrics_name;
  std::error_code problem;
  const path model = out / mean_model_name;
  return std::filesystem::exists(model, problem) ? std::optional(model) : std::nullopt;
}

bool are_same(const path& a, const path& b) {
  std::error_code problem;
  return std::filesystem::equivalent(a, b, problem);
}

/// The directory of the checkpoints from which the run resumes.
std::optional<path> resumed_directory(const RunDirectories& directories) {
  if (!directories.resume) return std::nullopt;
  std::error_code problem;
  const path whole = std::filesystem::weakly_canonical(*directories.resume, problem);
  return std::filesystem::exists(whole / manifest_name, problem) ? whole.parent_path() : whole;
}

bool is_resumed_run(const path& directory, const path& resumed, bool of_checkpoints) {
  const std::string number = read_number(directory);
  if (!number.empty() && number == read_number(resumed)) return true;
  return are_same(directory, of_checkpoints ? resumed : resumed.parent_path());
}

/// A file of another run, if there is one.
std::optional<path> in_the_way(const RunDirectories& directories, const path& directory,
                               bool of_checkpoints) {
  const auto resumed = resumed_directory(directories);
  if (resumed && is_resumed_run(directory, *resumed, of_checkpoints)) return std::nullopt;
  return of_checkpoints ? checkpoint_in(directory) : result_in(directory);
}

void require_free(const RunDirectories& directories, const path& directory, bool of_checkpoints) {
  const auto found = in_the_way(directories, directory, of_checkpoints);
  if (!found || directories.overwrite) return;
  constexpr const char* advice = "choose another directory, or overwrite that run (--overwrite)";
  require(directories.resume.has_value(), ErrorKind::argument,
          "Trainer: {} holds a run already ({}); resume from its checkpoints, {}",
          directory.string(), found->lexically_relative(directory).string(), advice);
  fail(ErrorKind::argument, "Trainer: {} holds another run ({}) than {}, which is resumed; {}",
       directory.string(), found->lexically_relative(directory).string(),
       directories.resume->string(), advice);
}

void make(const path& directory) {
  std::error_code problem;
  std::filesystem::create_directories(directory, problem);
  require(!problem, ErrorKind::resource,
          "Trainer: the directory {} cannot be made ({}); choose another", directory.string(),
          problem.message());
}

/// Leaves a directory that somebody else uses, too.
void remove_if_empty(const path& directory) {
  std::error_code ignored;
  std::filesystem::remove(directory, ignored);
}

using IsOurs = std::function<bool(const path&)>;

void remove_files(const path& directory, const IsOurs& is_ours) {
  std::error_code ignored;
  for (const path& entry : entries(directory)) {
    if (is_ours(entry)) std::filesystem::remove(entry, ignored);
  }
}

void remove_with_directory(const path& directory, const IsOurs& is_ours) {
  remove_files(directory, is_ours);
  remove_if_empty(directory);
}

bool is_at_top(const path& file) {
  const std::string name = file.filename().string();
  return name == mean_model_name || name == merged_metrics_name || is_configuration(file);
}

void remove_logs(const path& out) {
  remove_with_directory(out / logs_directory, [](const path& file) {
    return is_numbered(file.filename().string(), log_end);
  });
}

void remove_results(const path& out) {
  remove_files(out, is_at_top);
  remove_with_directory(out / metrics_directory,
                        [](const path& file) { return is_metrics_name(file.filename().string()); });
  remove_with_directory(out / "traces", is_observed);
  for (const path& worker : entries(out / "tensorboard"))
    remove_with_directory(worker, is_observed);
  remove_if_empty(out / "tensorboard");
}

/// What was left by a run that ended before its first result, or by one that is overwritten.
bool is_of_another_run(const RunDirectories& directories, const std::string& number) {
  const std::string before = read_number(*directories.out);
  if (!before.empty() && before != number) return true;
  return in_the_way(directories, *directories.out, false).has_value();
}

}  // namespace

bool is_metrics_name(const std::string& name) { return is_numbered(name, metrics_end); }
std::string log_name(int worker) { return std::to_string(worker) + log_end; }

void require_free(const RunDirectories& directories) {
  if (directories.out) require_free(directories, *directories.out, false);
  if (directories.checkpoints) require_free(directories, *directories.checkpoints, true);
}

bool resumes_in_place(const RunDirectories& directories) {
  const auto resumed = resumed_directory(directories);
  return resumed && directories.checkpoints && are_same(*resumed, *directories.checkpoints);
}

std::string number_of(const RunDirectories& directories, const std::string& fresh) {
  const auto resumed = resumed_directory(directories);
  if (!resumed) return fresh;
  const bool goes_on =
      (directories.out && is_resumed_run(*directories.out, *resumed, false)) ||
      (directories.checkpoints && is_resumed_run(*directories.checkpoints, *resumed, true));
  const std::string number = read_number(*resumed);
  return goes_on && !number.empty() ? number : fresh;
}

void claim(const RunDirectories& directories, const std::string& number,
           std::optional<std::int64_t> resumed_round) {
  if (directories.out) {
    const bool of_another = is_of_another_run(directories, number);
    if (of_another) remove_results(*directories.out);
    if (of_another && directories.overwrite)
      remove_logs(*directories.out);  // else they say why it ended
    make(*directories.out);
    write_number(*directories.out, number);
  }
  if (directories.checkpoints) {
    const bool others = in_the_way(directories, *directories.checkpoints, true).has_value();
    remove_checkpoints_after(*directories.checkpoints, others ? -1 : resumed_round.value_or(-1));
    make(*directories.checkpoints);
    write_number(*directories.checkpoints, number);
  }
}

}  // namespace fast::train
