// Lets the workers agree when all save or stop: an Agreement in memory that the workers of a host
// share, messages to workers of other hosts, and a thread that advances it beside training.
#pragma once

#include <condition_variable>
#include <fast/exchange/group.hpp>
#include <functional>
#include <mutex>
#include <thread>

#include "exchange/notes.hpp"
#include "train/control/agreement.hpp"
#include "train/control/agreement_news.hpp"

namespace fast::train {

class RunControl {
 public:
  struct Options {
    bool exact = true;  ///< all save and stop in the same round
    Seconds silent_after{5};
    Seconds deadline{300};
    std::function<bool()> stop_requested;  ///< called by the thread
  };
  /// Collective.
  RunControl(const Group& group, Options options);
  /// Gives workers of other hosts a moment to receive the news of this worker's end.
  ~RunControl();
  RunControl(const RunControl&) = delete;
  RunControl& operator=(const RunControl&) = delete;

  /// This worker wants a checkpoint of all workers.
  void request_save();
  /// See Agreement::take_turn(). Waits while the turn is `hold`; throws Error(deadline).
  Turn take_turn(std::int64_t rounds, std::int64_t ahead);
  void saved();
  std::int64_t round_of(Request what) const;
  void end(Stage stage, std::int64_t rounds);
  /// Waits until every worker except those of `lost` has ended. Whether any was stopped: the same
  /// answer on every worker.
  bool conclude(const std::vector<int>& lost);
  /// After conclude(): tells the others whether this worker has saved, and waits for theirs.
  /// Returns the lowest worker that has not saved; empty: all have.
  std::optional<int> report(bool saved);

 private:
  void run();
  void look_for_stop();
  void receive_news();
  void tick(Seconds elapsed);
  bool rest();
  Seconds silent_after() const;
  std::vector<AgreementRecord*> records() const;

  Group group_;
  Options options_;
  Region region_;
  AgreementNews news_;        ///< the thread's
  bool asked_ = false;        ///< to stop
  mutable std::mutex mutex_;  ///< guards agreement_, lost_ and quit_
  std::condition_variable changed_;
  Agreement agreement_;
  std::vector<int> lost_;
  bool quit_ = false;
  std::thread thread_;
};

}  // namespace fast::train
