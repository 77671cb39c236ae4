// The ranks of a site: one of them leads, and does for all what the site does.
#pragma once

#include <fast/core/deadline.hpp>
#include <fast/core/memory.hpp>
#include <fast/core/tensor_view.hpp>
#include <fast/exchange/group.hpp>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

namespace fast::sites {

/// What the leading rank works on: the mean of all ranks' weights, or its own.
enum class Given { mean, own };
/// What all ranks take of its result: the parameters' change, which each adds to its own (buffers
/// become those of the result); the weights; or nothing.
enum class Take { change, weights, nothing };

/// The leading rank's part. `weights` are of its own memory; what it writes there is the result.
/// The number that it returns is that of all ranks.
using Lead = std::function<std::int64_t(const ParameterLayout& weights)>;

/// One rank's part. The ranks make the same calls in the same order.
class SiteRanks {
 public:
  virtual ~SiteRanks() = default;

  /// Blocks until the leading rank has acted. An error of `lead` is thrown on all ranks, marked
  /// Error::everywhere().
  virtual std::int64_t meet(Given given, Take take, const Lead& lead) = 0;
  /// This rank leads the next meeting, as far as it knows.
  virtual bool leads() const = 0;
  /// What this rank's `lead` gets: always the same memory.
  virtual ParameterLayout weights() = 0;
  /// The leading rank keeps this for the one that leads after it. Collective; as many bytes each
  /// time.
  virtual void open_handover(std::size_t bytes) = 0;
  virtual void leave_handover(std::span<const std::byte> bytes) = 0;
  /// What a rank that led before has left. Empty: this is the first one, or nothing is kept.
  virtual std::span<const std::byte> handover() const = 0;
  /// The model has moved in memory.
  virtual void rebind(const ParameterLayout& model) = 0;
};

/// Collective over the group. On one host, ranks may be lost: the lowest that lives leads. If it is
/// lost while it acts, the next one acts again. On several hosts, rank 0 leads, and a rank that is
/// lost ends the next meeting with an error. `longest`: of the leading rank's act.
///
/// Memory: a model on each rank of one host, three on the rank that leads, and what it leaves;
/// three on each rank of several hosts.
std::unique_ptr<SiteRanks> make_ranks(const Group& group, const ParameterLayout& model,
                                      Seconds longest);

}  // namespace fast::sites
