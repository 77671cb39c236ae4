#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <fast/exchange/staged.hpp>
#include <map>

#include "exchange/slot_board.hpp"

namespace fast {
namespace {

using exchange::slot_count;

std::size_t vectors_bytes(const PayloadShape& shape) {
  return static_cast<std::size_t>(shape.vectors) * shape.stride_bytes();
}
std::size_t image_bytes(const PayloadShape& shape) {
  return round_up(vectors_bytes(shape) + shape.weights_bytes, page_bytes);
}

class StagedExchange final : public Exchange {
 public:
  StagedExchange(std::unique_ptr<Exchange> host, const PayloadShape& shape,
                 std::shared_ptr<DeviceWork> work, DeviceRegion region)
      : host_(std::move(host)), shape_(shape), work_(std::move(work)), region_(std::move(region)) {
    if (!region_.parts.empty()) own_ = region_.parts[static_cast<std::size_t>(region_.rank)];
    if (own_ != nullptr) return;
    memory_ = work_->allocate(staged_bytes(shape));
    own_ = memory_.get();
  }

  ~StagedExchange() override {
    try {
      work_->settle();  // nobody copies from what is given up here
    } catch (const std::exception&) {
      return;
    }
  }

  MutablePayload acquire() override {
    slot_ = host_->acquire();
    acquired_ = true;
    return image<std::byte, double>(slot(own_, sequence_ + 1), slot_.scalars);
  }

  void publish(std::int64_t round, bool with_weights) override {
    if (acquired_) {
      ++sequence_;
      pin(slot_.data, slot_.weights);
      transfer(slot_, image<const std::byte, const double>(slot(own_, sequence_), nullptr),
               with_weights);
      acquired_ = false;
    }
    work_->settle();
    host_->publish(round, with_weights);
  }

  Payload published() const override {
    return image<const std::byte, const double>(slot(own_, sequence_), host_->published().scalars);
  }

  std::vector<Arrival> fetch(std::int64_t round) override {
    std::vector<Arrival> arrivals = host_->fetch(round);
    for (Arrival& arrival : arrivals) {
      if (arrival.state != Arrival::State::present) continue;
      const std::byte* here = mapped(arrival);
      if (here == nullptr) here = staged(arrival);
      arrival.payload = image<const std::byte, const double>(here, arrival.payload.scalars);
    }
    return arrivals;
  }

  bool stands(const Arrival& arrival) const override {
    work_->settle();
    return host_->stands(arrival);
  }

  void complete(std::int64_t rounds) override {
    work_->settle();
    host_->complete(rounds);
  }

 private:
  template <class Byte, class Scalar>
  BasicPayload<Byte, Scalar> image(Byte* first, Scalar* scalars) const {
    return {first, scalars, shape_.stride_bytes(),
            shape_.weights_bytes > 0 ? first + vectors_bytes(shape_) : nullptr};
  }
  std::byte* slot(std::byte* part, std::uint64_t sequence) const {
    return part + sequence % slot_count * image_bytes(shape_);
  }

  /// Where the source itself has it; null where that cannot be read.
  const std::byte* mapped(const Arrival& arrival) const {
    if (region_.parts.empty()) return nullptr;
    std::byte* part = region_.parts[static_cast<std::size_t>(arrival.worker)];
    return part == nullptr ? nullptr : slot(part, arrival.sequence);
  }

  const std::byte* staged(const Arrival& arrival) {
    auto& memory = sources_[arrival.worker];
    if (!memory) memory = work_->allocate(image_bytes(shape_));
    pin(arrival.payload.data, nullptr);
    transfer(image<std::byte, double>(memory.get(), nullptr), arrival.payload, false);
    return memory.get();
  }

  void transfer(const MutablePayload& to, const Payload& from, bool with_weights) {
    for (int k = 0; k < shape_.vectors; ++k)
      work_->copy(to.vector(k), from.vector(k), shape_.vector_bytes);
    if (with_weights) work_->copy(to.weights, from.weights, shape_.weights_bytes);
  }

  /// Slots keep their places; short ones, which share pages with others, are not worth it.
  void pin(const std::byte* vectors, const std::byte* weights) {
    if (shape_.vector_bytes < page_bytes || pinned_.contains(vectors)) return;
    const auto count = static_cast<std::size_t>(shape_.vectors);
    auto& pins = pinned_[vectors];
    pins.push_back(
        work_->pin({vectors, (count - 1) * shape_.stride_bytes() + shape_.vector_bytes}));
    if (weights != nullptr) pins.push_back(work_->pin({weights, shape_.weights_bytes}));
  }

  std::unique_ptr<Exchange> host_;
  PayloadShape shape_;
  std::shared_ptr<DeviceWork> work_;
  DeviceRegion region_;
  std::shared_ptr<std::byte> memory_;  ///< of own payloads, without a part of the region
  std::byte* own_ = nullptr;           ///< three of them
  MutablePayload slot_;
  std::map<int, std::shared_ptr<std::byte>> sources_;
  std::map<const std::byte*, std::vector<std::shared_ptr<void>>> pinned_;
  std::uint64_t sequence_ = 0;
  bool acquired_ = false;
};

}  // namespace

std::size_t staged_bytes(const PayloadShape& shape) { return slot_count * image_bytes(shape); }

std::unique_ptr<Exchange> staged_exchange(std::unique_ptr<Exchange> host, const PayloadShape& shape,
                                          std::shared_ptr<DeviceWork> work, DeviceRegion region) {
  require(region.parts.empty() || region.part_bytes >= staged_bytes(shape), ErrorKind::internal,
          "staged_exchange: parts of {} bytes, {} are needed", region.part_bytes,
          staged_bytes(shape));
  return std::make_unique<StagedExchange>(std::move(host), shape, std::move(work),
                                          std::move(region));
}

}  // namespace fast
