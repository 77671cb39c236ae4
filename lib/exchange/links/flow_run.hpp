// One rank's part in a trial of messages.
#pragma once

#include <fast/core/deadline.hpp>
#include <memory>
#include <vector>

#include "exchange/links/link_measurement.hpp"
#include "mpi/request.hpp"

namespace fast::exchange {

/// Used once. Buffers that MPI may still use after the deadline stay allocated, and so does the
/// communicator of `messages`, whose last ones nobody receives.
class FlowRun {
 public:
  /// Of `flows`, those from and to `rank` are run.
  FlowRun(const mpi::Messages& messages, int rank, const std::vector<Flow>& flows, int count);
  FlowRun(const FlowRun&) = delete;
  FlowRun& operator=(const FlowRun&) = delete;
  ~FlowRun();

  /// False if some message or answer has not come by the deadline.
  bool run(const Deadline& deadline);
  /// Of the flows from this rank, one after the other: `count` times each. Zeros: not answered.
  const std::vector<double>& seconds() const { return seconds_; }
  /// A rank that has not answered or sent, after run() was false.
  int waits_for() const;

 private:
  struct Side;
  struct Buffers;

  bool advance_sender(std::size_t index);
  bool advance_receiver(std::size_t index);
  void begin_message(Side& side);

  const mpi::Messages& messages_;
  int count_;
  std::shared_ptr<Buffers> buffers_;
  std::vector<Side> senders_, receivers_;
  std::vector<double> seconds_;
};

}  // namespace fast::exchange
