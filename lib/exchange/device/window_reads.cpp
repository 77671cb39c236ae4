#include "exchange/device/window_reads.hpp"

#include <algorithm>
#include <thread>

namespace fast::exchange {
namespace {

constexpr std::size_t most_bytes_at_once = std::size_t{1} << 30;
constexpr int quick_polls = 1000;
constexpr auto pause = std::chrono::microseconds(50);

/// False when goes_on() has said no: the request is still under way.
bool await(mpi::Request request, const std::function<bool()>& goes_on) {
  for (int poll = 0; !request.test(); ++poll) {
    if (poll < quick_polls) {
      std::this_thread::yield();
      continue;
    }
    if (!goes_on()) return false;
    std::this_thread::sleep_for(pause);
  }
  return true;
}

}  // namespace

bool WindowReads::read(int worker, std::size_t offset, void* to, std::size_t size_bytes,
                       const std::function<bool()>& goes_on) {
  for (std::size_t at = 0; at < size_bytes; at += most_bytes_at_once) {
    const std::size_t count = std::min(most_bytes_at_once, size_bytes - at);
    auto request = window_->get(worker, offset + at, static_cast<std::byte*>(to) + at, count);
    if (!await(std::move(request), goes_on)) return false;
  }
  return true;
}

}  // namespace fast::exchange
