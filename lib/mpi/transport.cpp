#include "mpi/transport.hpp"

#include <filesystem>

namespace fast::mpi {

bool has_rdma() {
  std::error_code none;
  return !std::filesystem::is_empty("/sys/class/infiniband", none) && !none;
}

}  // namespace fast::mpi
