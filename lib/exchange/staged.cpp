#include <array>
#include <fast/core/memory.hpp>
#include <fast/exchange/staged.hpp>
#include <map>
#include <set>

#include "exchange/slot_board.hpp"

namespace fast {
namespace {

using exchange::slot_count;

/// One payload on the device.
class Image {
 public:
  Image() = default;
  Image(const PayloadShape& shape, DeviceWork& work)
      : shape_(shape), memory_(work.allocate(vectors_bytes() + shape.weights_bytes)) {}

  template <class Byte, class Scalar>
  BasicPayload<Byte, Scalar> payload(Scalar* scalars) const {
    return {memory_.get(), scalars, shape_.stride_bytes(),
            shape_.weights_bytes > 0 ? memory_.get() + vectors_bytes() : nullptr};
  }

 private:
  std::size_t vectors_bytes() const {
    return static_cast<std::size_t>(shape_.vectors) * shape_.stride_bytes();
  }
  PayloadShape shape_;
  std::shared_ptr<std::byte> memory_;
};

class StagedExchange final : public Exchange {
 public:
  StagedExchange(std::unique_ptr<Exchange> host, const PayloadShape& shape,
                 std::shared_ptr<DeviceWork> work)
      : host_(std::move(host)), shape_(shape), work_(std::move(work)) {
    for (Image& image : own_) image = Image(shape, *work_);
  }

  MutablePayload acquire() override {
    slot_ = host_->acquire();
    acquired_ = true;
    return own(sequence_ + 1).payload<std::byte, double>(slot_.scalars);
  }

  void publish(std::int64_t round, bool with_weights) override {
    if (acquired_) {
      ++sequence_;
      pin(slot_.data, slot_.weights);
      transfer(slot_, own(sequence_).payload<const std::byte, const double>(nullptr), with_weights);
      acquired_ = false;
    }
    work_->settle();
    host_->publish(round, with_weights);
  }

  Payload published() const override {
    return own(sequence_).payload<const std::byte, const double>(host_->published().scalars);
  }

  std::vector<Arrival> fetch(std::int64_t round) override {
    std::vector<Arrival> arrivals = host_->fetch(round);
    for (Arrival& arrival : arrivals) {
      if (arrival.state != Arrival::State::present) continue;
      auto [place, made] = sources_.try_emplace(arrival.worker);
      if (made) place->second = Image(shape_, *work_);
      pin(arrival.payload.data, nullptr);
      transfer(place->second.payload<std::byte, double>(nullptr), arrival.payload, false);
      arrival.payload =
          place->second.payload<const std::byte, const double>(arrival.payload.scalars);
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
  const Image& own(std::uint64_t sequence) const { return own_[sequence % slot_count]; }

  void transfer(const MutablePayload& to, const Payload& from, bool with_weights) {
    for (int k = 0; k < shape_.vectors; ++k)
      work_->copy(to.vector(k), from.vector(k), shape_.vector_bytes);
    if (with_weights) work_->copy(to.weights, from.weights, shape_.weights_bytes);
  }

  /// Slots keep their places; short ones, which share pages with others, are not worth it.
  void pin(const std::byte* vectors, const std::byte* weights) {
    if (shape_.vector_bytes < page_bytes || !pinned_.insert(vectors).second) return;
    const auto count = static_cast<std::size_t>(shape_.vectors);
    work_->pin({vectors, (count - 1) * shape_.stride_bytes() + shape_.vector_bytes});
    if (weights != nullptr) work_->pin({weights, shape_.weights_bytes});
  }

  std::unique_ptr<Exchange> host_;
  PayloadShape shape_;
  std::shared_ptr<DeviceWork> work_;
  MutablePayload slot_;
  std::array<Image, slot_count> own_;
  std::map<int, Image> sources_;
  std::set<const std::byte*> pinned_;
  std::uint64_t sequence_ = 0;
  bool acquired_ = false;
};

}  // namespace

std::unique_ptr<Exchange> staged_exchange(std::unique_ptr<Exchange> host, const PayloadShape& shape,
                                          std::shared_ptr<DeviceWork> work) {
  return std::make_unique<StagedExchange>(std::move(host), shape, std::move(work));
}

}  // namespace fast
