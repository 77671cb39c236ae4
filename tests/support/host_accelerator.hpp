// A device that is the host: its works are the kernels' own bodies, done place by place, the last
// first, and only when they are waited for. Nobody else may touch its memory: that ends the
// program.
#pragma once

#include <sys/mman.h>

#include <atomic>
#include <cstring>
#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <functional>
#include <mutex>
#include <vector>

#include "combine/accelerator.hpp"
#include "cuda/averaging/average_elements.hpp"
#include "cuda/averaging/rule_elements.hpp"

namespace fast::testing {

/// A device's memory, which one thread at a time may touch.
class HostDeviceMemory {
 public:
  /// Settled works beside the accelerator's own.
  std::atomic<int> settled_beside{0};

  /// `open`: MPI, too, touches it when it likes.
  explicit HostDeviceMemory(std::size_t size_bytes, bool open)
      : size_(round_up(size_bytes, page_bytes)),
        closed_(open ? PROT_READ | PROT_WRITE : PROT_NONE),
        memory_(static_cast<std::byte*>(
            mmap(nullptr, size_, closed_, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    require(memory_ != MAP_FAILED, ErrorKind::resource, "no memory for a test's device");
  }
  HostDeviceMemory(const HostDeviceMemory&) = delete;
  HostDeviceMemory& operator=(const HostDeviceMemory&) = delete;
  ~HostDeviceMemory() { munmap(memory_, size_); }

  std::byte* allocate(std::size_t size_bytes) {
    const std::lock_guard lock(mutex_);
    const std::size_t begin = used_;
    used_ += round_up(size_bytes, cache_line_bytes);
    require(used_ <= size_, ErrorKind::resource, "a test's device has {} bytes", size_);
    return memory_ + begin;
  }
  template <class Touch>
  void touch(const Touch& touch) {
    const std::lock_guard lock(mutex_);
    mprotect(memory_, size_, PROT_READ | PROT_WRITE);
    touch();
    mprotect(memory_, size_, closed_);
  }

 private:
  std::size_t size_, used_ = 0;
  int closed_;
  std::byte* memory_;
  std::mutex mutex_;
};

class HostDeviceWork final : public DeviceWork {
 public:
  explicit HostDeviceWork(std::shared_ptr<HostDeviceMemory> memory, bool is_beside = false)
      : memory_(std::move(memory)), is_beside_(is_beside) {}

  std::shared_ptr<std::byte> allocate(std::size_t size_bytes) override {
    return {memory_, memory_->allocate(size_bytes)};
  }
  void copy(std::byte* to, const std::byte* from, std::size_t size_bytes) override {
    enqueue([=, this] {
      std::memcpy(to, from, size_bytes);
      if (to_spoil_ > 0 && --to_spoil_ == 0) to[0] ^= std::byte{1};
    });
  }
  void spoil_second_copy() { to_spoil_ = 2; }
  std::shared_ptr<void> pin(std::span<const std::byte>) override { return nullptr; }
  void settle() override {
    memory_->touch([&] {
      for (const auto& job : jobs_) job();
    });
    jobs_.clear();
    if (is_beside_) ++memory_->settled_beside;
  }
  std::shared_ptr<DeviceWork> beside() override {
    return std::make_shared<HostDeviceWork>(memory_, true);
  }
  const HostDeviceMemory& memory() const { return *memory_; }
  void enqueue(std::function<void()> job) { jobs_.push_back(std::move(job)); }

 private:
  std::shared_ptr<HostDeviceMemory> memory_;
  bool is_beside_;
  int to_spoil_ = 0;
  std::vector<std::function<void()>> jobs_;
};

/// Who reads this worker's memory in place.
struct Sharing {
  bool on_host = false;  ///< workers of its host; of threads the third, sixth and so on does not
  bool by_mpi = false;   ///< others, as MPI says
  bool misread = false;  ///< MPI is wrong
};

class HostAccelerator final : public Accelerator {
 public:
  explicit HostAccelerator(Sharing sharing = {}, std::size_t size_bytes = 4 << 20)
      : sharing_(sharing),
        own_(std::make_shared<HostDeviceWork>(
            std::make_shared<HostDeviceMemory>(size_bytes, sharing.by_mpi))),
        work_(own_) {}

  Device device() const override { return {Device::Kind::cuda, 0}; }
  const std::shared_ptr<DeviceWork>& work() const override { return work_; }
  const HostDeviceMemory& memory() const { return own_->memory(); }
  void run(const combine::ElementWork& work) override {
    own_->enqueue([work] {
      if (work.average) return average(work);
      const bool known = cuda::launch_rule_elements(work, [](const auto& elements) {
        for (std::size_t e = elements.size(); e-- > 0;) elements.at(e);
      });
      require(known, ErrorKind::internal, "there is no such kernel");
    });
  }
  /// The memory is plain.
  DeviceRegion share(const Group& group, std::size_t bytes_per_worker,
                     const Deadline& deadline) override {
    if (!sharing_.on_host) return {};
    auto owner = std::make_shared<Region>(group.allocate(bytes_per_worker, deadline));
    DeviceRegion region;
    region.rank = group.rank();
    region.parts = owner->parts;
    region.why_not.resize(region.parts.size());
    region.part_bytes = bytes_per_worker;
    region.owner = owner;
    const std::vector<int> hosts = group.hosts();
    const auto own = static_cast<std::size_t>(group.rank());
    for (std::size_t w = 0; w < region.parts.size(); ++w) {
      const bool hidden = group.name() == "local" && w % 3 == 2;
      if (w == own || (hosts[w] == hosts[own] && !hidden)) continue;
      region.parts[w] = nullptr;
      region.why_not[w] = "it is far away";
    }
    return region;
  }
  std::string why_not_by_mpi() const override {
    if (sharing_.misread) own_->spoil_second_copy();
    return sharing_.by_mpi ? "" : "this MPI does not";
  }

 private:
  static void average(const combine::ElementWork& work) {
    constexpr std::size_t threads = 3;
    cuda::with_types(work, [&]<class T, class Slot>(T, Slot) {
      cuda::AverageElements<T, Slot, 0, combine::max_element_sources> elements{
          static_cast<T*>(work.current),
          static_cast<Slot*>(work.next),
          static_cast<const Slot*>(work.own),
          {},
          {},
          static_cast<int>(work.sources.size())};
      for (std::size_t j = 0; j < work.sources.size(); ++j) {
        elements.values[j] = static_cast<const Slot*>(work.sources[j]);
        elements.factors[j] = static_cast<T>(work.weights[j]);
      }
      for (std::size_t t = threads; t-- > 0;) cuda::run_share<1>(elements, t, threads, work.count);
    });
  }

  Sharing sharing_;
  std::shared_ptr<HostDeviceWork> own_;
  std::shared_ptr<DeviceWork> work_;
};

}  // namespace fast::testing
