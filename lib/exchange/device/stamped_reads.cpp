#include "exchange/device/stamped_reads.hpp"

#include <fast/core/error.hpp>

#include "core/leak_until_exit.hpp"

namespace fast::exchange {

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

void StampedReads::read(Arrival& arrival, std::shared_ptr<std::byte>& room,
                        const PayloadPart& part) {
  // The source's own number, in the last scalar: publications in a mirror are numbered differently.
  const auto sequence =
      static_cast<std::uint64_t>(arrival.payload.scalars[images_.shape().scalars]);
  Target& target = left_to_mpi_.emplace_back(Target{std::move(room)});
  if (!has_arrived(arrival, sequence, target, part)) {
    arrival.state = Arrival::State::suspect;
    return;
  }
  if (*target.stamp != sequence) arrival.state = Arrival::State::missed;
  room = std::move(target.image);
  left_to_mpi_.pop_back();
}

bool StampedReads::has_arrived(const Arrival& arrival, std::uint64_t sequence, const Target& target,
                               const PayloadPart& part) {
  const auto [begin, end] = part.within(images_.shape().vectors_bytes());
  const std::size_t from = images_.image_offset(sequence);
  const Deadline deadline(deadline_);
  const auto goes_on = [&] { return this->goes_on(arrival, deadline); };
  try {
    return reads_->read(arrival.worker, from + begin, target.image.get() + begin, end - begin,
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
  check_wait();
  return !stop_.stop_requested() &&
         host_.look(arrival.worker, arrival.round) != Arrival::State::suspect;
}

}  // namespace fast::exchange
