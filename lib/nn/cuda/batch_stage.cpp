#include <fast/core/error.hpp>
#include <fast/cuda/memory.hpp>
#include <fast/nn/cuda/network.hpp>
#include <list>

namespace fast::cuda {
namespace {

constexpr Seconds longest_wait{300};

}  // namespace

struct BatchStage::Impl {
  struct Slot {
    std::shared_ptr<PinnedBuffer> host;
    DeviceBuffer device;
    Event copied;

    bool holds(const float* inputs) const {
      const std::span<float> all = host->as<float>();
      return inputs >= all.data() && inputs < all.data() + all.size();
    }
  };

  explicit Impl(int device) : stream(device) {}
  Slot* slot_of(const float* inputs) {
    for (Slot& slot : slots)
      if (slot.holds(inputs)) return &slot;
    return nullptr;
  }

  /// Memory whose user has let it go: another one allocates when batches get another size.
  void release_unused() {
    slots.remove_if([](const Slot& slot) {
      const bool is_unused = slot.host.use_count() == 1;
      if (is_unused) slot.copied.synchronize(Deadline(longest_wait));
      return is_unused;
    });
  }

  Stream stream;
  std::list<Slot> slots;
};

BatchStage::BatchStage(int device) : impl_(std::make_unique<Impl>(device)) {}
BatchStage::~BatchStage() = default;

std::shared_ptr<float> BatchStage::allocate(std::size_t values) {
  impl_->release_unused();
  const int device = impl_->stream.device();
  auto host = std::make_shared<PinnedBuffer>(values * sizeof(float));
  impl_->slots.push_back({host, DeviceBuffer(values * sizeof(float), device), Event(device)});
  return {host, host->as<float>().data()};
}

void BatchStage::refill(const float* inputs) {
  if (const Impl::Slot* slot = impl_->slot_of(inputs))
    slot->copied.synchronize(Deadline(longest_wait));
}

void BatchStage::filled(const Batch& batch) {
  Impl::Slot* slot = impl_->slot_of(batch.inputs.data());
  require(slot != nullptr, ErrorKind::internal, "cuda: a batch was made in memory of another's");
  copy(slot->device.data(), batch.inputs.data(), batch.inputs.size_bytes(), impl_->stream);
  slot->copied.record(impl_->stream);
}

const float* BatchStage::take(const Batch& batch, const Stream& stream) const {
  const Impl::Slot* slot = impl_->slot_of(batch.inputs.data());
  if (slot == nullptr) return nullptr;
  stream.wait_for(slot->copied);
  return slot->device.as<float>().data() + (batch.inputs.data() - slot->host->as<float>().data());
}

}  // namespace fast::cuda
