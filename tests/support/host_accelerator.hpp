// A device that is the host: its works are the kernels' own bodies, done place by place, the last
// first. A work is done when somebody waits for it, or earlier, as drawn from a seed: in every
// order that the queues and the orders between them allow. Nobody else may touch the device's
// memory: that ends the program.
#pragma once

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <deque>
#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <fast/core/random.hpp>
#include <functional>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "combine/accelerator.hpp"
#include "cuda/averaging/average_elements.hpp"
#include "cuda/averaging/rule_elements.hpp"
#include "exchange/shared/seqlock.hpp"

namespace fast::testing {

/// What a device was asked for.
struct DeviceCounts {
  int launches = 0, copies = 0;
  std::size_t host_bytes = 0;  ///< of copies from or to host memory
  int waits = 0;               ///< of the thread that made the device
  int waits_beside = 0;        ///< of other threads
  int orders = 0;              ///< between queues, without a wait
  int settled_beside = 0;      ///< waits for queues other than the first

  friend DeviceCounts operator-(DeviceCounts a, const DeviceCounts& b) {
    a.launches -= b.launches;
    a.copies -= b.copies;
    a.host_bytes -= b.host_bytes;
    a.waits -= b.waits;
    a.waits_beside -= b.waits_beside;
    a.orders -= b.orders;
    a.settled_beside -= b.settled_beside;
    return a;
  }
};

/// A device's memory and its queues.
class HostDevice {
 public:
  /// Where a queue was when somebody marked it.
  struct Mark {
    std::size_t queue = 0, place = 0;
  };

  /// `open`: others touch its memory when they like, as MPI does. Seed 0: all works are late.
  HostDevice(std::size_t size_bytes, bool open, std::uint64_t seed = 0)
      : size_(round_up(size_bytes, page_bytes)),
        closed_(open ? PROT_READ | PROT_WRITE : PROT_NONE),
        memory_(static_cast<std::byte*>(
            mmap(nullptr, size_, closed_, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    require(memory_ != MAP_FAILED, ErrorKind::resource, "no memory for a test's device");
    if (seed != 0) early_.emplace(seed);
  }
  HostDevice(const HostDevice&) = delete;
  HostDevice& operator=(const HostDevice&) = delete;
  ~HostDevice() { munmap(memory_, size_); }

  std::byte* allocate(std::size_t size_bytes) {
    const std::lock_guard lock(mutex_);
    const std::size_t begin = used_;
    used_ += round_up(size_bytes, cache_line_bytes);
    require(used_ <= size_, ErrorKind::resource, "a test's device has {} bytes", size_);
    return memory_ + begin;
  }
  /// Memory that the workers of a host have in common.
  void add_region(std::vector<std::byte*> parts, std::size_t part_bytes) {
    const std::lock_guard lock(mutex_);
    for (std::byte* part : parts) regions_.push_back({part, part_bytes});
  }
  /// Bytes that were allocated, those of regions apart.
  std::size_t used() const {
    const std::lock_guard lock(mutex_);
    return used_;
  }
  DeviceCounts counts() const {
    const std::lock_guard lock(mutex_);
    return counts_;
  }

  std::size_t open_queue() {
    const std::lock_guard lock(mutex_);
    queues_.emplace_back();
    return queues_.size() - 1;
  }
  void launch(std::size_t queue, std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    ++counts_.launches;
    queues_[queue].works.push_back({std::move(work), {}});
  }
  /// As that of a card, it may read what a neighbor writes. The exchange then looks whether it was
  /// whole.
  void copy(std::size_t queue, std::byte* to, const std::byte* from, std::size_t size_bytes) {
    const std::lock_guard lock(mutex_);
    ++counts_.copies;
    if (!is_here(to) || !is_here(from)) counts_.host_bytes += size_bytes;
    queues_[queue].works.push_back({[=, this] {
                                      copy_optimistically(to, from, size_bytes);
                                      if (to_spoil_ > 0 && --to_spoil_ == 0) to[0] ^= std::byte{1};
                                    },
                                    {}});
  }
  void spoil_second_copy() { to_spoil_ = 2; }
  /// Called before the device does what somebody waits for; null: it is not late.
  std::function<void()> late;
  Mark mark(std::size_t queue) const {
    const std::lock_guard lock(mutex_);
    return {queue, queues_[queue].done + queues_[queue].works.size()};
  }
  /// What comes later in that queue is done after the mark.
  void order(std::size_t queue, Mark after) {
    const std::lock_guard lock(mutex_);
    ++counts_.orders;
    queues_[queue].works.push_back({[] {}, after});
  }
  void wait(Mark mark) {
    if (late) late();
    const std::lock_guard lock(mutex_);
    ++(std::this_thread::get_id() == maker_ ? counts_.waits : counts_.waits_beside);
    if (mark.queue > 0) ++counts_.settled_beside;
    mprotect(memory_, size_, PROT_READ | PROT_WRITE);
    while (!is_reached(mark)) {
      const bool early = early_ && early_->uniform() < 0.5;
      advance(early ? early_->below(queues_.size()) : mark.queue);
    }
    mprotect(memory_, size_, closed_);
  }

 private:
  struct Work {
    std::function<void()> job;
    std::optional<Mark> after;
  };
  struct Queue {
    std::deque<Work> works;
    std::size_t done = 0;
  };

  bool is_here(const std::byte* memory) const {
    const auto in = [memory](const std::byte* first, std::size_t size) {
      return std::less_equal<>()(first, memory) && std::less<>()(memory, first + size);
    };
    return in(memory_, size_) || std::ranges::any_of(regions_, [&](const auto& region) {
             return in(region.first, region.second);
           });
  }
  bool is_reached(Mark mark) const { return queues_[mark.queue].done >= mark.place; }
  /// Does the next work of a queue, or of the one that it waits for.
  void advance(std::size_t queue) {
    if (queues_[queue].works.empty()) return;
    const std::optional<Mark> after = queues_[queue].works.front().after;
    if (after && !is_reached(*after)) return advance(after->queue);
    const Work work = std::move(queues_[queue].works.front());
    queues_[queue].works.pop_front();
    work.job();
    ++queues_[queue].done;
  }

  std::size_t size_, used_ = 0;
  int closed_;
  std::byte* memory_;
  std::vector<std::pair<const std::byte*, std::size_t>> regions_;
  mutable std::mutex mutex_;
  std::thread::id maker_ = std::this_thread::get_id();
  std::optional<Rng> early_;
  std::deque<Queue> queues_;
  DeviceCounts counts_;
  int to_spoil_ = 0;
};

/// One queue of a device.
class HostDeviceWork final : public DeviceWork {
 public:
  explicit HostDeviceWork(std::shared_ptr<HostDevice> device)
      : device_(std::move(device)), queue_(device_->open_queue()) {}

  std::shared_ptr<std::byte> make_memory(std::size_t size_bytes) override {
    return {device_, device_->allocate(size_bytes)};
  }
  std::shared_ptr<std::byte> make_host_memory(std::size_t size_bytes) override {
    auto buffer = std::make_shared<AlignedBuffer>(size_bytes);
    std::memset(buffer->data(), 0, size_bytes);
    return {buffer, buffer->data()};
  }
  void copy(std::byte* to, const std::byte* from, std::size_t size_bytes) override {
    device_->copy(queue_, to, from, size_bytes);
  }
  std::shared_ptr<void> pin(std::span<const std::byte> memory) override {
    pinned.push_back(memory.data());
    return nullptr;
  }
  std::function<void(const Deadline&)> make_mark() override {
    return
        [device = device_, mark = device_->mark(queue_)](const Deadline&) { device->wait(mark); };
  }
  std::shared_ptr<DeviceWork> beside() override {
    return std::make_shared<HostDeviceWork>(device_);
  }

  void enqueue(std::function<void()> job) { device_->launch(queue_, std::move(job)); }
  /// What is enqueued here from now on is done after what the other one has.
  void follow(const HostDeviceWork& other) { device_->order(queue_, device_->mark(other.queue_)); }
  HostDevice& device() const { return *device_; }
  std::vector<const std::byte*> pinned;

 private:
  std::shared_ptr<HostDevice> device_;
  std::size_t queue_;
};

/// Who reads this worker's memory in place.
struct Sharing {
  bool on_host = false;  ///< workers of its host; of threads the third, sixth and so on does not
  bool by_mpi = false;   ///< others, as MPI says
  bool misread = false;  ///< MPI is wrong
  bool on_all = false;   ///< of threads, too, all read each other
  Device tensors{Device::Kind::cuda, 0};  ///< what the model's memory is said to be
};

class HostAccelerator final : public Accelerator {
 public:
  explicit HostAccelerator(Sharing sharing = {}, std::size_t size_bytes = 4 << 20,
                           std::uint64_t seed = 0)
      : sharing_(sharing),
        own_(std::make_shared<HostDeviceWork>(
            std::make_shared<HostDevice>(size_bytes, sharing.by_mpi, seed))),
        work_(own_) {}

  Device device() const override { return sharing_.tensors; }
  const std::shared_ptr<DeviceWork>& work() const override { return work_; }
  HostDevice& simulated() const { return own_->device(); }
  /// A queue of the program, for StepOptions::queue.
  std::shared_ptr<HostDeviceWork> program_queue() const {
    return std::static_pointer_cast<HostDeviceWork>(own_->beside());
  }
  void run(const combine::ElementWork& work) override {
    own_->enqueue([work] { play(work); });
  }
  /// An order that this device forgets, as a library that lacks the event would.
  std::optional<Order> forgets;
  void order(Order order, void* queue) override {
    if (order == forgets) return;
    auto& other = *static_cast<HostDeviceWork*>(queue);
    order == Order::after ? own_->follow(other) : other.follow(*own_);
  }
  /// The memory is plain.
  DeviceRegion share(const Group& group, std::size_t bytes_per_worker,
                     const Deadline& deadline) override {
    if (!sharing_.on_host) return {};
    auto owner = std::make_shared<Region>(group.allocate(bytes_per_worker, deadline));
    simulated().add_region(owner->parts, bytes_per_worker);
    DeviceRegion region;
    region.rank = group.rank();
    for (std::byte* part : owner->parts) region.parts.push_back(mapping(owner, part));
    region.why_not.resize(region.parts.size());
    region.part_bytes = bytes_per_worker;
    region.owner = owner;
    const std::vector<int> hosts = group.hosts();
    const auto own = static_cast<std::size_t>(group.rank());
    for (std::size_t w = 0; w < region.parts.size(); ++w) {
      const bool hidden = group.name() == "local" && w % 3 == 2 && !sharing_.on_all;
      if (w == own || (hosts[w] == hosts[own] && !hidden)) continue;
      region.parts[w] = nullptr;
      region.why_not[w] = "it is far away";
    }
    return region;
  }
  /// Parts of workers that share() has mapped, this one's too, and that are mapped now.
  int mapped() const { return *mapped_; }
  std::string why_not_by_mpi() const override {
    if (sharing_.misread) simulated().spoil_second_copy();
    return sharing_.by_mpi ? "" : "this MPI does not";
  }

 private:
  template <int Width, class Elements>
  static void play_chunks(const Elements& elements, const combine::RunTable& table) {
    constexpr std::size_t threads = 3;
    for (std::uint32_t chunk = table.chunks; chunk-- > 0;) {
      for (std::size_t t = threads; t-- > 0;)
        cuda::run_chunk<Width>(elements, table, chunk, t, threads);
    }
  }
  static void play(const combine::ElementWork& work) {
    if (work.average) {
      return cuda::launch_average_elements(
          work, [&]<class T, class Slot>(const cuda::AverageLaunch<T, Slot>& launch) {
            cuda::with_average(launch, [&](const auto& elements) {
              play_chunks<16 / sizeof(T)>(elements, work.table);
            });
          });
    }
    const bool known =
        cuda::launch_rule_elements(work, [&]<class Elements>(const Elements& elements) {
          play_chunks<cuda::width_of<Elements>()>(elements, work.table);
        });
    require(known, ErrorKind::internal, "there is no such kernel");
  }

  std::shared_ptr<std::byte> mapping(std::shared_ptr<Region> owner, std::byte* part) const {
    ++*mapped_;
    return {part, [owner = std::move(owner), mapped = mapped_](std::byte*) { --*mapped; }};
  }

  Sharing sharing_;
  std::shared_ptr<std::atomic<int>> mapped_ = std::make_shared<std::atomic<int>>(0);
  std::shared_ptr<HostDeviceWork> own_;
  std::shared_ptr<DeviceWork> work_;
};

}  // namespace fast::testing
