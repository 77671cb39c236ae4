// A copy of the header of a worker on another host, brought by MPI_Rget.
#pragma once

#include "exchange/shared/slot_board.hpp"
#include "mpi/remote_window.hpp"

namespace fast::exchange {

/// One read at a time. MPI writes into this object until test() has returned true.
class HeaderRead {
 public:
  HeaderRead(const mpi::RemoteWindow& window, int worker) : window_(window), worker_(worker) {}
  HeaderRead(const HeaderRead&) = delete;
  HeaderRead& operator=(const HeaderRead&) = delete;

  void begin();
  /// True when the read is done. Throws Error(mpi) if it failed.
  bool test();
  bool is_under_way() const { return request_.is_under_way(); }

  /// The header as the latest read found it. Its cache lines need not be of one moment.
  const WorkerHeader& header() const { return *reinterpret_cast<const WorkerHeader*>(bytes_); }

 private:
  const mpi::RemoteWindow& window_;
  int worker_;
  alignas(WorkerHeader) std::byte bytes_[sizeof(WorkerHeader)] = {};
  mpi::Request request_;
};

}  // namespace fast::exchange
