#include "exchange/remote/window_reads.hpp"

#include <thread>

#include "mpi/impl.hpp"

namespace fast::exchange {
namespace {

constexpr std::size_t most_at_once = std::size_t{1} << 30;
constexpr int quick_looks = 1000;
constexpr auto nap = std::chrono::microseconds(50);

/// False when the request is left to MPI.
bool await(MPI_Request& request, const std::function<bool()>& goes_on) {
  for (int look = 0; !mpi::done(request); ++look) {
    if (look < quick_looks) {
      std::this_thread::yield();
      continue;
    }
    if (!goes_on()) return false;
    std::this_thread::sleep_for(nap);
  }
  return true;
}

}  // namespace

bool WindowReads::read(int worker, std::size_t offset, void* to, std::size_t size_bytes,
                       const std::function<bool()>& goes_on) {
  for (std::size_t at = 0; at < size_bytes; at += most_at_once) {
    const std::size_t count = std::min(most_at_once, size_bytes - at);
    MPI_Request request =
        window_->get(worker, offset + at, static_cast<std::byte*>(to) + at, count);
    if (!await(request, goes_on)) return false;
  }
  return true;
}

}  // namespace fast::exchange
