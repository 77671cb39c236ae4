// Blocking reads of the memory of other hosts' devices, by MPI.
#pragma once

#include "exchange/device/staged.hpp"
#include "mpi/remote_window.hpp"

namespace fast::exchange {

class WindowReads final : public RemoteReads {
 public:
  explicit WindowReads(std::unique_ptr<mpi::RemoteWindow> window) : window_(std::move(window)) {}

  bool read(int worker, std::size_t offset, void* to, std::size_t size_bytes,
            const std::function<bool()>& goes_on) override;

 private:
  std::unique_ptr<mpi::RemoteWindow> window_;
};

}  // namespace fast::exchange
