#include <algorithm>
#include <fast/core/error.hpp>
#include <mutex>
#include <utility>

#include "exchange/device/image.hpp"
#include "exchange/device/staged.hpp"

namespace fast {
namespace {

/// At staleness 0, the worker that is read soon stops: it needs messages of the one that reads.
constexpr int attempts = 8;

/// Looks for weights in host memory first: those of workers that have finished are there.
class MappedPeers final : public Peers {
 public:
  MappedPeers(std::shared_ptr<Peers> host, const Staging& staging)
      : host_(std::move(host)),
        images_(staging),
        has_weights_(staging.weights != Staging::Weights::at_the_end || staging.message),
        parts_(staging.region.parts.begin(), staging.region.parts.end()),
        work_(staging.work->beside()) {}

  PeerState peer(int worker) const override { return host_->peer(worker); }
  bool is_suspect(int worker) const override { return host_->is_suspect(worker); }
  Seconds suspect_after(int worker) const override { return host_->suspect_after(worker); }
  void note_progress() override { host_->note_progress(); }
  bool announce(WorkerStatus status) override { return host_->announce(status); }
  Results* results() override { return host_->results(); }

  using Peers::snapshot;
  Snapshot snapshot(int worker, std::span<std::byte> room, Piece& piece) const override {
    for (int attempt = 0; attempt < attempts; ++attempt) {
      Piece found = piece;
      const Snapshot on_host = host_->snapshot(worker, room, found);
      const bool is_on_device = on_host == Snapshot::message;
      if (is_on_device && host_->is_suspect(worker))
        return Snapshot::none;  // its memory may be gone
      if (!is_on_device || read(worker, found, room, attempt > 0)) {
        piece = found;
        return is_on_device ? on_device() : on_host;
      }
      if (piece.sequence != 0) break;
    }
    return Snapshot::none;
  }

 private:
  /// What a neighbor's message is.
  Snapshot on_device() const { return has_weights_ ? Snapshot::weights : Snapshot::message; }
  /// False if the worker may have written to the memory meanwhile. `quickly`: a whole model is
  /// copied on this device first, as the way to the host may take longer than a round.
  bool read(int worker, const Piece& piece, std::span<std::byte> room, bool quickly) const {
    const PayloadShape& shape = images_.shape();
    const bool beside = shape.weights_bytes > 0;
    const std::size_t all = beside ? shape.weights_bytes : shape.vector_bytes;
    const std::size_t first = std::min(all, piece.offset);
    const std::size_t count = std::min(room.size(), all - first);
    const std::shared_ptr<std::byte> part = parts_[static_cast<std::size_t>(worker)].lock();
    if (!part) return false;
    const std::byte* from = part.get() + images_.image_offset(piece.sequence) +
                            (beside ? images_.weights_offset() : 0) + first;
    // The publication that is written to the same image begins when the one before it is there.
    const auto holds = [&] {
      return host_->peer(worker).sequence <= piece.sequence + images_.count() - 2;
    };
    const std::lock_guard lock(mutex_);
    std::shared_ptr<std::byte> here;
    if (quickly && count == all) here = copied(from, count);
    if (here && !holds()) return false;
    work_->copy(room.data(), here ? here.get() : from, count);
    work_->settle();
    return here || holds();
  }
  /// Null if the device lacks memory.
  std::shared_ptr<std::byte> copied(const std::byte* from, std::size_t size_bytes) const try {
    auto here = work_->allocate(size_bytes);
    work_->copy(here.get(), from, size_bytes);
    work_->settle();
    return here;
  } catch (const Error&) {
    return nullptr;
  }

  std::shared_ptr<Peers> host_;
  exchange::ImageLayout images_;
  bool has_weights_;  ///< an image has, or what the code of a message makes of them
  std::vector<std::weak_ptr<std::byte>> parts_;
  mutable std::mutex mutex_;
  std::shared_ptr<DeviceWork> work_;
};

}  // namespace

std::shared_ptr<Peers> mapped_peers(std::shared_ptr<Peers> host, const Staging& staging) {
  return std::make_shared<MappedPeers>(std::move(host), staging);
}

}  // namespace fast
