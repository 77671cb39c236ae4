// Workers of other hosts, as if they were here: a thread pulls what neighbours publish into local
// memory of the same layout (MPI_Rget of the header, of the slot in chunks, of the header again),
// so that SlotExchange reads a mirror as it reads a shared slot. The same thread lets MPI serve the
// pulls of others.
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "exchange/remote_access.hpp"
#include "exchange/slot_board.hpp"
#include "mpi/remote_window.hpp"

namespace fast::exchange {

class RemoteMirror : public RemoteAccess {
 public:
  /// `is_remote[w]`: worker w's part of the board is a mirror. `window` exposes every worker's own
  /// part.
  RemoteMirror(std::shared_ptr<const SlotBoard> board, std::unique_ptr<mpi::RemoteWindow> window,
               int rank, std::vector<bool> is_remote, EdgePlan plan, std::int64_t staleness);
  ~RemoteMirror() override;
  RemoteMirror(const RemoteMirror&) = delete;
  RemoteMirror& operator=(const RemoteMirror&) = delete;

  bool is_remote(int worker) const override { return is_remote_[static_cast<std::size_t>(worker)]; }
  bool look(int worker, const Deadline& deadline) override;
  Snapshot snapshot(int worker, std::span<std::byte> room, const Deadline& deadline) override;

 private:
  struct HeaderImage;
  struct Pull;
  struct Errand;

  void run();
  bool drain();
  std::int64_t consumed() const;
  void watch_neighbors();
  bool follows(int worker) const;
  void advance(Pull& pull);
  void take_over(Pull& pull, const HeaderImage& image);
  void take_over_status(Pull& pull);
  std::optional<std::int64_t> first_read(int worker, std::int64_t from, std::int64_t to) const;
  bool owes(const Pull& pull) const;
  bool choose(Pull& pull) const;
  std::optional<std::int64_t> next_needed(int worker, std::int64_t after) const;
  void begin_copy(Pull& pull);
  bool copy_some(Pull& pull);
  void finish(Pull& pull);
  bool run_errands();
  bool await(const std::shared_ptr<Errand>& errand, const Deadline& deadline);

  std::shared_ptr<const SlotBoard> board_;
  std::unique_ptr<mpi::RemoteWindow> window_;
  int rank_;
  std::vector<bool> is_remote_;
  EdgePlan plan_;
  std::int64_t staleness_;
  std::int64_t watched_ = -1;
  std::vector<std::unique_ptr<Pull>> pulls_;  ///< one a remote neighbour
  std::mutex mutex_;                          ///< guards errands_
  std::condition_variable errand_done_;
  std::deque<std::shared_ptr<Errand>> errands_;
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

}  // namespace fast::exchange
