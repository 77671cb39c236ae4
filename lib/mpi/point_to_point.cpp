#include <fast/mpi/communicator.hpp>

#include <algorithm>
#include <climits>
#include <deque>
#include <fast/core/error.hpp>
#include <thread>
#include <utility>
#include <vector>

#include "core/leak_until_exit.hpp"
#include "core/waits.hpp"
#include "mpi/impl.hpp"
#include "mpi/launcher.hpp"
#include "mpi/request.hpp"

namespace fast::mpi {
namespace {

constexpr int only_tag = 1;
constexpr Seconds limit_at_end{0.1};
/// The launcher reports the end of a rank a little later than its connections break.
constexpr Seconds until_report{1};

bool has_ended(const std::vector<int>& peer) {
  const Deadline deadline(launcher_reports_ends() ? until_report : Seconds(0));
  return look_until([&] { return !ended_among(peer).empty(); }, deadline,
                    std::chrono::milliseconds(1));
}

}  // namespace

struct PointToPoint::Impl {
  struct Sent {
    std::vector<std::byte> bytes;  ///< MPI's until the request is done
    Request request;
  };

  Impl(const Communicator& of, const Deadline& deadline)
      : communicator(of), messages(of, deadline) {}
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  ~Impl() {
    try {
      for (const Deadline deadline(limit_at_end); !sent.empty() && !deadline.expired();) {
        reap();
        std::this_thread::yield();
      }
    } catch (const Error&) {  // the peer is gone
    }
    if (!sent.empty()) leak_until_exit(messages);
    for (Sent& one : sent) leak_until_exit(std::move(one.bytes));
  }

  void check_peer(int peer, std::size_t size_bytes) const {
    require(peer >= 0 && peer < communicator.size(), ErrorKind::argument,
            "PointToPoint: rank {} of {}; 0..{} are required", peer, communicator.size(),
            communicator.size() - 1);
    require(size_bytes <= INT_MAX, ErrorKind::argument,
            "PointToPoint: a message of {} bytes; at most {} are possible, send it in parts",
            size_bytes, INT_MAX);
  }

  /// Its number among all ranks of the program.
  std::vector<int> in_world(int peer) const {
    return {communicator.impl()->world_ranks[static_cast<std::size_t>(peer)]};
  }

  /// A send to a rank that has ended may fail, or never be done.
  Request start(int rank, const std::vector<std::byte>& bytes) const {
    const std::vector<int> peer = in_world(rank);
    const auto require_life = [&](bool ended) {
      require(!ended, ErrorKind::peer_failed,
              "PointToPoint: rank {} has ended; a message to it is lost", peer.front());
    };
    require_life(!ended_among(peer).empty());
    try {
      return messages.send(rank, only_tag, bytes.data(), bytes.size());
    } catch (const Error&) {
      require_life(has_ended(peer));
      throw;
    }
  }

  /// Requests end in any order, as the receivers take their messages.
  void reap() {
    for (std::size_t i = 0; i < sent.size();) {
      if (!sent[i].request.test()) {
        ++i;
        continue;
      }
      spare.push_back(std::move(sent[i].bytes));
      sent.erase(sent.begin() + static_cast<std::ptrdiff_t>(i));
    }
  }

  /// False after the deadline.
  /// A message that is under way at the deadline may arrive later: its memory stays.
  bool receive(int rank, std::span<std::byte> into, const Deadline& deadline,
               const std::vector<int>& peer) {
    std::vector<std::byte> arrived = memory();
    arrived.resize(into.size());
    Request request = messages.receive(rank, only_tag, arrived.data(), arrived.size());
    bool is_there = false;
    try {
      is_there = request.wait(deadline, peer);
    } catch (...) {
      leak_until_exit(std::move(arrived));
      throw;
    }
    if (is_there) {
      std::ranges::copy(arrived, into.begin());
      spare.push_back(std::move(arrived));
    } else {
      leak_until_exit(std::move(arrived));
    }
    return is_there;
  }

  /// Memory of an earlier message, if there is one.
  std::vector<std::byte> memory() {
    if (spare.empty()) return {};
    std::vector<std::byte> found = std::move(spare.back());
    spare.pop_back();
    return found;
  }

  Communicator communicator;
  Messages messages;
  std::deque<Sent> sent;
  std::vector<std::vector<std::byte>> spare;  ///< buffers to be used again
};

PointToPoint::PointToPoint(const Communicator& communicator, const Deadline& deadline)
    : impl_(std::make_unique<Impl>(communicator, deadline)) {}
PointToPoint::PointToPoint(PointToPoint&&) noexcept = default;
PointToPoint& PointToPoint::operator=(PointToPoint&&) noexcept = default;
PointToPoint::~PointToPoint() = default;

int PointToPoint::rank() const { return impl_->communicator.rank(); }
int PointToPoint::size() const { return impl_->communicator.size(); }

void PointToPoint::send(int rank, std::span<const std::byte> bytes) {
  impl_->check_peer(rank, bytes.size());
  impl_->reap();
  std::vector<std::byte> copy = impl_->memory();
  copy.assign(bytes.begin(), bytes.end());
  Request request = impl_->start(rank, copy);
  impl_->sent.push_back({std::move(copy), std::move(request)});
}

void PointToPoint::receive(int rank, std::span<std::byte> into, const Deadline& deadline) {
  impl_->check_peer(rank, into.size());
  const std::vector<int> peer = impl_->in_world(rank);
  if (impl_->receive(rank, into, deadline, peer)) return;
  const bool ended = !ended_among(peer).empty();
  require(!ended, ErrorKind::peer_failed, "PointToPoint: rank {} has ended; its message is missing",
          peer.front());
  fail(ErrorKind::deadline,
       "PointToPoint: rank {} sent no message in {:.1f} s; look for one that hangs or has ended",
       peer.front(), deadline.elapsed_s());
}

}  // namespace fast::mpi
