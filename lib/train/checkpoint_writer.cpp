#include <algorithm>
#include <condition_variable>
#include <fast/core/deadline.hpp>
#include <fast/core/error.hpp>
#include <fast/mixing/kernels.hpp>
#include <fast/train/checkpoint.hpp>
#include <fstream>
#include <mutex>
#include <thread>

#include "train/durable_file.hpp"
#include "train/manifest.hpp"

namespace fast::train {
namespace {

constexpr auto poll_period = std::chrono::milliseconds(20);

std::vector<Shard> noted_shards(const std::filesystem::path& directory, int workers) {
  std::vector<Shard> shards;
  for (int worker = 0; worker < workers; ++worker) {
    const auto note = read_note(directory / note_name(worker));
    if (note && note->worker == worker) shards.push_back(*note);
  }
  return shards;
}

/// The manifest of all files there are. When others write it meanwhile, the fullest one stays.
void write_manifest(const std::filesystem::path& directory, std::int64_t round, int workers) {
  std::size_t written = 0;
  for (auto shards = noted_shards(directory, workers); shards.size() > written;
       shards = noted_shards(directory, workers)) {
    written = shards.size();
    const std::string text = to_json(Manifest{directory, round, workers, std::move(shards)});
    write_durably(directory / manifest_name, {bytes_of(text)});
  }
}

/// False too where the manifest cannot be read.
bool is_full(const std::filesystem::path& checkpoint) {
  try {
    const Manifest manifest = read_manifest(checkpoint);
    return manifest.shards.size() == static_cast<std::size_t>(manifest.workers);
  } catch (const Error&) {
    return false;
  }
}

/// The newest `keep` stay and, where all of those lack workers, the newest one that lacks none.
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

struct CheckpointWriter::Impl {
  struct Job {
    std::int64_t round = 0;
    std::vector<TensorView> tensors;  ///< what they are; their memory is not looked at
    Metadata metadata;
    AlignedBuffer data;
    std::size_t size_bytes = 0;
  };

  explicit Impl(Options given) : options(std::move(given)), thread([this] { run(); }) {}

  void run() {
    std::unique_lock lock(mutex);
    for (;;) {
      changed.wait(lock, [&] { return pending || quit; });
      if (!pending) return;
      lock.unlock();
      write();
      lock.lock();
      pending = false;
      changed.notify_all();
      await_others(lock);
    }
  }

  void write() {
    try {
      const std::filesystem::path directory = options.directory / directory_name(job.round);
      std::filesystem::create_directories(directory);
      const std::string header = safetensors_header(job.tensors, job.metadata);
      const std::vector<Bytes> parts{bytes_of(header), {job.data.data(), job.size_bytes}};
      write_durably(directory / shard_name(options.rank), parts);
      const Shard shard{options.rank, header.size() + job.size_bytes, hash_of(parts)};
      const std::string note = to_note(shard);
      write_durably(directory / note_name(options.rank), {bytes_of(note)});
      const std::lock_guard lock(mutex);
      unlisted = job.round;
      problem.clear();
    } catch (const std::exception& error) {
      warn(error.what());
    }
  }

  /// Ends with a manifest: a full one, or, when others do not come or the next checkpoint does, one
  /// of what there is.
  void await_others(std::unique_lock<std::mutex>& lock) {
    const Deadline deadline{Seconds(options.patience_s)};
    while (unlisted) {
      lock.unlock();
      const bool done = list(deadline.expired() || impatient);
      lock.lock();
      if (done) {
        unlisted.reset();
        changed.notify_all();
      }
      if (unlisted) impatient = changed.wait_for(lock, poll_period, [&] { return pending; });
    }
    impatient = false;
  }

  bool list(bool as_it_is) {
    const std::filesystem::path directory = options.directory / directory_name(*unlisted);
    try {
      const std::size_t shards = noted_shards(directory, options.workers).size();
      if (shards == 0) return true;  // removed meanwhile: newer ones are there
      if (shards < static_cast<std::size_t>(options.workers) && !as_it_is) return false;
      write_manifest(directory, *unlisted, options.workers);
      sync_directory(options.directory);  // the new one's name, before older ones go
      remove_old(options.directory, options.keep);
    } catch (const std::exception& error) {
      warn(error.what());
    }
    return true;
  }

  void note_problem(const std::string& what) {
    const std::lock_guard lock(mutex);
    problem = what;
  }

  void warn(const char* what) {
    note_problem(what);
    if (options.log) {
      options.log(LogLevel::warning,
                  fmt::format("worker {}: no checkpoint of round {}: {}; training goes on",
                              options.rank, job.round, what));
    }
  }

  Options options;
  std::mutex mutex;  ///< guards what follows up to problem; the job while it is not pending
  std::condition_variable changed;
  bool pending = false, quit = false, impatient = false;
  Job job;
  std::string problem;                   ///< of the latest checkpoint
  std::optional<std::int64_t> unlisted;  ///< round written and not in a manifest yet
  std::thread thread;
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

CheckpointWriter::~CheckpointWriter() {
  {
    const std::lock_guard lock(impl_->mutex);
    impl_->quit = true;
  }
  impl_->changed.notify_all();
  impl_->thread.join();
}

void CheckpointWriter::wait() {
  std::unique_lock lock(impl_->mutex);
  impl_->changed.wait(lock, [&] { return !impl_->pending; });
}

std::string CheckpointWriter::finish() {
  std::unique_lock lock(impl_->mutex);
  impl_->changed.wait(lock, [&] { return !impl_->pending && !impl_->unlisted; });
  return impl_->problem;
}

void CheckpointWriter::save(std::int64_t round, const std::vector<TensorView>& tensors,
                            const Metadata& metadata) {
  std::unique_lock lock(impl_->mutex);
  impl_->changed.wait(lock, [&] { return !impl_->pending; });
  Impl::Job& job = impl_->job;
  job.round = round;
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
  impl_->pending = true;
  lock.unlock();
  impl_->changed.notify_all();
}

}  // namespace fast::train
