#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <fast/cuda/device.hpp>
#include <fast/cuda/kernels.hpp>
#include <fast/cuda/memory.hpp>
#include <vector>

#include "support/catch.hpp"

using namespace fast;

namespace {
const Seconds limit{30};
}

TEST_CASE("device memory starts as zeros, and copies come back whole") {
  const cuda::Stream stream;
  const cuda::DeviceBuffer buffer(1000 * sizeof(int));
  std::vector<int> values(1000, 7), back(1000, 7);
  cuda::copy(back.data(), buffer.data(), buffer.size_bytes(), stream);
  stream.synchronize(Deadline(limit));
  CHECK(back == std::vector<int>(1000, 0));
  for (int i = 0; i < 1000; ++i) values[static_cast<std::size_t>(i)] = i;
  cuda::copy(buffer.data(), values.data(), buffer.size_bytes(), stream);
  cuda::copy(back.data(), buffer.data(), buffer.size_bytes(), stream);
  stream.synchronize(Deadline(limit));
  CHECK(back == values);
}

TEST_CASE("a stream that waits for an event sees what was done before it") {
  const cuda::Stream writer, reader;
  cuda::Event written;
  CHECK(written.done());
  const std::size_t bytes = std::size_t{64} << 20;
  const cuda::PinnedBuffer from(bytes), to(bytes);
  const cuda::DeviceBuffer on_device(bytes);
  for (int round = 1; round <= 3; ++round) {
    std::fill_n(from.data(), bytes, static_cast<std::byte>(round));
    cuda::copy(on_device.data(), from.data(), bytes, writer);
    written.record(writer);
    reader.wait_for(written);
    cuda::copy(to.data(), on_device.data(), bytes, reader);
    reader.synchronize(Deadline(limit));
    CHECK(written.done());
    CHECK(std::equal(to.data(), to.data() + bytes, from.data()));
  }
}

TEST_CASE("memory that is there already is pinned once and released") {
  const AlignedBuffer memory(1 << 20);
  const cuda::Stream stream;
  const cuda::DeviceBuffer buffer(1 << 20);
  for (int turn = 0; turn < 2; ++turn) {
    const cuda::PinnedRange pinned(memory.as<std::byte>());
    { const cuda::PinnedRange again(memory.as<std::byte>()); }
    cuda::copy(memory.data(), buffer.data(), memory.size_bytes(), stream);
    CHECK_NOTHROW(stream.synchronize(Deadline(limit)));
  }
}

TEST_CASE("more memory than there is fails with the size and what to do") {
  const std::size_t too_much = cuda::device(0).memory_bytes * 2;
  CHECK_THROWS_WITH(cuda::DeviceBuffer(too_much), ContainsSubstring(std::to_string(too_much)) &&
                                                      ContainsSubstring("smaller batches"));
  CHECK_NOTHROW(cuda::DeviceBuffer(1024));
}

TEST_CASE("a kernel is not blamed for an earlier call's failure, or for work still under way") {
  const std::size_t bytes = std::size_t{64} << 20;
  const cuda::Stream stream;
  const cuda::PinnedBuffer host(bytes);
  const cuda::DeviceBuffer own(bytes), next(bytes);
  const auto count = bytes / sizeof(float);
  const cuda::Average<float, float> work{
      nullptr, next.as<float>().data(), own.as<float>().data(), {}, {}, count};
  CHECK_THROWS_AS(cuda::DeviceBuffer(cuda::device(0).memory_bytes * 2), Error);
  CHECK_NOTHROW(cuda::average(work, stream));
  for (int round = 0; round < 3; ++round) {
    cuda::copy(own.data(), host.data(), bytes, stream);
    CHECK_NOTHROW(stream.synchronize(Deadline(limit)));  // which looks until it is done
    CHECK_NOTHROW(cuda::average(work, stream));
  }
  CHECK_NOTHROW(stream.synchronize(Deadline(limit)));
}
