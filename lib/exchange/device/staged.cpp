#include "exchange/device/staged.hpp"

#include <algorithm>
#include <atomic>
#include <exception>
#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <map>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "codec/coder.hpp"
#include "core/leak_until_exit.hpp"
#include "core/serial_executor.hpp"
#include "exchange/device/host_pins.hpp"
#include "exchange/device/image.hpp"
#include "exchange/device/stamped_reads.hpp"
#include "exchange/peers.hpp"
#include "exchange/shared/seqlock.hpp"
#include "exchange/shared/slot_protocol.hpp"

namespace fast {
namespace {

using exchange::HostPins;
using exchange::ImageLayout;
using exchange::StampedReads;

constexpr int most_passes = 3;         ///< over payloads that change while they are copied
constexpr Seconds short_wait{0.1};     ///< of a device whose work has hung before
constexpr std::int64_t no_round = -1;  ///< of publications that are no neighbor's message
/// Of publications whose weights nobody adopts either.
constexpr std::int64_t void_round = exchange::being_written;

const std::byte* bytes_of(const std::uint64_t& value) {
  return reinterpret_cast<const std::byte*>(&value);
}

/// Copies payloads between the host's slots and the images on the device. Used by the executor's
/// thread alone. `work` outlives it.
class Transfers {
 public:
  Transfers(const ImageLayout& images, DeviceWork& work, DeviceRegion& region,
            std::optional<StampedReads>& reads, std::shared_ptr<codec::HostMessage> message,
            std::function<bool(int)> is_gone)
      : images_(images),
        work_(work),
        copies_(work.beside()),
        pins_(work),
        region_(region),
        reads_(reads),
        message_(std::move(message)),
        is_gone_(std::move(is_gone)) {
    if (!message_) return;
    packed_ = work.allocate_on_host(shape().vector_bytes);
    code_ = AlignedBuffer(message_->layout.size_bytes());
  }

  /// Codes this worker's image, whose vectors become what the code says.
  void code(const MutablePayload& image) {
    if (!message_) return;
    const bool is_given = std::exchange(message_->is_given, false);
    if (!is_given) message_->coder.begin_message();
    for (int k = 0; k < shape().vectors; ++k) {
      if (!is_given) {
        copies_->copy(packed_.get(), image.vector(k), shape().vector_bytes);
        copies_->settle();
        message_->coder.encode(message_->layout, k, packed_.get(), message_->vector(k));
      }
      decode(message_->vector(k), image.vector(k));
    }
  }

  /// From this worker's image `from` to the host's slot `to`.
  void download(const MutablePayload& to, const Payload& from, bool with_weights) {
    if (region_.everywhere && with_weights && from.weights == nullptr) return;  // they are there
    if (region_.everywhere) {
      const std::size_t bytes = host_shape(shape(), region_).weights_bytes;
      pins_.pin({to.weights, bytes});
      copies_->copy(to.weights, with_weights ? from.weights : from.data, bytes);
      return;
    }
    if (message_) {
      copy_optimistically(to.data, message_->code.data(), message_->code.size_bytes());
    } else {
      pins_.pin({to.data, shape().vectors_bytes()});
      copy_vectors(to, from);
    }
    if (from.weights == nullptr) return;  // they are on the host, if there are any
    pins_.pin({to.weights, shape().weights_bytes});
    if (with_weights) copies_->copy(to.weights, from.weights, shape().weights_bytes);
  }

  /// Makes that part of the arrivals' payloads readable on this device. Blocks for those that are
  /// not mapped.
  void upload(std::vector<Arrival>& arrivals, const PayloadPart& part) {
    bool copies = false;
    for (Arrival& arrival : arrivals) {
      if (arrival.state != Arrival::State::present) continue;
      if (is_unmapped(arrival.worker)) arrival.state = Arrival::State::suspect;
      if (!is_present(arrival)) continue;
      const std::byte* image = mapped(arrival);
      copies = copies || image == nullptr;
      if (image == nullptr)
        image = region_.everywhere ? read(arrival, part) : staged(arrival, part);
      if (image == nullptr) continue;  // it was not read
      arrival.payload =
          images_.payload<const std::byte, const double>(image, arrival.payload.scalars);
    }
    if (copies) copies_->settle();
  }

  /// The arrival with a payload of this worker's own, when copies() has settled.
  Arrival pulled(const Arrival& arrival) {
    if (!is_present(arrival)) return arrival;
    Arrival pulled = arrival;
    if (is_unmapped(arrival.worker)) pulled.state = Arrival::State::suspect;
    if (!is_present(pulled)) return pulled;
    const std::byte* image = mapped(arrival);
    if (image == nullptr) {
      staged(arrival, {});
    } else {
      copy_vectors(images_.payload<std::byte, double>(room_for(arrival.worker).get(), nullptr),
                   images_.payload<const std::byte, const double>(image, nullptr));
    }
    std::vector<double>& scalars = scalars_[arrival.worker];
    scalars.assign(arrival.payload.scalars, arrival.payload.scalars + shape().scalars);
    pulled.payload = images_.payload<const std::byte, const double>(room_for(arrival.worker).get(),
                                                                    scalars.data());
    return pulled;
  }

  /// Memory for payloads of workers that are gone. What was fetched before has been read.
  void give_back(const std::vector<Arrival>& arrivals) {
    if (!is_gone_) return;
    const auto is_done = [&](int worker) {
      const bool is_read = std::ranges::any_of(arrivals, [worker](const Arrival& arrival) {
        return arrival.worker == worker && is_present(arrival);
      });
      return !is_read && is_gone_(worker);
    };
    const auto present = std::ranges::count_if(arrivals, [&](const Arrival& arrival) {
      return is_present(arrival) && sources_.contains(arrival.worker);
    });
    if (std::ssize(sources_) > present)
      std::erase_if(sources_, [&](const auto& source) { return is_done(source.first); });
    if (region_.parts.empty()) return;
    looked_at_ = (looked_at_ + 1) % region_.parts.size();  // one a round, which costs little
    if (is_done(static_cast<int>(looked_at_))) unmap(region_.parts[looked_at_]);
  }

  DeviceWork& copies() const { return *copies_; }

 private:
  const PayloadShape& shape() const { return images_.shape(); }

  /// The image in the source's own part; null if this worker cannot load from that.
  const std::byte* mapped(const Arrival& arrival) const {
    if (region_.parts.empty()) return nullptr;
    std::byte* part = region_.parts[static_cast<std::size_t>(arrival.worker)].get();
    return part == nullptr ? nullptr : part + images_.image_offset(arrival.sequence);
  }

  bool is_unmapped(int worker) const { return unmapped_.contains(worker); }
  void unmap(std::shared_ptr<std::byte>& part) {
    if (!part) return;
    work_.settle();
    copies_->settle();
    part.reset();
    unmapped_.insert(static_cast<int>(looked_at_));
  }

  std::shared_ptr<std::byte>& room_for(int source) {
    auto& memory = sources_[source];
    if (!memory) memory = work_.allocate(images_.image_bytes());
    return memory;
  }

  const std::byte* staged(const Arrival& arrival, const PayloadPart& part) {
    std::byte* image = room_for(arrival.worker).get();
    const auto to = images_.payload<std::byte, double>(image, nullptr);
    if (!message_) {
      pins_.pin({arrival.payload.data, shape().vectors_bytes()});
      copy_vectors(to, arrival.payload, part);
      return image;
    }
    for (int k = 0; k < shape().vectors; ++k) {
      copy_optimistically(code_.data(), arrival.payload.vector(k), code_.size_bytes());
      decode(code_.data(), to.vector(k));
    }
    return image;
  }

  /// To the device.
  void decode(const std::byte* code, std::byte* vector) {
    codec::decode(message_->layout, code, packed_.get());
    copies_->copy(vector, packed_.get(), shape().vector_bytes);
    copies_->settle();
  }

  const std::byte* read(Arrival& arrival, const PayloadPart& part) {
    if (!reads_->reaches(arrival.worker)) {
      arrival.state = Arrival::State::suspect;
      return nullptr;
    }
    auto& room = room_for(arrival.worker);
    reads_->read(arrival, room, part);
    return room.get();
  }

  void copy_vectors(const MutablePayload& to, const Payload& from, const PayloadPart& part = {}) {
    const auto [begin, end] = part.within(shape().vector_bytes);
    for (int k = 0; k < shape().vectors && begin < end; ++k)
      copies_->copy(to.vector(k) + begin, from.vector(k) + begin, end - begin);
  }

  ImageLayout images_;
  DeviceWork& work_;
  std::shared_ptr<DeviceWork> copies_;
  HostPins pins_;
  DeviceRegion& region_;
  std::size_t looked_at_ = 0;  ///< a rank
  std::set<int> unmapped_;
  std::optional<StampedReads>& reads_;
  std::shared_ptr<codec::HostMessage> message_;
  std::function<bool(int)> is_gone_;
  std::shared_ptr<std::byte> packed_;                  ///< on the host: a vector of the device
  AlignedBuffer code_;                                 ///< a neighbor's vector
  std::map<int, std::shared_ptr<std::byte>> sources_;  ///< images, by worker
  std::map<int, std::vector<double>> scalars_;         ///< of these, where they are copies
};

/// The caller's thread does the device's part. Waits for other workers or for copies, and all calls
/// of `host_`, are tasks of the executor.
class StagedExchange final : public Exchange {
 public:
  StagedExchange(std::unique_ptr<Exchange> host, Staging staging)
      : host_(std::move(host)),
        images_(staging),
        exact_(staging.exact),
        weights_on_host_(staging.weights == Staging::Weights::at_the_end),
        work_(std::move(staging.work)),
        region_(std::move(staging.region)),
        stop_(std::move(staging.stop)),
        plan_(std::move(staging.plan)),
        completed_(std::move(staging.completed)),
        transfers_(images_, *work_, region_, reads_, std::move(staging.message),
                   std::move(staging.is_gone)) {
    executor_->submit([this] { work_->begin_thread(); });
    if (region_.reads) reads_.emplace(region_.reads, *host_, images_, staging.deadline, stop_);
    if (!region_.parts.empty()) memory_ = region_.parts[static_cast<std::size_t>(region_.rank)];
    if (!memory_) memory_ = work_->allocate(images_.part_bytes());
  }

  ~StagedExchange() override {
    drop_fetch();
    stop_.request_stop();
    executor_.reset();
    try {
      work_->settle();  // no copy uses the memory that is released here
      transfers_.copies().settle();
    } catch (const std::exception&) {
      return;
    }
  }

  MutablePayload acquire() override {
    drop_fetch();
    executor_->run([this] { slot_ = host_->acquire(); });
    acquired_ = true;
    if (reads_) work_->copy(stamp(sequence_ + 1), bytes_of(no_stamp_), sizeof no_stamp_);
    MutablePayload next = images_.payload(image(sequence_ + 1), slot_.scalars);
    if (weights_on_host_) next.weights = slot_.weights;
    return next;
  }

  void publish(std::int64_t round, bool with_weights) override {
    drop_fetch();
    read_.clear();  // of a round that was given up
    if (acquired_) {
      ++sequence_;
      scalars_ = slot_.scalars;
      if (region_.everywhere) scalars_[images_.shape().scalars] = static_cast<double>(sequence_);
    }
    const bool is_new = std::exchange(acquired_, false), keeps = std::exchange(keeps_, false);
    sent_ = executor_->submit([this, round, with_weights, is_new, keeps, to = slot_,
                               sequence = sequence_, is_written = work_->mark()] {
      is_written();
      if (!is_new && is_overtaken_) return;
      if (is_new && round >= 0)
        transfers_.code(images_.payload<std::byte, double>(image(sequence), nullptr));
      const std::int64_t overtaken_round = keeps ? no_round : void_round;  // kept ones are the last
      const std::int64_t of_round = is_overtaken_ ? overtaken_round : round;
      const bool goes_to_host = keeps || !(is_overtaken_ || stays_on_device(round, with_weights));
      if (is_new && goes_to_host) download(to, sequence, with_weights);
      host_->publish(of_round, goes_to_host && (with_weights || region_.everywhere));
    });
  }

  void keep_weights() override { keeps_ = true; }
  void flush() override { executor_->wait(sent_); }

  Arrival::State look(int neighbor, std::int64_t round) override {
    return host_->look(neighbor, round);
  }
  Payload published() const override { return own(sequence_, scalars_); }
  std::uint64_t sequence() const override { return sequence_; }

  void begin_fetch(std::int64_t round) override {
    drop_fetch();
    begun_ = std::make_shared<Fetch>();
    begun_->round = round;
    begun_->number = executor_->submit([this, fetch = begun_] { make(*fetch); });
  }

  std::vector<Arrival> fetch(std::int64_t round) override {
    if (!begun_ || begun_->round != round) begin_fetch(round);
    try {
      executor_->wait(begun_->number);
    } catch (...) {
      drop_fetch();
      throw;
    }
    const auto fetch = std::exchange(begun_, nullptr);
    if (fetch->failure) std::rethrow_exception(fetch->failure);
    if (fetch->is_given_up) executor_->submit([this] { is_overtaken_ = false; });
    if (exact_) read_ = fetch->arrivals;
    return std::move(fetch->arrivals);
  }

  /// Above staleness 0, fetch() has looked. Else complete() looks again, when the device has read.
  bool is_intact(const Arrival& arrival) const override {
    return !exact_ || host_->is_intact(arrival);
  }

  void complete(std::int64_t rounds) override {
    drop_fetch();
    sent_ =
        executor_->submit([this, rounds, read = std::exchange(read_, {}), is_read = work_->mark()] {
          is_read();
          is_overtaken_ = is_overtaken_ || !are_intact(read);
          host_->complete(rounds);  // its reads are over, whatever they have found
          if (completed_) completed_(rounds);
        });
  }

 private:
  struct Fetch {
    std::int64_t round = 0;
    std::uint64_t number = 0;  ///< of the executor's task
    std::vector<Arrival> arrivals;
    std::atomic<bool> is_dropped = false;
    bool is_given_up = false;      ///< see give_up()
    std::exception_ptr failure{};  ///< thrown where it is taken up
  };

  /// It waits for nobody: a neighbor that was overtaken, too, would wait for it.
  struct Overtaken {};

  /// Nobody takes it up: its waits end, and its failure is nobody's.
  void drop_fetch() {
    if (begun_) std::exchange(begun_, nullptr)->is_dropped = true;
  }
  /// On the executor's thread.
  void make(Fetch& fetch) try {
    const auto require_wanted = [&] {
      require(!fetch.is_dropped, ErrorKind::internal, "a fetch that was dropped goes on");
    };
    const WaitCheck check([&] {
      require_wanted();
      if (is_overtaken_) throw Overtaken();
    });
    require_wanted();
    try {
      fetch.arrivals = exact_ ? host_->fetch(fetch.round) : pull(fetch.round);
    } catch (const Overtaken&) {
      fetch.arrivals.resize(1);
    }
    require_wanted();
    if (is_overtaken_) give_up(fetch);
    transfers_.give_back(fetch.arrivals);
    if (exact_) transfers_.upload(fetch.arrivals, plan_ ? plan_(fetch.round).part : PayloadPart());
  } catch (...) {
    fetch.failure = std::current_exception();
  }

  std::byte* image(std::uint64_t sequence) const {
    return memory_.get() + images_.image_offset(sequence);
  }
  std::byte* stamp(std::uint64_t sequence) const {
    return image(sequence) + images_.stamp_offset();
  }
  Payload own(std::uint64_t sequence, const double* scalars) const {
    return images_.payload<const std::byte, const double>(image(sequence), scalars);
  }

  /// Above staleness 0, writers do not wait: what was copied is looked at, and copied again.
  std::vector<Arrival> pull(std::int64_t round) {
    std::vector<Arrival> found = host_->fetch(round), pulled(found.size());
    std::vector<std::size_t> torn(found.size());
    std::iota(torn.begin(), torn.end(), std::size_t{0});
    for (int pass = 1; pass <= most_passes && !torn.empty(); ++pass) {
      const auto newer = pass > 1 ? host_->fetch(round) : found;
      for (const std::size_t k : torn) pulled[k] = transfers_.pulled(found[k] = newer[k]);
      transfers_.copies().settle();
      std::erase_if(
          torn, [&](std::size_t k) { return !is_present(found[k]) || host_->is_intact(found[k]); });
    }
    for (const std::size_t k : torn) pulled[k].state = Arrival::State::torn;
    return pulled;
  }

  bool are_intact(const std::vector<Arrival>& read) const {
    return std::ranges::all_of(read, [this](const Arrival& arrival) {
      return !is_present(arrival) || host_->is_intact(arrival);
    });
  }
  /// What the last round has read was overwritten. The caller is to learn of it.
  static void give_up(Fetch& fetch) {
    for (Arrival& arrival : fetch.arrivals) arrival.state = Arrival::State::torn;
    fetch.is_given_up = !fetch.arrivals.empty();
  }

  /// Messages do, where all workers are mapped. Other publications are made for their weights.
  bool stays_on_device(std::int64_t round, bool with_weights) const {
    return region_.mapped && (weights_on_host_ ? !with_weights : round >= 0);
  }
  /// On the executor's thread.
  void download(const MutablePayload& to, std::uint64_t sequence, bool with_weights) {
    DeviceWork& copies = transfers_.copies();
    transfers_.download(to, own(sequence, nullptr), with_weights);
    if (reads_) copies.copy(stamp(sequence), bytes_of(sequence), sizeof sequence);
    copies.settle();
  }

  std::unique_ptr<Exchange> host_;
  ImageLayout images_;
  bool exact_, weights_on_host_;  ///< see Staging
  std::shared_ptr<DeviceWork> work_;
  DeviceRegion region_;    ///< executor_'s thread takes parts away
  std::stop_source stop_;  ///< of waits in host_
  EdgePlan plan_;
  std::function<void(std::int64_t)> completed_;
  std::optional<StampedReads> reads_;
  Transfers transfers_;
  std::shared_ptr<std::byte> memory_;  ///< of own images
  MutablePayload slot_;                ///< acquired
  double* scalars_ = nullptr;          ///< of the latest publication
  std::uint64_t sequence_ = 0;
  const std::uint64_t no_stamp_ = 0;
  bool acquired_ = false, keeps_ = false;
  std::vector<Arrival> read_;  ///< by the latest fetch
  bool is_overtaken_ = false;  ///< known to tasks alone
  std::uint64_t sent_ = 0;     ///< the latest task other than fetches
  std::shared_ptr<Fetch> begun_;
  std::unique_ptr<SerialExecutor> executor_ = std::make_unique<SerialExecutor>();
};

}  // namespace

std::function<void()> DeviceWork::mark() {
  return [wait = make_mark(), limit = deadline_, hangs = hangs_] {
    try {
      wait(Deadline(*hangs ? std::min(limit, short_wait) : limit));
      *hangs = false;
    } catch (const Error& error) {
      if (error.kind() == ErrorKind::deadline) *hangs = true;
      throw;
    }
  };
}

std::shared_ptr<void> DeviceWork::hold(std::shared_ptr<void> memory, std::size_t size_bytes) {
  *held_ += size_bytes;
  void* const first = memory.get();
  const auto release = [memory = std::move(memory), held = held_, hangs = hangs_,
                        size_bytes](void* /*first*/) mutable {
    if (*hangs) return leak_until_exit(std::move(memory));
    *held -= size_bytes;
  };
  return {first, release};
}

std::shared_ptr<std::byte> DeviceWork::allocate(std::size_t size_bytes) {
  const auto memory = make_memory(size_bytes);
  return {hold(memory, size_bytes), memory.get()};
}

std::shared_ptr<std::byte> DeviceWork::allocate_on_host(std::size_t size_bytes) {
  const auto memory = make_host_memory(size_bytes);
  return {hold(memory, 0), memory.get()};
}

PayloadShape host_shape(const PayloadShape& shape, const DeviceRegion& region) {
  if (!region.everywhere) return shape;
  const std::size_t weights = shape.weights_bytes > 0 ? shape.weights_bytes : shape.vector_bytes;
  return {cache_line_bytes, 1, shape.scalars + 1, weights};
}

std::size_t staged_bytes(const Staging& staging) { return ImageLayout(staging).part_bytes(); }

std::unique_ptr<Exchange> staged_exchange(std::unique_ptr<Exchange> host, Staging staging) {
  const DeviceRegion& region = staging.region;
  const std::size_t wanted = staged_bytes(staging);
  require(region.parts.empty() || region.part_bytes >= wanted, ErrorKind::internal,
          "staged_exchange: parts have {} bytes, {} are required", region.part_bytes, wanted);
  return std::make_unique<StagedExchange>(std::move(host), std::move(staging));
}

}  // namespace fast
