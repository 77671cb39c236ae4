#include "exchange/device/staged.hpp"

#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <map>
#include <set>
#include <utility>

#include "core/keep.hpp"
#include "core/serial_executor.hpp"
#include "exchange/shared/slot_board.hpp"

namespace fast {
namespace {

using exchange::slot_count;

std::size_t weights_offset(const PayloadShape& shape) {
  return static_cast<std::size_t>(shape.vectors) * shape.stride_bytes();
}
/// Of the publication's number: 0 while the slot is written.
std::size_t stamp_offset(const PayloadShape& shape) {
  return round_up(weights_offset(shape) + shape.weights_bytes, sizeof(std::uint64_t));
}
std::size_t image_bytes(const PayloadShape& shape) {
  return round_up(stamp_offset(shape) + sizeof(std::uint64_t), page_bytes);
}
const std::byte* bytes_of(const std::uint64_t& value) {
  return reinterpret_cast<const std::byte*>(&value);
}

/// The device's part is done on the caller's thread; what waits for others or for copies, and all
/// calls of `host_`, are the executor's tasks.
class StagedExchange final : public Exchange {
 public:
  StagedExchange(std::unique_ptr<Exchange> host, Staging staging)
      : host_(std::move(host)),
        shape_(staging.shape),
        work_(std::move(staging.work)),
        copies_(work_->beside()),
        region_(std::move(staging.region)),
        deadline_(staging.deadline),
        stop_(std::move(staging.stop)) {
    if (!region_.parts.empty()) own_ = region_.parts[static_cast<std::size_t>(region_.rank)];
    if (own_ == nullptr) {
      memory_ = work_->allocate(staged_bytes(shape_));
      own_ = memory_.get();
    }
  }

  ~StagedExchange() override {
    stop_.request_stop();
    executor_.reset();
    if (!left_to_mpi_.empty()) keep_for_good(std::move(left_to_mpi_));
    try {
      work_->settle();  // nobody copies from what is given up here
      copies_->settle();
    } catch (const std::exception&) {
      return;
    }
  }

  MutablePayload acquire() override {
    executor_->run([this] { slot_ = host_->acquire(); });
    acquired_ = true;
    if (region_.reads) {
      work_->copy(stamp(sequence_ + 1), bytes_of(no_stamp_), sizeof no_stamp_);
    }
    return image<std::byte, double>(slot(own_, sequence_ + 1), slot_.scalars);
  }

  void publish(std::int64_t round, bool with_weights) override {
    work_->settle();
    if (acquired_) {
      ++sequence_;
      scalars_ = slot_.scalars;
      if (region_.everywhere) scalars_[shape_.scalars] = static_cast<double>(sequence_);
    }
    const bool is_new = std::exchange(acquired_, false);
    sent_ =
        executor_->submit([this, round, with_weights, is_new, to = slot_, sequence = sequence_] {
          if (is_new) bring_down(to, sequence, with_weights);
          host_->publish(round, with_weights || region_.everywhere);
        });
  }

  void flush() override { executor_->wait(sent_); }

  Arrival::State look(int neighbor, std::int64_t round) override {
    return host_->look(neighbor, round);
  }
  Payload published() const override { return own(sequence_, scalars_); }

  void begin_fetch(std::int64_t round) override {
    begun_ = std::make_shared<Fetch>();
    begun_->round = round;
    begun_->number = executor_->submit([this, fetch = begun_] {
      fetch->arrivals = host_->fetch(fetch->round);
      bring_up(fetch->arrivals);
    });
  }

  std::vector<Arrival> fetch(std::int64_t round) override {
    if (!begun_ || begun_->round != round) begin_fetch(round);
    const auto fetch = std::exchange(begun_, nullptr);
    executor_->wait(fetch->number);
    return std::move(fetch->arrivals);
  }

  bool stands(const Arrival& arrival) const override {
    work_->settle();
    bool stands = false;
    executor_->run([&] { stands = host_->stands(arrival); });
    return stands;
  }

  void complete(std::int64_t rounds) override {
    work_->settle();
    sent_ = executor_->submit([this, rounds] { host_->complete(rounds); });
  }

 private:
  struct Fetch {
    std::int64_t round = 0;
    std::uint64_t number = 0;  ///< the executor's
    std::vector<Arrival> arrivals;
  };

  template <class Byte, class Scalar>
  BasicPayload<Byte, Scalar> image(Byte* first, Scalar* scalars) const {
    return {first, scalars, shape_.stride_bytes(),
            shape_.weights_bytes > 0 ? first + weights_offset(shape_) : nullptr};
  }
  std::byte* slot(std::byte* part, std::uint64_t sequence) const {
    return part + sequence % slot_count * image_bytes(shape_);
  }

  Payload own(std::uint64_t sequence, const double* scalars) const {
    return image<const std::byte, const double>(slot(own_, sequence), scalars);
  }
  std::byte* stamp(std::uint64_t sequence) const {
    return slot(own_, sequence) + stamp_offset(shape_);
  }

  // The executor's.

  void bring_down(const MutablePayload& to, std::uint64_t sequence, bool with_weights) {
    const Payload from = own(sequence, nullptr);
    if (region_.everywhere) {
      pin({to.weights, weights_bytes()});
      copies_->copy(to.weights, with_weights ? from.weights : from.data, weights_bytes());
    } else {
      pin({to.data, shape_.vectors_bytes()});
      if (to.weights != nullptr) pin({to.weights, shape_.weights_bytes});
      transfer(to, from);
      if (with_weights) copies_->copy(to.weights, from.weights, shape_.weights_bytes);
    }
    if (region_.reads) copies_->copy(stamp(sequence), bytes_of(sequence), sizeof sequence);
    copies_->settle();
  }

  void bring_up(std::vector<Arrival>& arrivals) {
    for (Arrival& arrival : arrivals) {
      if (arrival.state != Arrival::State::present) continue;
      const std::byte* here = mapped(arrival);
      if (here == nullptr) here = region_.everywhere ? read(arrival) : staged(arrival);
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

  std::byte* room_for(int source) {
    auto& memory = sources_[source];
    if (!memory) memory = work_->allocate(image_bytes(shape_));
    return memory.get();
  }

  const std::byte* staged(const Arrival& arrival) {
    std::byte* here = room_for(arrival.worker);
    pin({arrival.payload.data, shape_.vectors_bytes()});
    transfer(image<std::byte, double>(here, nullptr), arrival.payload);
    return here;
  }

  /// From the source's own device. Its stamp, read last, says whether that was the publication.
  const std::byte* read(Arrival& arrival) {
    if (out_of_reach_.contains(arrival.worker)) {
      arrival.state = Arrival::State::suspect;
      return nullptr;
    }
    std::byte* here = room_for(arrival.worker);
    // Of a mirror's publications the numbers are others.
    const auto sequence = static_cast<std::uint64_t>(arrival.payload.scalars[shape_.scalars]);
    const std::size_t from = sequence % slot_count * image_bytes(shape_);
    const Deadline deadline(deadline_);
    const auto goes_on = [&] {
      require(!deadline.expired(), ErrorKind::deadline,
              "reading a neighbor: the weights of worker {} in round {} have not come in {:.1f} s",
              arrival.worker, arrival.round, deadline.limit_s());
      return !stop_.stop_requested() &&
             host_->look(arrival.worker, arrival.round) != Arrival::State::suspect;
    };
    // MPI's until they have come.
    auto& [room, stamp] = left_to_mpi_.emplace_back(std::move(sources_[arrival.worker]),
                                                    std::make_unique<std::uint64_t>(0));
    if (!has_come(arrival.worker, from, here, *stamp, goes_on)) {
      arrival.state = Arrival::State::suspect;
      return here;
    }
    if (*stamp != sequence) arrival.state = Arrival::State::missed;
    sources_[arrival.worker] = std::move(room);
    left_to_mpi_.pop_back();
    return here;
  }

  /// What MPI cannot reach any more it is not asked for again.
  bool has_come(int worker, std::size_t from, std::byte* to, std::uint64_t& stamp,
                const std::function<bool()>& goes_on) {
    try {
      RemoteReads& reads = *region_.reads;
      return reads.read(worker, from, to, shape_.vectors_bytes(), goes_on) &&
             reads.read(worker, from + stamp_offset(shape_), &stamp, sizeof stamp, goes_on);
    } catch (const Error& error) {
      if (error.kind() != ErrorKind::mpi) throw;
      out_of_reach_.insert(worker);
      return false;
    }
  }

  std::size_t weights_bytes() const { return host_shape(shape_, region_).weights_bytes; }

  void transfer(const MutablePayload& to, const Payload& from) {
    for (int k = 0; k < shape_.vectors; ++k)
      copies_->copy(to.vector(k), from.vector(k), shape_.vector_bytes);
  }

  /// Slots keep their places; short ones, which share pages with others, are not worth it.
  void pin(std::span<const std::byte> memory) {
    if (memory.size() < page_bytes || pinned_.contains(memory.data())) return;
    pinned_.emplace(memory.data(), work_->pin(memory));
  }

  std::unique_ptr<Exchange> host_;
  PayloadShape shape_;
  std::shared_ptr<DeviceWork> work_, copies_;
  DeviceRegion region_;
  Seconds deadline_;
  std::stop_source stop_;              ///< of waits in host_
  std::shared_ptr<std::byte> memory_;  ///< of own payloads, without a part of the region
  std::byte* own_ = nullptr;           ///< three of them
  MutablePayload slot_;                ///< acquired
  double* scalars_ = nullptr;          ///< of the latest publication
  std::uint64_t sequence_ = 0;
  const std::uint64_t no_stamp_ = 0;
  bool acquired_ = false;
  std::uint64_t sent_ = 0;  ///< the last task but fetches
  std::shared_ptr<Fetch> begun_;

  std::map<int, std::shared_ptr<std::byte>> sources_;
  std::set<int> out_of_reach_;
  std::map<const std::byte*, std::shared_ptr<void>> pinned_;
  /// What reads that were given up may still write to.
  std::vector<std::pair<std::shared_ptr<std::byte>, std::unique_ptr<std::uint64_t>>> left_to_mpi_;
  std::unique_ptr<SerialExecutor> executor_ = std::make_unique<SerialExecutor>();
};

}  // namespace

PayloadShape host_shape(const PayloadShape& shape, const DeviceRegion& region) {
  if (!region.everywhere) return shape;
  const std::size_t weights = shape.weights_bytes > 0 ? shape.weights_bytes : shape.vector_bytes;
  return {cache_line_bytes, 1, shape.scalars + 1, weights};
}

std::size_t staged_bytes(const PayloadShape& shape) { return slot_count * image_bytes(shape); }

std::unique_ptr<Exchange> staged_exchange(std::unique_ptr<Exchange> host, Staging staging) {
  const DeviceRegion& region = staging.region;
  require(region.parts.empty() || region.part_bytes >= staged_bytes(staging.shape),
          ErrorKind::internal, "staged_exchange: parts of {} bytes, {} are needed",
          region.part_bytes, staged_bytes(staging.shape));
  return std::make_unique<StagedExchange>(std::move(host), std::move(staging));
}

}  // namespace fast
