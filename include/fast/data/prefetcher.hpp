// Batches made ahead of their use, beside the training that uses them.
#pragma once

#include <fast/core/batch.hpp>
#include <fast/core/deadline.hpp>
#include <fast/data/loader.hpp>

#include <cstddef>
#include <memory>
#include <vector>

namespace fast::data {

struct PrefetchOptions {
  std::size_t ahead = 2;                     ///< batches; 0: each is made when it is asked for
  std::shared_ptr<BatchMemory> memory = {};  ///< that batches are made in; null: the host's own
  Seconds deadline = Seconds(300);           ///< longest wait for one
};

/// A Loader whose next batches a thread of its own makes while the last one is used: the same
/// batches in the same order. Asked for another than the next it begins there anew. A failure while
/// a batch is made is thrown by the batch() that asks for it. One thread uses a prefetcher; its end
/// waits for the batch in the making.
class Prefetcher {
 public:
  explicit Prefetcher(Loader loader, PrefetchOptions options = {});
  Prefetcher(Prefetcher&&) noexcept;
  Prefetcher& operator=(Prefetcher&&) noexcept;
  ~Prefetcher();

  std::size_t rounds() const;

  /// Returns what Loader::batch() returns. It is valid until the next batch is asked for. Throws
  /// what Loader and BatchMemory throw, and Error(deadline).
  const Batch& batch(std::size_t epoch, std::size_t round);

  /// Does what Loader::own() does. Batches that were made ahead are made anew.
  void own(std::vector<std::size_t> samples);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace fast::data
