// Marks in the work of a stream that a thread waits for without calls of CUDA.
#pragma once

#include <unistd.h>

#include <cstdint>
#include <fast/core/deadline.hpp>
#include <fast/cuda/memory.hpp>
#include <fast/cuda/stream.hpp>
#include <memory>

namespace fast::cuda {

/// A stream counts its marks in a word of pinned host memory. A query of an event would take a lock
/// of the driver, for which the program's thread waits when it launches kernels.
class StreamMarks {
 public:
  /// The stream must outlive it. Null if the driver has no function for such words.
  static std::unique_ptr<StreamMarks> make(const Stream& stream);
  StreamMarks(const StreamMarks&) = delete;
  StreamMarks& operator=(const StreamMarks&) = delete;
  /// The word is kept until the process ends if the stream has yet to write to it.
  ~StreamMarks();

  /// Enqueues a mark. Returns its number.
  std::uint32_t add();
  /// Blocks until the stream has come to that mark, on any thread. Throws Error(resource) if a work
  /// of the stream has failed, and Error(deadline).
  void await(std::uint32_t number, const Deadline& deadline) const;

 private:
  StreamMarks(const Stream& stream, void* write);
  int write(std::uint32_t number) const;
  bool has_passed(std::uint32_t number) const;

  const Stream& stream_;
  void* write_;  ///< cuStreamWriteValue32
  PinnedBuffer word_;
  std::uint32_t last_ = 0;
  int process_ = getpid();
};

}  // namespace fast::cuda
