#include <fast/core/error.hpp>
#include <fast/cuda/device.hpp>
#include <fast/cuda/stream.hpp>
#include <thread>

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

/// Most waits are short. The thread first yields, then sleeps for short times.
template <class Done>
void await(const Deadline& deadline, std::string_view what, int device, const Done& done) {
  for (int look = 0; !done(); ++look) {
    require(!deadline.expired(), ErrorKind::deadline,
            "cuda: {} of device {} is not done after {:.1f} s, the limit; see whether a kernel "
            "hangs, or raise the deadline",
            what, device, deadline.limit_s());
    if (look < 1000)
      std::this_thread::yield();
    else
      std::this_thread::sleep_for(std::chrono::microseconds(20));
  }
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
