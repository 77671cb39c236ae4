// Checkpoints: one safetensors file for each worker with everything that it needs to continue, and
// a manifest that is written last. Workers write without waiting for each other.
//
//   DIRECTORY/round-000000001200/worker-3.safetensors   a worker's file: whole or absent
//   DIRECTORY/round-000000001200/worker-3.json          its length and hash
//   DIRECTORY/round-000000001200/manifest.json          the list of these files
#pragma once

#include <fast/core/observer.hpp>
#include <fast/core/tensor_view.hpp>
#include <fast/train/safetensors.hpp>

#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace fast::train {

/// One worker's file in the manifest.
struct WorkerFile {
  int worker = 0;
  std::uint64_t size_bytes = 0;
  std::uint64_t hash = 0;  ///< XXH3, 64 bits
};

struct Manifest {
  std::filesystem::path directory;  ///< of the files
  std::int64_t round = 0;
  int workers = 0;
  std::vector<WorkerFile> shards;  ///< by worker; fewer than `workers` when some wrote no file

  std::filesystem::path file(int worker) const;
  const WorkerFile* shard(int worker) const;  ///< null when there is none
};

/// Reads the manifest.json of a directory. Throws Error(data) with the file and what is wrong.
Manifest read_manifest(const std::filesystem::path& directory);

/// `directory` is a checkpoint, or holds checkpoints. Of these the newest is taken: the highest
/// round whose manifest can be read. Throws Error(data) when there is none.
Manifest find_checkpoint(const std::filesystem::path& directory);

/// A worker's file. Throws Error(data) unless its length and hash are those of the manifest.
Safetensors read_shard(const Manifest& manifest, int worker);

/// Tensors and their memory.
struct OwnedTensors {
  std::vector<TensorView> views;
  std::vector<AlignedBuffer> memory;
};

/// The mean over some workers' files of the floating-point tensors whose names begin with `prefix`,
/// which is removed. Tensors of other types are the first file's. Files that cannot be read are
/// logged and left out. Throws Error(data) when none is left or the files do not fit each other.
OwnedTensors average_shards(const Manifest& manifest, const std::vector<int>& workers,
                            std::string_view prefix, const LogSink& log = {});

/// Prefixes of tensor names in a checkpoint: the replica's parameters and buffers, the optimizer's
/// state, and the moving average.
inline constexpr std::string_view model_prefix = "model.", optimizer_prefix = "optimizer.",
                                  ema_prefix = "ema.";

/// Writes one worker's files from a background thread.
class CheckpointWriter {
 public:
  struct Options {
    std::filesystem::path directory;
    int rank = 0;
    int workers = 1;
    /// So many newest checkpoints are kept. If all of them are incomplete, the newest complete one
    /// is kept too. Older ones are deleted.
    int keep = 2;
    /// How long to wait for the other workers' files. Then the manifest is written without them.
    double patience_s = 10;
    /// Asked before each file is written; false leaves it out. Called from the writer's thread. May
    /// be empty.
    std::function<bool()> may_write;
    LogSink log;  ///< called from the writer's thread
  };
  /// Creates the directory. Throws Error(resource) when that cannot be done.
  explicit CheckpointWriter(Options options);
  /// Waits until all has been written.
  ~CheckpointWriter();
  CheckpointWriter(const CheckpointWriter&) = delete;
  CheckpointWriter& operator=(const CheckpointWriter&) = delete;

  /// Copies the tensors' memory and returns; the thread writes the copy. Waits first until an
  /// earlier copy is on disk. When the copy cannot be written (a full disk), there is a warning,
  /// and older checkpoints stay as they are.
  void save(std::int64_t round, const std::vector<TensorView>& tensors, const Metadata& metadata);

  /// The two parts of save(): the latest copy can be written again, in another round.
  void keep(const std::vector<TensorView>& tensors, const Metadata& metadata);
  void save_kept(std::int64_t round);

  /// The run has so many workers from the next checkpoint on. Files of workers in absent() are not
  /// waited for. A checkpoint of a round for which is_void() becomes true before its manifest is
  /// written is dropped. Both are called from the writer's thread.
  void expect(int workers, std::function<std::vector<int>()> absent,
              std::function<bool(std::int64_t round)> is_void = {});

  /// Waits until all has been written.
  void wait();
  /// Waits until the latest checkpoint has a manifest. Returns why it has none; empty: it has one.
  std::string finish();

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fast::train
