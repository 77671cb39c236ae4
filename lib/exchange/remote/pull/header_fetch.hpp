// Brings the counters and the status of a worker on another host into its mirror, once.
#pragma once

#include "exchange/remote/pull/header_read.hpp"
#include "exchange/remote/remote_task.hpp"
#include "exchange/remote/replicator.hpp"

namespace fast::exchange {

class HeaderFetch final : public RemoteTask {
 public:
  HeaderFetch(const SlotBoard& board, const mpi::RemoteWindow& window, int worker)
      : RemoteTask(worker), mirror_(board, worker), header_(window, worker) {}

  bool advance(bool is_followed) override;
  bool ended() const override { return state_ == State::ended; }
  bool released() override { return !header_.is_under_way() || header_.test(); }

 private:
  enum class State { idle, looking, ended };

  MirrorWriter mirror_;
  HeaderRead header_;
  State state_ = State::idle;
};

}  // namespace fast::exchange
