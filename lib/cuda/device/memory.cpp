#include <cstring>
#include <fast/core/error.hpp>
#include <fast/cuda/device.hpp>
#include <fast/cuda/memory.hpp>

#include "cuda/device/runtime.hpp"

namespace fast::cuda {

namespace {

void* make_device(std::size_t size_bytes, int device) {
  const UseDevice use(cuda::device(device).index);
  if (size_bytes == 0) return nullptr;
  void* made = nullptr;
  check(cudaMalloc(&made, size_bytes),
        fmt::format("cudaMalloc of {} bytes on device {}", size_bytes, device));
  Handle<free_device> owner(made);
  // Not on the legacy stream, which would wait for streams that the program may be capturing.
  check(cudaMemsetAsync(made, 0, size_bytes, cudaStreamPerThread), "cudaMemsetAsync");
  check(cudaStreamSynchronize(cudaStreamPerThread), "cudaMemsetAsync");
  return owner.release();
}

void* make_pinned(std::size_t size_bytes) {
  devices();
  if (size_bytes == 0) return nullptr;
  const UseDevice use(device_in_use());
  void* made = nullptr;
  check(cudaHostAlloc(&made, size_bytes, cudaHostAllocPortable),
        fmt::format("cudaHostAlloc of {} bytes", size_bytes));
  return std::memset(made, 0, size_bytes);
}

}  // namespace

void free_device(void* memory) { cudaFree(memory); }
void free_pinned(void* memory) { cudaFreeHost(memory); }
void unpin(void* memory) { cudaHostUnregister(memory); }

DeviceBuffer::DeviceBuffer(std::size_t size_bytes, int device)
    : Buffer(make_device(size_bytes, device), size_bytes) {}

PinnedBuffer::PinnedBuffer(std::size_t size_bytes) : Buffer(make_pinned(size_bytes), size_bytes) {}

PinnedRange::PinnedRange(std::span<std::byte> memory) {
  devices();
  if (memory.empty()) return;
  const UseDevice use(device_in_use());
  const cudaError_t code = cudaHostRegister(memory.data(), memory.size(), cudaHostRegisterPortable);
  if (code == cudaErrorHostMemoryAlreadyRegistered) {
    cudaGetLastError();  // clear it
    return;
  }
  check(code, fmt::format("cudaHostRegister of {} bytes", memory.size()));
  memory_.reset(memory.data());
}

void copy(void* to, const void* from, std::size_t size_bytes, const Stream& stream) {
  if (size_bytes == 0) return;
  const UseDevice use(stream.device());
  check(cudaMemcpyAsync(to, from, size_bytes, cudaMemcpyDefault,
                        static_cast<cudaStream_t>(stream.handle())),
        fmt::format("cudaMemcpyAsync of {} bytes", size_bytes));
}

}  // namespace fast::cuda
