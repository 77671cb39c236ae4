// Knowledge of peers over a slot board.
#pragma once

#include <memory>
#include <mutex>
#include <set>

#include "exchange/peers.hpp"
#include "exchange/remote/remote_access.hpp"
#include "exchange/shared/heartbeat.hpp"
#include "membership/periodic_thread.hpp"

namespace fast::exchange {

/// Announces this worker's status, runs its heartbeat on a background thread, looks at the others.
class SlotPeers : public Peers, public Results {
 public:
  /// `remote` serves workers of other hosts; null when there are none.
  explicit SlotPeers(std::shared_ptr<Heartbeat> heartbeat,
                     std::shared_ptr<RemoteAccess> remote = nullptr);

  const std::shared_ptr<Heartbeat>& heartbeat() const { return heartbeat_; }

  PeerState peer(int worker) const override;
  bool is_suspect(int worker) const override;
  Seconds suspect_after(int worker) const override;
  void note_progress() override { board_->header(rank_).note_progress(); }
  bool announce(WorkerStatus status) override;
  using Peers::snapshot;
  Snapshot snapshot(int worker, std::span<std::byte> room, Piece& piece) const override;

  const std::byte* in_place(int worker, Snapshot found, const Piece& piece) const override;
  bool is_intact(int worker, const Piece& piece) const override;

  Results* results() override { return this; }
  std::span<std::byte> room() override;
  void trim() override;
  void show(const Reduced& reduced) override;
  Reduced shown(int worker) const override;
  bool read(int worker, std::size_t offset, std::span<std::byte> to) const override;

 private:
  bool look(int worker) const;
  Snapshot remote_snapshot_of(int worker, std::span<std::byte> room, Piece& piece) const;
  bool may_answer(int worker) const;
  bool is_remote(int worker) const { return remote_ && remote_->is_remote(worker); }

  std::shared_ptr<Heartbeat> heartbeat_;
  std::shared_ptr<const SlotBoard> board_;
  int rank_;
  std::shared_ptr<RemoteAccess> remote_;
  mutable std::mutex mutex_;      ///< guards silent_
  mutable std::set<int> silent_;  ///< workers of other hosts that have not answered the latest look
  membership::PeriodicThread beats_;  ///< declared last: it uses the others
};

}  // namespace fast::exchange
