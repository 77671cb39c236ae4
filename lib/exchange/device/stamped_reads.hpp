// Reads of images in the device memory of other hosts.
#pragma once

#include <memory>
#include <set>
#include <stop_token>
#include <utility>
#include <vector>

#include "exchange/device/image.hpp"
#include "exchange/device/staged.hpp"

namespace fast::exchange {

/// Reads an image and then the number of its publication: that tells whether the whole image is of
/// that publication. Used by one thread.
class StampedReads {
 public:
  /// `host` is the exchange that the sources' scalars come through.
  StampedReads(std::shared_ptr<RemoteReads> reads, Exchange& host, const ImageLayout& images,
               Seconds deadline, std::stop_source stop);
  StampedReads(const StampedReads&) = delete;
  StampedReads& operator=(const StampedReads&) = delete;
  /// Memory that MPI may still write to is kept until the process ends.
  ~StampedReads();

  /// False after MPI has failed to read that worker's memory. It is not asked again.
  bool reaches(int worker) const { return !unreachable_.contains(worker); }
  /// Blocks until the vectors of the arrival, or `part` of the only one, are in `room`. The
  /// arrival's state is suspect if they cannot be read, missed if they were overwritten; then
  /// `room` is null if MPI keeps it.
  void read(Arrival& arrival, std::shared_ptr<std::byte>& room, const PayloadPart& part);

 private:
  /// What MPI writes to.
  struct Target {
    std::shared_ptr<std::byte> image;
    std::unique_ptr<std::uint64_t> stamp = std::make_unique<std::uint64_t>(0);
  };
  bool has_arrived(const Arrival& arrival, std::uint64_t sequence, const Target& target,
                   const PayloadPart& part);
  bool goes_on(const Arrival& arrival, const Deadline& deadline) const;

  std::shared_ptr<RemoteReads> reads_;
  Exchange& host_;
  ImageLayout images_;
  Seconds deadline_;
  std::stop_source stop_;
  std::set<int> unreachable_;        ///< MPI has failed
  std::vector<Target> left_to_mpi_;  ///< of reads that were given up
};

}  // namespace fast::exchange
