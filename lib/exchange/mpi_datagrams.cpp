#include "exchange/mpi_datagrams.hpp"

#include <algorithm>
#include <fast/core/error.hpp>
#include <thread>
#include <utility>

#include "core/leak_until_exit.hpp"

namespace fast::exchange {
namespace {

constexpr int tag = 0;
constexpr Seconds closing_limit{0.2};

}  // namespace

MpiDatagrams::MpiDatagrams(const mpi::Communicator& communicator, std::size_t size_bytes,
                           const Deadline& deadline)
    : messages_(communicator, deadline),
      size_bytes_(size_bytes),
      sent_(static_cast<std::size_t>(communicator.size())),
      received_(std::make_shared<UnderWay>()) {
  received_->bytes.resize(size_bytes);
}

/// Receives what the others send until they have received what this rank has sent.
MpiDatagrams::~MpiDatagrams() {
  std::vector<std::byte> last(size_bytes_);
  for (const Deadline deadline(closing_limit); !all_idle() && !deadline.expired();) {
    receive(last);
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  for (const auto& note : sent_) {
    if (note && !is_idle(*note)) leak_until_exit(std::pair(note, messages_));
  }
  if (!is_idle(*received_)) leak_until_exit(received_);
}

bool MpiDatagrams::is_idle(UnderWay& note) {
  if (note.failed) return false;
  try {
    return note.request.test();
  } catch (const Error&) {
    note.failed = true;
    return false;
  }
}

bool MpiDatagrams::all_idle() {
  return std::ranges::all_of(
      sent_, [](const auto& note) { return !note || note->failed || is_idle(*note); });
}

bool MpiDatagrams::send(int rank, std::span<const std::byte> datagram) {
  auto& under_way = sent_[static_cast<std::size_t>(rank)];
  if (!under_way) under_way = std::make_shared<UnderWay>();
  if (!is_idle(*under_way)) return false;
  under_way->bytes.assign(datagram.begin(), datagram.end());
  try {
    under_way->request = messages_.send(rank, tag, under_way->bytes.data(), size_bytes_);
  } catch (const Error&) {
    under_way->failed = true;
  }
  return !under_way->failed;
}

/// False when no datagram is there. MPI may refuse when a worker has died.
bool MpiDatagrams::begin_to_receive() {
  try {
    const auto sender = messages_.unsolicited();
    if (!sender) return false;
    received_->request = messages_.receive(sender->rank, tag, received_->bytes.data(), size_bytes_);
    return true;
  } catch (const Error&) {
    return false;
  }
}

bool MpiDatagrams::receive(std::span<std::byte> datagram) {
  const bool begins = !received_->request.is_under_way() && !received_->failed;
  if (begins && !begin_to_receive()) return false;
  if (!is_idle(*received_)) {
    if (!received_->failed) return false;
    leak_until_exit(received_);  // its sender died while it was sent
    received_ = std::make_shared<UnderWay>();
    received_->bytes.resize(size_bytes_);
    return false;
  }
  std::ranges::copy(received_->bytes, datagram.begin());
  return true;
}

}  // namespace fast::exchange
