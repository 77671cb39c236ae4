// Trials over MPI: rank 0 tells the other ranks what to do.
#pragma once

#include <fast/core/deadline.hpp>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "exchange/links/link_measurement.hpp"
#include "mpi/request.hpp"

namespace fast::exchange {

/// On rank 0. The other ranks are in serve_trials() meanwhile.
class MpiTrials final : public LinkTrials {
 public:
  /// `name_of_rank` names each rank's host. All must outlive this.
  MpiTrials(const mpi::Messages& messages, const std::vector<std::string>& name_of_rank,
            Seconds answer_within);
  ~MpiTrials() override;

  TrialTimes run(const std::vector<Flow>& flows, int count) override;
  /// Ends serve_trials() everywhere, which returns these bytes.
  void finish(std::string_view bytes);
  /// Ends it with this error.
  void give_up(std::string_view error);

 private:
  struct Order;
  struct Report;

  void send_order(int rank, std::shared_ptr<Order> order);
  void end(std::int64_t kind, std::string_view bytes);
  std::vector<Report> order_all(const std::vector<Flow>& flows, int count);
  void collect(std::vector<Report>& reports, const Deadline& deadline);
  [[noreturn]] void fail_for(const std::vector<Report>& reports, int own_missing) const;
  std::string hosts_of(const std::vector<int>& ranks) const;

  const mpi::Messages& messages_;
  const std::vector<std::string>& names_;
  Seconds answer_within_;
  std::vector<std::shared_ptr<Order>> orders_;  ///< that MPI may still send
};

/// On the other ranks: does what rank 0 says until it ends the trials. Returns the bytes of
/// finish(). Throws Error(deadline) after give_up(). When rank 0 says nothing for `patience`, or
/// has ended, throws Error(deadline) on the lowest rank that lives and Error(peer_failed) on the
/// others. `ended`: ranks that are known to have ended; empty: that is not known.
std::string serve_trials(const mpi::Messages& messages, int rank, Seconds answer_within,
                         Seconds patience, const std::function<std::vector<int>()>& ended = {});

}  // namespace fast::exchange
