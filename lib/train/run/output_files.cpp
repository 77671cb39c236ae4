#include "train/run/output_files.hpp"

#include <algorithm>
#include <fast/core/error.hpp>
#include <fstream>
#include <random>
#include <thread>
#include <utility>

#include "core/contains.hpp"
#include "core/whole_file.hpp"
#include "membership/peer_state.hpp"
#include "mpi/launcher.hpp"

namespace fast::train {
namespace {

bool saves(const CheckpointOptions& options) {
  return options.every_rounds > 0 || options.every_s > 0 || options.directory;
}

/// The number of a new run: worker 0's.
std::string draw_number(const RunPlan& plan) {
  std::random_device device;
  const std::string random = fmt::format("{:08x}{:08x}", device(), device());
  return plan.group.all_gather(random, plan.deadline(), "Trainer: numbering the run")[0];
}

void claim_directories(const RunDirectories& directories, const std::string& fresh) {
  std::optional<std::int64_t> from;
  if (directories.resume) from = find_checkpoint(*directories.resume).round;
  claim(directories, number_of(directories, fresh), from);
}

/// Of the output and of the checkpoints, which may be the same, also under two names. Locks make
/// their directories: two names of one are found after the first lock.
std::vector<DirectoryLock> locks_of(const RunDirectories& directories) {
  const auto& out = directories.out;
  const auto& checkpoints = directories.checkpoints;
  std::vector<DirectoryLock> locks;
  if (out) locks.emplace_back(*out);
  std::error_code ignored;
  if (checkpoints && !(out && std::filesystem::equivalent(*out, *checkpoints, ignored)))
    locks.emplace_back(*checkpoints);
  return locks;
}

void lock_alone(const RunDirectories& directories, RunFiles& files) {
  files.locks = locks_of(directories);
  for (const DirectoryLock& lock : files.locks) lock.require_alone();
}

CheckpointWriter::Options writer_options(const RunPlan& plan, std::filesystem::path directory) {
  CheckpointWriter::Options writer;
  writer.directory = std::move(directory);
  writer.rank = plan.group.rank();
  writer.workers = plan.group.size();
  writer.keep = plan.options.checkpoints.keep;
  const Seconds silent = plan.options.worker.suspect_after.value_or(suspect_after_at_first);
  writer.patience_s = 2 * silent.count();
  writer.may_write = [group = plan.group] { return group.has_seat(); };
  writer.log = plan.options.worker.log;
  return writer;
}

std::filesystem::path free_configuration(const std::filesystem::path& directory) {
  std::filesystem::path file = directory / "config.toml";
  std::error_code ignored;
  for (int part = 2; std::filesystem::exists(file, ignored); ++part) {
    file = directory / fmt::format("config-{}.toml", part);
  }
  return file;
}

void write_configuration(const std::filesystem::path& directory, const std::string& text) {
  if (text.empty()) return;
  write_whole(free_configuration(directory), text);
}

}  // namespace

RunDirectories directories_of(const TrainerOptions& options) {
  const CheckpointOptions& checkpoints = options.checkpoints;
  require(checkpoints.every_rounds >= 0 && checkpoints.every_s >= 0, ErrorKind::argument,
          "Trainer: checkpoints every {} rounds or {} s; 0 or more are required",
          checkpoints.every_rounds, checkpoints.every_s);
  RunDirectories directories{options.out, std::nullopt, checkpoints.resume, options.overwrite};
  if (!saves(checkpoints)) return directories;
  require(checkpoints.directory || options.out, ErrorKind::argument,
          "Trainer: checkpoints without a directory; name one for them (--checkpoints) or for the "
          "run's output (--out)");
  directories.checkpoints =
      checkpoints.directory ? *checkpoints.directory : *options.out / "checkpoints";
  return directories;
}

namespace {

constexpr auto locking_directories = "Trainer: locking the run's directories";
constexpr auto opening_directories = "Trainer: opening the run's directories";
constexpr auto files_of_run = "Trainer: opening the run's files";

}  // namespace

RunFiles prepare_files(RunPlan& plan) {
  RunFiles files;
  WorkerOptions& worker = plan.options.worker;
  plan.has_observer = worker.observer != nullptr || plan.options.make_observer;
  const bool is_watched = mpi::launcher_watches();
  if (!plan.options.out && !is_watched) return files;
  files.log = std::make_shared<LogFile>(plan.options.log_level, worker.log);
  worker.log = [log = worker.log, file = files.log](LogLevel level, std::string_view text) {
    if (log) log(level, text);
    file->write(level, text);
  };
  files.metrics =
      std::make_shared<RunMetrics>(worker.log, [group = plan.group] { return group.has_seat(); });
  if (is_watched) files.metrics->notify_launcher();
  worker.observer =
      all_of({worker.observer, files.metrics, std::make_shared<LogObserver>(files.log)});
  return files;
}

void continue_files(const RunPlan& plan, RunFiles& files) {
  const RunDirectories directories = directories_of(plan.options);
  files.locks = locks_of(directories);
  if (directories.out) {
    files.log->open(*directories.out, plan.group.rank());
    files.metrics->open(*directories.out, plan.group.rank());
  }
  if (!directories.checkpoints) return;
  files.checkpoints =
      std::make_unique<CheckpointWriter>(writer_options(plan, *directories.checkpoints));
}

void attend_opening(const RunPlan& plan) {
  const Group everyone = plan.group.everyone();
  for (const auto* purpose : {locking_directories, opening_directories, files_of_run})
    agree(everyone, plan.deadline(), purpose, [] {});
}

void open_files(const RunPlan& plan, RunFiles& files) {
  const RunDirectories directories = directories_of(plan.options);
  const Group everyone = plan.group.everyone();
  const std::string fresh = draw_number(plan);
  agree(everyone, plan.deadline(), locking_directories, [&] {
    if (plan.group.rank() == 0) lock_alone(directories, files);
  });
  agree(everyone, plan.deadline(), opening_directories, [&] {
    if (plan.is_first_of_host()) claim_directories(directories, fresh);
  });
  agree(everyone, plan.deadline(), files_of_run, [&] {
    if (directories.out && plan.group.rank() == 0) {
      write_configuration(*directories.out, plan.options.configuration);
    }
    continue_files(plan, files);
  });
}

namespace {

constexpr Seconds patience_with_others{3};

/// The last line of the file, if it is short.
std::string last_line(const std::filesystem::path& file) {
  constexpr std::streamoff longest = 4096;
  std::ifstream in(file, std::ios::binary | std::ios::ate);
  const std::streamoff size = in.tellg();
  in.seekg(std::max<std::streamoff>(0, size - longest));
  std::string last;
  for (std::string line; std::getline(in, line);) last = line;
  return last;
}

/// Survivors of a loss end by themselves, each in its own time.
void await_last_lines(const std::filesystem::path& out, const std::vector<int>& workers) {
  const Deadline deadline(patience_with_others);
  for (const int worker : workers) {
    const std::filesystem::path file = out / metrics_directory / metrics_name(worker);
    while (!last_line(file).starts_with(R"({"kind":"end")") && !deadline.expired()) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    }
  }
}

void warn_of_omitted(const RunPlan& plan, const std::vector<std::filesystem::path>& files) {
  if (files.empty()) return;
  plan.log(
      LogLevel::warning,
      fmt::format("worker {}: {} lacks the lines of {}{}; it cannot be read", plan.group.rank(),
                  (*plan.options.out / merged_metrics_name).string(), files.front().string(),
                  files.size() == 1 ? "" : fmt::format(" and {} more", files.size() - 1)));
}

std::vector<int> workers_at_end(const RunPlan& plan, const Summary& summary) {
  std::vector<int> present;
  for (int worker = 0; worker < plan.group.size(); ++worker) {
    if (!contains(summary.lost, worker) && !contains(summary.left, worker))
      present.push_back(worker);
  }
  return present;
}

}  // namespace

void merge_files(const RunPlan& plan, const Summary& summary) {
  if (!plan.options.out) return;
  const bool together = summary.same_workers();
  const std::vector<int> present = workers_at_end(plan, summary);
  const bool merges = plan.group.rank() == present.front();
  try {
    if (together) plan.group.barrier(plan.deadline(), "Trainer: merging metrics");
    if (!together && merges) await_last_lines(*plan.options.out, present);
    if (merges) warn_of_omitted(plan, merge_metrics(*plan.options.out));
  } catch (const Error& error) {
    plan.log(LogLevel::warning, fmt::format("worker {}: {}; the metrics of each worker are whole",
                                            plan.group.rank(), error.what()));
  }
}

}  // namespace fast::train
