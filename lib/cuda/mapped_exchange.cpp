#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <fast/cuda/exchange.hpp>

#include "exchange/slot_board.hpp"

namespace fast::cuda {
namespace {

using exchange::slot_count;

std::size_t weights_offset(const PayloadShape& shape) {
  return static_cast<std::size_t>(shape.vectors) * round_up(shape.stride_bytes(), page_bytes);
}

std::size_t slot_bytes(const PayloadShape& shape) {
  return weights_offset(shape) + round_up(shape.weights_bytes, page_bytes);
}

class MappedExchange final : public Exchange {
 public:
  MappedExchange(std::unique_ptr<Exchange> control, DeviceRegion region, const PayloadShape& shape,
                 std::shared_ptr<DeviceWork> work)
      : control_(std::move(control)),
        region_(std::move(region)),
        shape_(shape),
        work_(std::move(work)) {}

  MutablePayload acquire() override {
    const MutablePayload head = control_->acquire();
    acquired_ = true;
    return payload<std::byte, double>(region_.rank, sequence_ + 1, head.scalars);
  }

  void publish(std::int64_t round, bool with_weights) override {
    work_->settle();
    control_->publish(round, with_weights);
    if (acquired_) ++sequence_;
    acquired_ = false;
  }

  Payload published() const override {
    return payload<const std::byte, const double>(region_.rank, sequence_,
                                                  control_->published().scalars);
  }

  std::vector<Arrival> fetch(std::int64_t round) override {
    std::vector<Arrival> arrivals = control_->fetch(round);
    for (Arrival& arrival : arrivals) {
      if (arrival.state != Arrival::State::present) continue;
      const auto source = static_cast<std::size_t>(arrival.worker);
      require(region_.parts[source] != nullptr, ErrorKind::resource,
              "cuda: worker {} cannot read the slots of worker {}: {}", region_.rank,
              arrival.worker, region_.why_not[source]);
      arrival.payload = payload<const std::byte, const double>(arrival.worker, arrival.sequence,
                                                               arrival.payload.scalars);
    }
    return arrivals;
  }

  bool stands(const Arrival& arrival) const override {
    work_->settle();
    return control_->stands(arrival);
  }

  void complete(std::int64_t rounds) override {
    work_->settle();
    control_->complete(rounds);
  }

 private:
  template <class Byte, class Scalar>
  BasicPayload<Byte, Scalar> payload(int worker, std::uint64_t sequence, Scalar* scalars) const {
    std::byte* base = region_.parts[static_cast<std::size_t>(worker)] +
                      sequence % slot_count * slot_bytes(shape_);
    return {base, scalars, round_up(shape_.stride_bytes(), page_bytes),
            shape_.weights_bytes > 0 ? base + weights_offset(shape_) : nullptr};
  }

  std::unique_ptr<Exchange> control_;
  DeviceRegion region_;
  PayloadShape shape_;
  std::shared_ptr<DeviceWork> work_;
  std::uint64_t sequence_ = 0;  ///< that of control_
  bool acquired_ = false;
};

}  // namespace

std::size_t mapped_bytes(const PayloadShape& shape) { return slot_count * slot_bytes(shape); }

PayloadShape control_shape(const PayloadShape& shape) {
  return {cache_line_bytes, 1, shape.scalars, 0};
}

std::unique_ptr<Exchange> mapped_exchange(std::unique_ptr<Exchange> control, DeviceRegion region,
                                          const PayloadShape& shape,
                                          std::shared_ptr<DeviceWork> work) {
  require(region.part_bytes >= mapped_bytes(shape), ErrorKind::internal,
          "mapped_exchange: parts of {} bytes, {} are needed", region.part_bytes,
          mapped_bytes(shape));
  return std::make_unique<MappedExchange>(std::move(control), std::move(region), shape,
                                          std::move(work));
}

}  // namespace fast::cuda
