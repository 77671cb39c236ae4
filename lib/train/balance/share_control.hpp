// Lets the workers of a run agree on shares: a ShareAgreement in memory that the workers of a host
// share, messages to workers of other hosts, and a thread that advances it beside training.
#pragma once

#include <fast/core/deadline.hpp>
#include <fast/exchange/group.hpp>

#include <condition_variable>
#include <mutex>
#include <optional>
#include <vector>

#include "exchange/gossip.hpp"
#include "exchange/ticker.hpp"
#include "train/balance/share_agreement.hpp"

namespace fast::train {

class ShareControl {
 public:
  struct Options {
    std::size_t batch_size = 1;
    Seconds silent_after{5};
    Seconds deadline{300};
  };
  /// Collective over a group without spares.
  ShareControl(const Group& group, Shares first, const Options& options);
  ShareControl(const ShareControl&) = delete;
  ShareControl& operator=(const ShareControl&) = delete;

  // See ShareAgreement.
  bool has_measured() const;
  void measured(int epoch, double seconds_per_sample);
  void count_round();
  /// Waits until this worker may begin the epoch, then as take(). Throws Error(deadline) when no
  /// worker makes a round for so long.
  std::optional<Shares> begin_epoch(int epoch);
  /// This worker begins no further epoch.
  void end(ShareRecords::Stage stage);

 private:
  bool tick(Seconds elapsed);
  ShareRecords records() const;

  Group group_;
  Options options_;
  Region region_;
  exchange::Gossip news_;     ///< the ticker's
  mutable std::mutex mutex_;  ///< guards agreement_
  std::condition_variable changed_;
  ShareAgreement agreement_;
  exchange::Ticker ticker_;  ///< declared last: it uses all others
};

}  // namespace fast::train
