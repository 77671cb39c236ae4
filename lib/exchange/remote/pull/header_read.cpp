#include "exchange/remote/pull/header_read.hpp"

#include <cstring>
#include <fast/core/error.hpp>

namespace fast::exchange {

void HeaderRead::begin() {
  std::memset(bytes_, 0, sizeof bytes_);
  request_ = window_.get(worker_, 0, bytes_, sizeof bytes_);
}

/// MPICH may report a read as complete that a broken connection has not carried out.
bool HeaderRead::test() {
  if (!request_.test()) return false;
  const bool is_whole = header().constant.magic.load(std::memory_order_relaxed) == board_magic;
  require(is_whole, ErrorKind::mpi, "MPI_Rget: the header of worker {} did not arrive", worker_);
  return true;
}

}  // namespace fast::exchange
