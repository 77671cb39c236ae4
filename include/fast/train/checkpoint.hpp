// Checkpoints: what every worker needs to go on, in one safetensors file a worker, and a manifest
// that is written last. Workers write without waiting for each other.
//
//   DIRECTORY/round-000000001200/worker-3.safetensors   each worker's: whole or not there
//   DIRECTORY/round-000000001200/worker-3.json          its length and hash
//   DIRECTORY/round-000000001200/manifest.json          which of them there are
#pragma once

#include <fast/core/log.hpp>
#include <fast/core/tensor_view.hpp>
#include <fast/train/safetensors.hpp>

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace fast::train {

/// One worker's file as the manifest knows it.
struct Shard {
  int worker = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t hash = 0;  ///< XXH3, 64 bits
};

struct Manifest {
  std::filesystem::path directory;  ///< of the files
  std::int64_t round = 0;
  int workers = 0;
  std::vector<Shard> shards;  ///< by worker; fewer than `workers` when some did not write theirs

  std::filesystem::path file(int worker) const;
  const Shard* shard(int worker) const;  ///< null when there is none
};

/// Of a directory with a manifest.json. Throws Error(data), naming the file and what is wrong.
Manifest read_manifest(const std::filesystem::path& directory);

/// A checkpoint's directory itself, or the newest checkpoint in a directory of them: of those with
/// a manifest that can be read, the one of the highest round. Throws Error(data) when there is
/// none.
Manifest find_checkpoint(const std::filesystem::path& directory);

/// A worker's file, compared with the manifest's length and hash. Throws Error(data).
Safetensors read_shard(const Manifest& manifest, int worker);

/// Tensors and their memory.
struct OwnedTensors {
  std::vector<TensorView> views;
  std::vector<AlignedBuffer> memory;
};

/// The mean over some workers' files of the floating-point tensors called `prefix`..., without the
/// prefix; other types are the first file's. Files that cannot be read are told to `log` and left
/// out. Throws Error(data) when none is left or they do not fit each other.
OwnedTensors average_shards(const Manifest& manifest, const std::vector<int>& workers,
                            std::string_view prefix, const LogSink& log = {});

/// What tensors of a checkpoint are called: the replica's parameters and buffers, its optimizer's
/// state, what Worker::state() tells.
inline constexpr std::string_view model_prefix = "model.", optimizer_prefix = "optimizer.",
                                  worker_prefix = "worker.";

/// Writes one worker's files from a thread of its own.
class CheckpointWriter {
 public:
  struct Options {
    std::filesystem::path directory;
    int rank = 0;
    int workers = 1;
    /// So many newest checkpoints stay and, where workers are missing in all of those, the newest
    /// one that lacks none; the rest is deleted.
    int keep = 2;
    /// How long to wait for the other workers' files before a manifest without them is written.
    double patience_s = 10;
    LogSink log;  ///< called from the writer's thread
  };
  /// Creates the directory. Throws Error(resource) when that cannot be done.
  explicit CheckpointWriter(Options options);
  /// Waits until all has been written.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Copies the tensors' memory and returns; they are written meanwhile. Waits for the copy of an
  /// earlier checkpoint to be on disk first. What cannot be written (a full disk) is told to the
  /// log; older checkpoints stay as they are.
  void save(std::int64_t round, const std::vector<TensorView>& tensors, const Metadata& metadata);

  /// Waits until all has been written.
  void wait();
  /// Waits until the latest checkpoint is in a manifest, too. Returns why it is not; empty: it is.
  std::string finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fast::train
