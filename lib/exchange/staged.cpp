#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <fast/exchange/staged.hpp>
#include <map>
#include <optional>
#include <utility>

#include "exchange/courier.hpp"
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

/// The device's part is done on the caller's thread, all that waits for others or for copies on the
/// courier's, which alone calls `host_`.
class StagedExchange final : public Exchange {
 public:
  StagedExchange(std::unique_ptr<Exchange> host, const PayloadShape& shape,
                 std::shared_ptr<DeviceWork> work, DeviceRegion region, std::stop_source stop)
      : host_(std::move(host)),
        shape_(shape),
        work_(std::move(work)),
        copies_(work_->beside()),
        region_(std::move(region)),
        stop_(std::move(stop)) {
    if (!region_.parts.empty()) own_ = region_.parts[static_cast<std::size_t>(region_.rank)];
    if (own_ == nullptr) {
      memory_ = work_->allocate(staged_bytes(shape));
      own_ = memory_.get();
    }
    courier_.emplace();
  }

  ~StagedExchange() override {
    stop_.request_stop();
    courier_.reset();
    try {
      work_->settle();  // nobody copies from what is given up here
      copies_->settle();
    } catch (const std::exception&) {
      return;
    }
  }

  MutablePayload acquire() override {
    courier_->run([this] { slot_ = host_->acquire(); });
    acquired_ = true;
    return image<std::byte, double>(slot(own_, sequence_ + 1), slot_.scalars);
  }

  void publish(std::int64_t round, bool with_weights) override {
    work_->settle();
    if (acquired_) {
      ++sequence_;
      scalars_ = slot_.scalars;
    }
    const bool is_new = std::exchange(acquired_, false);
    sent_ = courier_->send(
        [this, round, with_weights, is_new, to = slot_, from = std::as_const(*this).published()] {
          if (is_new) bring_down(to, from, with_weights);
          host_->publish(round, with_weights);
        });
  }

  void flush() override {
    begun_.reset();
    courier_->wait(sent_);
  }

  Payload published() const override {
    return image<const std::byte, const double>(slot(own_, sequence_), scalars_);
  }

  void begin_fetch(std::int64_t round) override {
    begun_ = std::make_shared<Fetch>();
    begun_->round = round;
    begun_->number = courier_->send([this, fetch = begun_] {
      fetch->arrivals = host_->fetch(fetch->round);
      bring_up(fetch->arrivals);
    });
  }

  std::vector<Arrival> fetch(std::int64_t round) override {
    if (!begun_ || begun_->round != round) begin_fetch(round);
    const auto fetch = std::exchange(begun_, nullptr);
    courier_->wait(fetch->number);
    return std::move(fetch->arrivals);
  }

  bool stands(const Arrival& arrival) const override {
    work_->settle();
    bool stands = false;
    courier_->run([&] { stands = host_->stands(arrival); });
    return stands;
  }

  void complete(std::int64_t rounds) override {
    work_->settle();
    sent_ = courier_->send([this, rounds] { host_->complete(rounds); });
  }

 private:
  struct Fetch {
    std::int64_t round = 0;
    std::uint64_t number = 0;  ///< the courier's
    std::vector<Arrival> arrivals;
  };

  template <class Byte, class Scalar>
  BasicPayload<Byte, Scalar> image(Byte* first, Scalar* scalars) const {
    return {first, scalars, shape_.stride_bytes(),
            shape_.weights_bytes > 0 ? first + vectors_bytes(shape_) : nullptr};
  }
  std::byte* slot(std::byte* part, std::uint64_t sequence) const {
    return part + sequence % slot_count * image_bytes(shape_);
  }

  // The courier's.

  void bring_down(const MutablePayload& to, const Payload& from, bool with_weights) {
    pin(to.data, to.weights);
    transfer(to, from, with_weights);
    copies_->settle();
  }

  void bring_up(std::vector<Arrival>& arrivals) {
    for (Arrival& arrival : arrivals) {
      if (arrival.state != Arrival::State::present) continue;
      const std::byte* here = mapped(arrival);
      if (here == nullptr) here = staged(arrival);
      arrival.payload = image<const std::byte, const double>(here, arrival.payload.scalars);
    }
    copies_->settle();
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
      copies_->copy(to.vector(k), from.vector(k), shape_.vector_bytes);
    if (with_weights) copies_->copy(to.weights, from.weights, shape_.weights_bytes);
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
  std::shared_ptr<DeviceWork> work_, copies_;
  DeviceRegion region_;
  std::stop_source stop_;              ///< of waits in host_
  std::shared_ptr<std::byte> memory_;  ///< of own payloads, without a part of the region
  std::byte* own_ = nullptr;           ///< three of them
  MutablePayload slot_;                ///< acquired
  double* scalars_ = nullptr;          ///< of the latest publication
  std::uint64_t sequence_ = 0;
  bool acquired_ = false;
  std::uint64_t sent_ = 0;  ///< the last errand but fetches
  std::shared_ptr<Fetch> begun_;

  std::map<int, std::shared_ptr<std::byte>> sources_;
  std::map<const std::byte*, std::vector<std::shared_ptr<void>>> pinned_;
  mutable std::optional<exchange::Courier> courier_;
};

}  // namespace

std::size_t staged_bytes(const PayloadShape& shape) { return slot_count * image_bytes(shape); }

std::unique_ptr<Exchange> staged_exchange(std::unique_ptr<Exchange> host, const PayloadShape& shape,
                                          std::shared_ptr<DeviceWork> work, DeviceRegion region,
                                          std::stop_source stop) {
  require(region.parts.empty() || region.part_bytes >= staged_bytes(shape), ErrorKind::internal,
          "staged_exchange: parts of {} bytes, {} are needed", region.part_bytes,
          staged_bytes(shape));
  return std::make_unique<StagedExchange>(std::move(host), shape, std::move(work),
                                          std::move(region), std::move(stop));
}

}  // namespace fast
