// What a combination reads: the worker's own message and those of its neighbors, which may still
// arrive or change.
#pragma once

#include <fast/algorithm/algorithm.hpp>
#include <fast/core/tensor_view.hpp>
#include <fast/exchange/exchange.hpp>
#include <fast/mixing/weights.hpp>

#include <cstdint>
#include <exception>
#include <vector>

namespace fast::combine {

/// Of a trimmed mean.
struct Trim {
  std::size_t each_side = 0;        ///< values of an element that do not count, at either end
  std::vector<std::uint64_t> kept;  ///< by neighbor, the elements that have counted so far
};

/// The round's neighbors that are present, and their weights.
struct Neighborhood {
  /// None of them, of a round with that row.
  static Neighborhood none_of(const MixingRow& row, const Payload& own);
  /// The k-th neighbor of the row has arrived.
  void add(const Arrival& arrival, const MixingRow& row, std::size_t k);

  Payload own;
  std::vector<int> workers;
  std::vector<Payload> payloads;
  std::vector<double> weights;
  double self_weight = 1;
  /// Of neighbors whose running sums were torn. They take their shares of this worker's sums all
  /// the same, so these leave it.
  double owed_weight = 0;
  std::vector<int> edges{};  ///< of Messages::by_edge: which vector of each is for this worker
  /// Of buffers, where they are limited apart from the parameters; empty: `weights`.
  std::vector<double> buffer_weights{};
  Trim* trim = nullptr;  ///< null: the average is weighted
  /// Of each shard of the model, those that count there; empty: all of the model has the same.
  std::vector<Neighborhood> shards{};
};

/// With which a rule counts vector or scalar k of the j-th neighbor's message; 0: it is not for
/// this worker.
double weight_of(const algorithm::RuleTraits& traits, const Neighborhood& near, std::size_t j,
                 int k);
/// See RoundInfo.
double neighbor_weight(const algorithm::RuleTraits& traits, const Neighborhood& near);

/// Elements of a block of a sweep; and of plain averages whose blocks are checked before they
/// count, or take in an optimizer's step: while the processor still stores one of these, it loads
/// the next one.
inline constexpr std::size_t block_elements = 2048, checked_elements = 512;

/// One object serves one round of a rule that combines block by block.
///
/// Above staleness 0, a block counts if no payload changed while the block was read. Otherwise the
/// payloads that changed are fetched again, and the block is read again: blocks of one round may
/// come from different publications of a neighbor. A neighbor whose payload changed during three
/// reads of a block is left out of that block and of all later ones.
///
/// At staleness 0, the writers wait for this worker, so that a change is an exception. Payloads
/// that are still arriving from other hosts are read as far as they have come. All blocks count, or
/// none of them, which is known at the end.
class BlockSources {
 public:
  /// `arrivals` are those of fetch_early(round), `row` has the weights W_ij in their order. Keeps
  /// references. At the end `arrivals` are what was used: the oldest publication of each neighbor,
  /// with the neighbor's latest state. `exact`: the staleness bound is 0.
  BlockSources(Exchange& exchange, std::vector<Arrival>& arrivals, const MixingRow& row,
               std::int64_t round, bool exact);

  /// True if payloads of models of that layout may be read while they arrive.
  static bool may_arrive(const ParameterLayout& layout);

  /// The neighbors that are present now, and their weights.
  const Neighborhood& neighborhood() const { return near_; }
  /// True if a block may be read again, or if the payloads were not whole at the beginning. What is
  /// computed may then not replace the weights before read() returns, or before are_whole().
  bool may_change() const { return !exact_; }
  bool are_arriving() const { return arriving_; }

  /// Calls `compute`, which reads every payload's vector 0 as far as `bytes` from its beginning,
  /// and calls it again if a payload changed meanwhile (above staleness 0). Blocks until that much
  /// of the payloads has arrived. If one does not come, `compute` is not called any more.
  template <class Compute>
  void read(std::size_t bytes, const Compute& compute) {
    if (exact_) {
      if (!arriving_ || await(bytes)) compute();
      return;
    }
    do {
      compute();
    } while (!counts());
  }
  /// For several threads at once, of payloads that are there: calls `compute` once. False if a
  /// payload changed meanwhile (above staleness 0): then, when no thread reads any more, renew().
  template <class Compute>
  bool read_once(const Compute& compute) const {
    compute();
    return exact_ || !any_torn();
  }
  /// A payload has changed.
  bool any_torn() const;
  /// Fetches the payloads that have changed, or leaves these neighbors out. It does not throw, as
  /// blocks may be combined. `progressed`: a block was read whole since the last call.
  void renew(bool progressed);
  /// After all blocks: blocks until all payloads are there. False if one does not come, or if what
  /// was read of one was not whole: its writer has gone on without this worker.
  bool are_whole() { return !exact_ || (await(whole_payload) && !any_torn()); }

  /// After all blocks: throws what was met while a payload was fetched again. Until then, the
  /// neighbors whose payloads had changed are left out.
  void rethrow() const {
    if (met_) std::rethrow_exception(met_);
  }

  /// Reads of blocks that did not count.
  std::int64_t rejected() const { return rejected_; }
  /// Seconds in which this object waited for neighbors.
  double waited_s() const { return waited_s_; }

 private:
  bool await(std::size_t bytes);
  bool counts();
  void note_whole_block();
  bool is_torn(const Arrival& arrival) const;
  void list();

  Exchange& exchange_;
  std::vector<Arrival>& oldest_;
  std::vector<Arrival> newest_;  ///< in use
  const MixingRow& row_;
  std::int64_t round_;
  bool exact_;
  Neighborhood near_;
  bool arriving_;
  std::size_t there_ = 0;  ///< bytes of every payload
  bool comes_ = true;      ///< every payload that was arriving, so far
  bool begun_ = false;     ///< a block counts
  int reads_ = 1;          ///< of the present block
  std::int64_t rejected_ = 0;
  double waited_s_ = 0;
  std::exception_ptr met_;
};

}  // namespace fast::combine
