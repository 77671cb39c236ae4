#include <fast/core/error.hpp>
#include <fast/cuda/device.hpp>
#include <fast/cuda/stream.hpp>

#include "cuda/device/await.hpp"
#include "cuda/device/runtime.hpp"

namespace fast::cuda {
namespace {

cudaStream_t of(const Stream& stream) { return static_cast<cudaStream_t>(stream.handle()); }
cudaEvent_t of(const Event& event) { return static_cast<cudaEvent_t>(event.handle()); }

bool finished(cudaError_t code, std::string_view operation) {
  if (code == cudaErrorNotReady) {
    cudaGetLastError();  // clear it: the next kernel did not fail
    return false;
  }
  check(code, operation);
  return true;
}

void* make_stream(int device) {
  const UseDevice use(cuda::device(device).index);
  cudaStream_t made = nullptr;
  check(cudaStreamCreateWithFlags(&made, cudaStreamNonBlocking), "cudaStreamCreate");
  return made;
}

void* make_event(int device) {
  const UseDevice use(cuda::device(device).index);
  cudaEvent_t made = nullptr;
  check(cudaEventCreateWithFlags(&made, cudaEventDisableTiming), "cudaEventCreate");
  return made;
}

}  // namespace

void destroy_stream(void* stream) { cudaStreamDestroy(static_cast<cudaStream_t>(stream)); }
void destroy_event(void* event) { cudaEventDestroy(static_cast<cudaEvent_t>(event)); }

Stream::Stream(int device) : DeviceHandle(make_stream(device), device) {}

void Stream::wait_for(const Event& event) const {
  const UseDevice use(device());
  check(cudaStreamWaitEvent(of(*this), of(event), 0), "cudaStreamWaitEvent");
}

void Stream::synchronize(const Deadline& deadline) const {
  await(deadline, "a stream", device(),
        [&] { return finished(cudaStreamQuery(of(*this)), "what a stream was given"); });
}

Event::Event(int device) : DeviceHandle(make_event(device), device) {}

void Event::record(const Stream& stream) {
  require(stream.device() == device(), ErrorKind::argument,
          "cuda: an event of device {} recorded on a stream of device {}; make it there", device(),
          stream.device());
  const UseDevice use(device());
  check(cudaEventRecord(of(*this), of(stream)), "cudaEventRecord");
}

bool Event::done() const { return finished(cudaEventQuery(of(*this)), "what an event waited for"); }

void Event::synchronize(const Deadline& deadline) const {
  await(deadline, "an event", device(), [&] { return done(); });
}

}  // namespace fast::cuda
