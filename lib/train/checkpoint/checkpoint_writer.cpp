#include <algorithm>
#include <fast/core/deadline.hpp>
#include <fast/core/error.hpp>
#include <fast/mixing/kernels.hpp>

#include "core/contains.hpp"
#include "core/message.hpp"
#include "core/serial_executor.hpp"
#include "core/whole_file.hpp"
#include "train/checkpoint/checkpoint.hpp"
#include "train/checkpoint/manifest.hpp"

namespace fast::train {
namespace {

constexpr auto poll_period = std::chrono::milliseconds(20);

std::vector<WorkerFile> noted_files(const std::filesystem::path& directory, int workers) {
  std::vector<WorkerFile> shards;
  for (int worker = 0; worker < workers; ++worker) {
    const auto note = read_note(directory / note_name(worker));
    if (note && note->worker == worker) shards.push_back(*note);
  }
  return shards;
}

/// Writes the manifest of the files that are there. When several workers write it, the manifest
/// with the most files remains.
void write_manifest(const std::filesystem::path& directory, std::int64_t round, int workers) {
  std::size_t written = 0;
  for (auto shards = noted_files(directory, workers); shards.size() > written;
       shards = noted_files(directory, workers)) {
    written = shards.size();
    const std::string text = to_json(Manifest{directory, round, workers, std::move(shards)});
    write_durably(directory / manifest_name, {bytes_of(text)});
  }
}

/// Also false when the manifest cannot be read.
bool is_full(const std::filesystem::path& checkpoint) {
  try {
    const Manifest manifest = read_manifest(checkpoint);
    return manifest.shards.size() == static_cast<std::size_t>(manifest.workers);
  } catch (const Error&) {
    return false;
  }
}

/// Keeps the newest `keep` checkpoints and, if all of them are incomplete, the newest complete one.
void remove_old(const std::filesystem::path& directory, int keep) {
  int listed = 0;
  bool full = false;
  for (const auto& [round, path] : checkpoints_in(directory)) {
    std::error_code problem;
    const bool is_listed = std::filesystem::exists(path / manifest_name, problem);
    const bool is_newest_full = is_listed && !full && is_full(path);
    full = full || is_newest_full;
    if (listed >= keep && !is_newest_full) {
      remove_checkpoint(path);
    } else if (is_listed) {
      ++listed;
    }
  }
}

}  // namespace

/// A checkpoint is two tasks: one writes this worker's file, one waits for the others' files and
/// writes the manifest.
struct CheckpointWriter::Impl {
  struct Expected {
    int workers = 1;
    std::function<std::vector<int>()> absent;
    std::function<bool(std::int64_t)> is_void;
  };
  struct Job {
    std::int64_t round = 0;
    Expected expected;
    std::vector<TensorView> tensors;  ///< names, shapes and types; their memory is not read
    Metadata metadata;
    AlignedBuffer data;
    std::size_t size_bytes = 0;
  };

  struct Unlisted {
    std::int64_t round = 0;
    Expected expected;
    Deadline patience{Seconds(0)};
  };

  explicit Impl(Options given) : options(std::move(given)), expected{options.workers, {}, {}} {}

  void copy(const std::vector<TensorView>& tensors, const Metadata& metadata) {
    job.expected = expected;
    job.tensors = tensors;
    job.metadata = metadata;
    job.size_bytes = 0;
    for (const TensorView& tensor : tensors) job.size_bytes += tensor.size_bytes();
    if (job.data.size_bytes() < job.size_bytes) job.data = AlignedBuffer(job.size_bytes);
    std::byte* to = job.data.data();
    for (const TensorView& tensor : tensors) {
      const std::size_t bytes = tensor.size_bytes();
      mixing::stream_copy(to, tensor.data, bytes);
      to += bytes;
    }
    mixing::stream_fence();
  }

  std::filesystem::path directory_of(std::int64_t round) const {
    return options.directory / directory_name(round);
  }

  static bool is_void(const Expected& expected, std::int64_t round) {
    return expected.is_void && expected.is_void(round);
  }

  bool may_write() const { return !options.may_write || options.may_write(); }

  void write() {
    if (!may_write() || is_void(job.expected, job.round)) return;
    try {
      const std::filesystem::path directory = directory_of(job.round);
      std::filesystem::create_directories(directory);
      const std::string header = safetensors_header(job.tensors, job.metadata);
      const std::vector<Bytes> parts{bytes_of(header), {job.data.data(), job.size_bytes}};
      write_durably(directory / shard_name(options.rank), parts);
      const WorkerFile shard{options.rank, header.size() + job.size_bytes, hash_of(parts)};
      const std::string note = to_note(shard);
      write_durably(directory / note_name(options.rank), {bytes_of(note)});
      unlisted.push_back({job.round, job.expected, Deadline(Seconds(options.patience_s))});
      problem.clear();
    } catch (const std::exception& error) {
      if (!is_void(job.expected, job.round)) warn(job.round, message_of(error));
    }
  }

  /// Waits for all workers' files and writes the manifest. When the wait takes too long, the
  /// manifest lists the files that are there. While the next checkpoint is due, the wait pauses.
  void await_others() {
    if (unlisted.empty()) return;
    const std::int64_t newest = unlisted.back().round;
    do {
      std::erase_if(unlisted, [&](const Unlisted& one) { return list(one, one.round == newest); });
    } while (!unlisted.empty() && !executor.pause(poll_period));
  }

  /// False: files are missing still.
  bool list(const Unlisted& one, bool is_newest) {
    if (!may_write()) return true;
    const std::filesystem::path directory = directory_of(one.round);
    if (is_void(one.expected, one.round)) {
      drop(directory);
      return true;
    }
    try {
      const std::vector<WorkerFile> shards = noted_files(directory, one.expected.workers);
      if (shards.empty()) return true;  // removed: newer checkpoints are there
      if (!one.patience.expired() && is_awaited(one, shards)) return false;
      write_manifest(directory, one.round, one.expected.workers);
      sync_directory(options.directory);  // before older checkpoints are removed
      remove_old(options.directory, options.keep);
    } catch (const std::exception& error) {
      const std::string of_newest = problem;
      warn(one.round, message_of(error));
      if (!is_newest) problem = of_newest;
    }
    return true;
  }

  /// This worker's files, and with the last worker's the directory.
  void drop(const std::filesystem::path& directory) const {
    std::error_code ignored;
    std::filesystem::remove(directory / note_name(options.rank), ignored);
    std::filesystem::remove(directory / shard_name(options.rank), ignored);
    std::filesystem::remove(directory, ignored);
  }

  /// Whether a worker that is there has no file yet.
  static bool is_awaited(const Unlisted& one, const std::vector<WorkerFile>& shards) {
    const Expected& expected = one.expected;
    std::vector<int> there = expected.absent ? expected.absent() : std::vector<int>{};
    for (const WorkerFile& shard : shards) there.push_back(shard.worker);
    for (int worker = 0; worker < expected.workers; ++worker)
      if (!contains(there, worker)) return true;
    return false;
  }

  void warn(std::int64_t round, const std::string& what) {
    problem = what;
    if (!options.log) return;
    options.log(LogLevel::warning,
                fmt::format("worker {}: no checkpoint of round {}: {}; training goes on",
                            options.rank, round, what));
  }

  Options options;
  Expected expected;                      ///< of the next checkpoint
  std::uint64_t written = 0, listed = 0;  ///< the latest checkpoint's tasks
  // Used by the tasks until they are done:
  Job job;
  std::vector<Unlisted> unlisted;  ///< written and not in a manifest yet; in the order of rounds
  std::string problem;             ///< of the latest checkpoint
  SerialExecutor executor;         ///< declared last: its tasks end first
};

CheckpointWriter::CheckpointWriter(Options options) {
  std::error_code problem;
  std::filesystem::create_directories(options.directory, problem);
  require(!problem, ErrorKind::resource,
          "checkpoints: the directory {} cannot be made ({}); choose another",
          options.directory.string(), problem.message());
  require(options.keep >= 1, ErrorKind::argument,
          "checkpoints: {} shall be kept; at least 1 is needed", options.keep);
  impl_ = std::make_unique<Impl>(std::move(options));
}

CheckpointWriter::~CheckpointWriter() = default;

void CheckpointWriter::wait() { impl_->executor.wait(impl_->written); }

std::string CheckpointWriter::finish() {
  impl_->executor.wait(impl_->listed);
  return impl_->problem;
}

void CheckpointWriter::expect(int workers, std::function<std::vector<int>()> absent,
                              std::function<bool(std::int64_t)> is_void) {
  impl_->expected = {workers, std::move(absent), std::move(is_void)};
}

void CheckpointWriter::save(std::int64_t round, const std::vector<TensorView>& tensors,
                            const Metadata& metadata) {
  keep(tensors, metadata);
  save_kept(round);
}

void CheckpointWriter::keep(const std::vector<TensorView>& tensors, const Metadata& metadata) {
  wait();
  impl_->copy(tensors, metadata);
}

void CheckpointWriter::save_kept(std::int64_t round) {
  wait();
  impl_->job.round = round;
  impl_->written = impl_->executor.submit([this] { impl_->write(); });
  impl_->listed = impl_->executor.submit([this] { impl_->await_others(); });
}

}  // namespace fast::train
