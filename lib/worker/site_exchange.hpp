// What a worker asks of the exchange with other sites. fast::sites has it (sites::join).
#pragma once

#include <fast/core/observer.hpp>
#include <fast/core/tensor_view.hpp>
#include <fast/exchange/group.hpp>

#include <cstdint>
#include <string>
#include <vector>

namespace fast {

/// One rank's part, which calls it on its own thread; on all ranks of the job in the same steps.
/// Weights are in host memory.
class SiteExchange {
 public:
  virtual ~SiteExchange() = default;
  /// The site's name and how often it exchanges: equal on all ranks of the job.
  virtual std::string describe() const = 0;
  /// Collective over the ranks of the job, as restored(), put_back() and those calls of end_step()
  /// are after which an exchange is due. Blocks until this site takes part, and takes over the
  /// weights of a site that is further. Returns the rounds that count as made. The tensors stay in
  /// place until rebind(). `log` is told what happens, by any thread.
  virtual std::int64_t begin(const Group& group, const ParameterLayout& layout,
                             const LogSink& log) = 0;
  virtual void rebind(const ParameterLayout& layout) = 0;
  /// The worker goes on from a checkpoint after so many rounds, and no other site was further. What
  /// state() has returned is among `saved`, or the outer rule begins anew.
  virtual void restored(std::int64_t rounds, const std::vector<TensorView>& saved) = 0;
  /// What this rank keeps between exchanges, for checkpoints. Valid until the next step.
  virtual std::vector<TensorView> state() = 0;
  /// Writes the weights that begin() has taken over to the tensors once more.
  virtual void put_back() = 0;
  /// After each step, with the rounds that count as made with it, and before the workers of this
  /// site combine: changes the weights where an exchange with other sites has ended.
  virtual void end_step(std::int64_t rounds) = 0;
  /// No step follows. Blocks for a few seconds at most, while other sites read what they still
  /// need.
  virtual void finish() = 0;
  /// The worker has ended, in whichever way: the other sites hear no more of this one.
  virtual void abandon() noexcept = 0;
  /// Tells what the latest end_step() has done, as events of `worker` in `round`. After each
  /// exchange, and again and again, also what this site has done and heard so far, as scalars.
  virtual void tell(Observer& observer, int worker, std::int64_t round) = 0;
};

}  // namespace fast
