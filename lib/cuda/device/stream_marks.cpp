#include "cuda/device/stream_marks.hpp"

#include <unistd.h>

#include <atomic>

#include "core/leak_until_exit.hpp"
#include "cuda/device/await.hpp"
#include "cuda/device/runtime.hpp"

namespace fast::cuda {
namespace {

/// cuStreamWriteValue32(), in the version of CUDA 11.7: the word is written after all that the
/// stream has written before.
using WriteValue = int (*)(cudaStream_t stream, std::uintptr_t word, std::uint32_t value,
                           unsigned flags);
constexpr int looks_between_queries = 4096;  ///< for failed work, about every 0.3 s

}  // namespace

std::unique_ptr<StreamMarks> StreamMarks::make(const Stream& stream) {
  static void* const write = driver_function("cuStreamWriteValue32", 11070);
  if (write == nullptr) return nullptr;
  std::unique_ptr<StreamMarks> marks(new StreamMarks(stream, write));
  return marks->write(++marks->last_) == 0 ? std::move(marks) : nullptr;
}

StreamMarks::StreamMarks(const Stream& stream, void* write)
    : stream_(stream), write_(write), word_(sizeof(std::uint32_t)) {}

StreamMarks::~StreamMarks() {
  const bool is_here = getpid() == process_;  // a child of fork() cannot read such memory
  if (!is_here || !has_passed(last_)) leak_until_exit(std::move(word_));
}

int StreamMarks::write(std::uint32_t number) const {
  const UseDevice use(stream_.device());
  const auto word = reinterpret_cast<std::uintptr_t>(word_.data());
  return reinterpret_cast<WriteValue>(write_)(static_cast<cudaStream_t>(stream_.handle()), word,
                                              number, 0);
}

std::uint32_t StreamMarks::add() {
  // The driver's codes are the runtime's.
  check(static_cast<cudaError_t>(write(last_ + 1)), "giving a stream a word of host memory");
  return ++last_;
}

/// Numbers begin anew after 2^32 marks.
bool StreamMarks::has_passed(std::uint32_t number) const {
  const std::atomic_ref<std::uint32_t> word(*reinterpret_cast<std::uint32_t*>(word_.data()));
  return static_cast<std::int32_t>(word.load(std::memory_order_acquire) - number) >= 0;
}

void StreamMarks::await(std::uint32_t number, const Deadline& deadline) const {
  int looks = 0;
  cuda::await(deadline, "what a stream was given", stream_.device(), [&] {
    if (has_passed(number)) return true;
    if (++looks % looks_between_queries != 0) return false;
    const cudaError_t code = cudaStreamQuery(static_cast<cudaStream_t>(stream_.handle()));
    if (code == cudaErrorNotReady)
      cudaGetLastError();  // clear it: the next kernel did not fail
    else
      check(code, "what a stream was given");
    return false;
  });
}

}  // namespace fast::cuda
