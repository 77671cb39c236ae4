#include "exchange/device/stamped_reads.hpp"

#include <algorithm>
#include <fast/core/error.hpp>
#include <thread>

#include "core/leak_until_exit.hpp"

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

StampedReads::StampedReads(std::shared_ptr<RemoteReads> reads, Exchange& host,
                           const ImageLayout& images, Seconds deadline, std::stop_source stop)
    : reads_(std::move(reads)),
      host_(host),
      images_(images),
      deadline_(deadline),
      stop_(std::move(stop)) {}

StampedReads::~StampedReads() {
  if (!left_to_mpi_.empty()) leak_until_exit(std::move(left_to_mpi_));
}

void StampedReads::read(Arrival& arrival, std::shared_ptr<std::byte>& room) {
  // The source's own number, in the last scalar: publications in a mirror are numbered differently.
  const auto sequence =
      static_cast<std::uint64_t>(arrival.payload.scalars[images_.shape().scalars]);
  Target& target = left_to_mpi_.emplace_back(Target{std::move(room)});
  if (!has_arrived(arrival, sequence, target)) {
    arrival.state = Arrival::State::suspect;
    return;
  }
  if (*target.stamp != sequence) arrival.state = Arrival::State::missed;
  room = std::move(target.image);
  left_to_mpi_.pop_back();
}

bool StampedReads::has_arrived(const Arrival& arrival, std::uint64_t sequence,
                               const Target& target) {
  const std::size_t from = images_.image_offset(sequence);
  const Deadline deadline(deadline_);
  const auto goes_on = [&] { return this->goes_on(arrival, deadline); };
  try {
    return reads_->read(arrival.worker, from, target.image.get(), images_.shape().vectors_bytes(),
                        goes_on) &&
           reads_->read(arrival.worker, from + images_.stamp_offset(), target.stamp.get(),
                        sizeof(std::uint64_t), goes_on);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::mpi) throw;
    unreachable_.insert(arrival.worker);
    return false;
  }
}

bool StampedReads::goes_on(const Arrival& arrival, const Deadline& deadline) const {
  require(!deadline.expired(), ErrorKind::deadline,
          "reading a neighbor: the weights of worker {} in round {} have not arrived in {:.1f} s; "
          "find out what stops it, or set a longer deadline",
          arrival.worker, arrival.round, deadline.limit_s());
  return !stop_.stop_requested() &&
         host_.look(arrival.worker, arrival.round) != Arrival::State::suspect;
}

}  // namespace fast::exchange
