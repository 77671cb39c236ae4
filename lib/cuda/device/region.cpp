#include "cuda/device/region.hpp"

#include <algorithm>
#include <cstring>
#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <fast/cuda/device.hpp>
#include <fast/cuda/kernels.hpp>
#include <fast/cuda/memory.hpp>
#include <fast/exchange/group.hpp>
#include <functional>
#include <map>
#include <mutex>
#include <random>

#include "cuda/device/runtime.hpp"
#include "cuda/device/stream_marks.hpp"

namespace fast::cuda {
namespace {

constexpr std::size_t ipc_block_bytes = std::size_t{2} << 20;
constexpr std::size_t proof_count = 1024;  // floats that identify the memory of a worker

float proof_value(int rank, std::size_t place) {
  return static_cast<float>((rank + 1) * 4096 + static_cast<int>(place));
}

/// The same for all threads of a process. The process number is not enough, since containers of one
/// host may have equal numbers.
std::uint64_t process_token() {
  static const std::uint64_t token = [] {
    std::random_device device;
    return std::uint64_t{device()} << 32 | device();
  }();
  return token;
}

/// What a worker sends to the others about its part.
struct Card {
  std::uint64_t process = 0;
  std::uint64_t address = 0;
  std::int32_t device = 0, has_handle = 0;
  cudaIpcMemHandle_t handle{};
};

constexpr Seconds longest_farewell{2};

/// The memory of this worker. Its mappings of the others' keep it.
struct Owner {
  int device;
  Departures departures;
  std::unique_ptr<DeviceBuffer> own{};
  ~Owner() {
    if (!departures.leave(longest_farewell)) static_cast<void>(own.release());
  }
};

/// Ends a mapping.
struct Unmap {
  std::shared_ptr<Owner> owner;
  void operator()(std::byte* address) const noexcept {
    try {
      const UseDevice use(owner->device);
      cudaIpcCloseMemHandle(address);
    } catch (const Error&) {
      cudaIpcCloseMemHandle(address);
    }
  }
};

class Sharing {
 public:
  Sharing(const Group& group, std::size_t bytes, int device, const Deadline& deadline)
      : group_(group),
        deadline_(deadline),
        owner_(std::make_shared<Owner>(device, Departures(group, deadline))) {
    agree(group, deadline, "sharing device memory", [&] { prepare(bytes); });
  }

  DeviceRegion run() {
    const auto size = static_cast<std::size_t>(group_.size());
    region_.parts.resize(size);
    region_.why_not.resize(size);
    const auto cards = group_.all_gather({reinterpret_cast<const char*>(&card_), sizeof card_},
                                         deadline_, "sharing device memory");
    for (int rank = 0; rank < group_.size(); ++rank) {
      Card card;
      std::memcpy(&card, cards[static_cast<std::size_t>(rank)].data(), sizeof card);
      map(rank, card);
    }
    // No worker clears memory that others still read, or uses memory that its owner still clears.
    group_.barrier(deadline_, "proving shared device memory");
    agree(group_, deadline_, "clearing shared device memory", [&] { clear(); });
    region_.rank = group_.rank();
    region_.owner = owner_;
    return std::move(region_);
  }

 private:
  void prepare(std::size_t bytes) {
    stream_ = std::make_unique<Stream>(owner_->device);
    // CUDA IPC shares whole blocks, and shorter allocations have a block in common.
    region_.part_bytes = round_up(std::max(bytes, proof_count * sizeof(float)), ipc_block_bytes);
    owner_->own = std::make_unique<DeviceBuffer>(region_.part_bytes, owner_->device);
    scratch_ = DeviceBuffer(2 * proof_count * sizeof(float), owner_->device);
    std::vector<float> proof(proof_count);
    for (std::size_t e = 0; e < proof_count; ++e) proof[e] = proof_value(group_.rank(), e);
    copy(owner_->own->data(), proof.data(), proof_count * sizeof(float), *stream_);
    stream_->synchronize(deadline_);
    card_.process = process_token();
    card_.address = reinterpret_cast<std::uint64_t>(owner_->own->data());
    card_.device = owner_->device;
    const UseDevice use(owner_->device);
    card_.has_handle = cudaIpcGetMemHandle(&card_.handle, owner_->own->data()) == cudaSuccess;
    cudaGetLastError();
  }

  void map(int rank, const Card& card) {
    std::string& why_not = region_.why_not[static_cast<std::size_t>(rank)];
    try {
      std::shared_ptr<std::byte> part = part_of(rank, card);
      prove(rank, part.get());
      region_.parts[static_cast<std::size_t>(rank)] = std::move(part);
    } catch (const Error& error) {
      why_not = error.what();
    }
  }

  std::shared_ptr<std::byte> part_of(int rank, const Card& card) {
    const std::vector<int> hosts = group_.hosts();
    require(hosts[static_cast<std::size_t>(rank)] == hosts[static_cast<std::size_t>(group_.rank())],
            ErrorKind::resource,
            "cuda: worker {} is on another host, whose device memory cannot be mapped; take the "
            "staged exchange",
            rank);
    const UseDevice use(owner_->device);
    if (card.process == process_token()) {
      if (card.device != owner_->device) enable_peer(card.device);
      return {owner_, reinterpret_cast<std::byte*>(card.address)};
    }
    require(card.has_handle != 0, ErrorKind::resource,
            "cuda: worker {}'s device gives no handle for CUDA IPC; take the staged exchange",
            rank);
    void* address = nullptr;
    check(cudaIpcOpenMemHandle(&address, card.handle, cudaIpcMemLazyEnablePeerAccess),
          fmt::format("mapping the device memory of worker {}", rank));
    return {static_cast<std::byte*>(address), Unmap{owner_}};
  }

  void enable_peer(int device) const {
    const cudaError_t code = cudaDeviceEnablePeerAccess(device, 0);
    cudaGetLastError();
    if (code != cudaErrorPeerAccessAlreadyEnabled)
      check(code, fmt::format("letting device {} read device {}", owner_->device, device));
  }

  /// A kernel of this device reads the values of the owner: 0 + 1·(value - 0).
  void prove(int rank, const std::byte* part) {
    float* zeros = scratch_.as<float>().data();
    float* out = zeros + proof_count;
    const float* const values[] = {reinterpret_cast<const float*>(part)};
    const float one[] = {1};
    average(Average<float, float>{nullptr, out, zeros, values, one, proof_count}, *stream_);
    std::vector<float> found(proof_count);
    copy(found.data(), out, proof_count * sizeof(float), *stream_);
    stream_->synchronize(deadline_);
    for (std::size_t e = 0; e < proof_count; ++e) {
      require(found[e] == proof_value(rank, e), ErrorKind::resource,
              "cuda: value {} read from the device memory of worker {} is {}, {} was written; take "
              "the staged exchange",
              e, rank, found[e], proof_value(rank, e));
    }
  }

  void clear() {
    const std::vector<float> zeros(proof_count);
    copy(owner_->own->data(), zeros.data(), proof_count * sizeof(float), *stream_);
    stream_->synchronize(deadline_);
  }

  const Group& group_;
  const Deadline& deadline_;
  std::shared_ptr<Owner> owner_;
  std::unique_ptr<Stream> stream_;
  DeviceBuffer scratch_;
  Card card_;
  DeviceRegion region_;
};

}  // namespace

DeviceRegion share_memory(const Group& group, std::size_t bytes_per_worker, int device,
                          const Deadline& deadline) {
  return Sharing(group, bytes_per_worker, device, deadline).run();
}

namespace {

/// Copies of memory that cannot be pinned work too, but are slower.
std::shared_ptr<PinnedRange> pinned(std::span<const std::byte> memory) {
  try {
    return std::make_shared<PinnedRange>(
        std::span(const_cast<std::byte*>(memory.data()), memory.size()));
  } catch (const Error&) {
    return nullptr;
  }
}

/// Threads of one process copy from the slots of each other. The slots stay pinned until the last
/// thread releases them.
std::shared_ptr<void> pinned_together(std::span<const std::byte> memory) {
  static std::mutex mutex;
  static std::map<const std::byte*, std::weak_ptr<PinnedRange>> ranges;
  const std::lock_guard lock(mutex);
  std::erase_if(ranges, [](const auto& range) { return range.second.expired(); });
  std::weak_ptr<PinnedRange>& range = ranges[memory.data()];
  std::shared_ptr<PinnedRange> held = range.lock();
  if (!held) {
    held = pinned(memory);
    range = held;
  }
  return held;
}

class StreamWork final : public DeviceWork, public std::enable_shared_from_this<StreamWork> {
 public:
  StreamWork(const Stream& stream, Seconds deadline)
      : DeviceWork(deadline), stream_(stream), marks_(StreamMarks::make(stream_)) {}
  /// Uses a new stream.
  StreamWork(std::unique_ptr<Stream> own, Seconds deadline)
      : DeviceWork(deadline),
        own_(std::move(own)),
        stream_(*own_),
        marks_(StreamMarks::make(stream_)) {}

  std::shared_ptr<std::byte> make_memory(std::size_t size_bytes) override {
    auto buffer = std::make_shared<DeviceBuffer>(size_bytes, stream_.device());
    return {buffer, buffer->data()};
  }
  std::shared_ptr<std::byte> make_host_memory(std::size_t size_bytes) override {
    auto buffer = std::make_shared<PinnedBuffer>(size_bytes);
    return {buffer, buffer->data()};
  }
  void copy(std::byte* to, const std::byte* from, std::size_t size_bytes) override {
    cuda::copy(to, from, size_bytes, stream_);
  }
  std::shared_ptr<void> pin(std::span<const std::byte> memory) override {
    return pinned_together(memory);
  }
  std::function<void(const Deadline&)> make_mark() override {
    if (marks_) {
      return [self = shared_from_this(), number = marks_->add()](const Deadline& deadline) {
        self->marks_->await(number, deadline);
      };
    }
    const auto mark = std::make_shared<Event>(stream_.device());
    mark->record(stream_);
    return [mark](const Deadline& deadline) { mark->synchronize(deadline); };
  }
  std::shared_ptr<DeviceWork> beside() override {
    return std::make_shared<StreamWork>(std::make_unique<Stream>(stream_.device()), deadline());
  }
  /// In the default mode, a query or an allocation of this thread would end a capture of another
  /// one, which PyTorch makes in mode "global".
  void begin_thread() override {
    cudaStreamCaptureMode mode = cudaStreamCaptureModeRelaxed;
    check(cudaThreadExchangeStreamCaptureMode(&mode), "cudaThreadExchangeStreamCaptureMode");
  }

 private:
  std::unique_ptr<Stream> own_;
  const Stream& stream_;
  std::unique_ptr<StreamMarks> marks_;  ///< null: events mark
};

}  // namespace

std::shared_ptr<DeviceWork> work_of(const Stream& stream, Seconds deadline) {
  return std::make_shared<StreamWork>(stream, deadline);
}

}  // namespace fast::cuda
