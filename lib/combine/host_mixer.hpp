// Sweeps over host memory: in blocks that stay in the first-level cache, so that the neighbors'
// sum, the rule and the next publication make one pass over memory.
#pragma once

#include <fast/core/memory.hpp>

#include "combine/mixer.hpp"
#include "core/thread_crew.hpp"

namespace fast::combine {

class HostMixer final : public Mixer {
 public:
  /// As Mixer. Sweeps use so many threads, the caller's among them, if the arithmetic of the rule
  /// treats each element by itself. The bits are the same with any number.
  HostMixer(ParameterLayout layout, std::shared_ptr<algorithm::Algorithm> algorithm,
            const codec::Options& codec, bool sums = false, int threads = 1);

  /// True if so many threads sweep a model of so many parameters with that rule. Rules whose
  /// running sums travel have one thread all the same.
  static bool shares_sweeps(const algorithm::Algorithm& algorithm, std::size_t parameters,
                            int threads);

  std::vector<TensorView> state() override;

 private:
  struct Part;
  template <class Stored>
  struct SegmentSweep;
  void run(const Pass& pass) override;
  /// Of that part of the vector; the default: of all.
  void sweep(const Pass& pass, const PayloadPart& part);
  /// Whether threads may share the blocks of that pass.
  bool may_share(const Pass& pass) const;
  void sweep(const Pass& pass, Part& part, bool shared);
  void sweep_alone(const Pass& pass, Part part);
  void share(const Pass& pass, std::vector<Part>& parts);
  void begin_message(const Pass& pass);
  /// The number by which a message of that combination says which entries travel.
  std::int64_t selected_by(std::int64_t round) const;
  AlignedBuffer kept() const;
  template <class T>
  const PartUpdate<T>* update() const {
    const auto* held = std::get_if<const PartUpdate<T>*>(&update_);
    return held == nullptr ? nullptr : *held;
  }

  bool keeps_own_;        ///< the payload is needed again, and messages may not be the same
  std::size_t widening_;  ///< from the packed offset of an element to that in the buffers below
  // In the type of computation.
  std::vector<AlignedBuffer> state_;
  std::vector<AlignedBuffer> gathered_;  ///< pulls, by payload vector
  std::vector<AlignedBuffer> sent_;      ///< payloads, where kept
  codec::Coder coder_;
  std::vector<codec::SparseWriter> writers_;
  AlignedBuffer remainder_;           ///< of 16-bit weights: bf16, laid out as the model
  std::unique_ptr<ThreadCrew> crew_;  ///< null: one thread sweeps
};

}  // namespace fast::combine
