// The books of a worker whose messages are running sums: what it has published so far, and how much
// of its neighbors' sums it has taken. Whatever is read late, twice or never, nothing is lost or
// counted twice (Hadjicostis, Vaidya & Dominguez-Garcia 2016, "Robust distributed average consensus
// via exchange of running sums").
#pragma once

#include <array>
#include <fast/algorithm/algorithm.hpp>
#include <fast/core/memory.hpp>
#include <map>
#include <vector>

namespace fast::combine {

class RunningSums {
 public:
  using Scalars = std::array<double, algorithm::max_payload_scalars>;

  /// A sum over publications, of one worker; vectors without memory are not summed.
  struct Sum {
    std::array<AlignedBuffer, algorithm::max_payload_vectors>
        vectors;  ///< of doubles, by parameter
    Scalars scalars{};
    double* at(int vector, std::size_t first) const {
      return vectors[static_cast<std::size_t>(vector)].as<double>().data() + first;
    }
  };
  /// Of a neighbor: what was combined, and what has been read since and may be torn.
  struct Source {
    Sum taken, read;
    bool same_epoch = true;  ///< what it sends now goes on from what was taken
  };

  RunningSums(int summed_from, int vectors, std::size_t parameter_count)
      : summed_from_(summed_from),
        vectors_(vectors),
        bytes_(sizeof(double) * parameter_count),
        own_(make()) {}

  Sum& own() { return own_; }  ///< of this worker's publications
  Source& source(int worker) {
    const auto known = sources_.find(worker);
    if (known != sources_.end()) return known->second;
    return sources_.emplace(worker, Source{make(), make()}).first->second;
  }
  /// Nothing has been published or taken.
  void restart() {
    own_ = make();
    sources_.clear();
  }
  /// What was read of these is combined.
  void take(const std::vector<int>& workers) {
    for (const int worker : workers) {
      Source& from = source(worker);
      if (from.same_epoch) std::swap(from.taken, from.read);
    }
  }

 private:
  Sum make() const {
    Sum sum;
    for (int k = summed_from_; k < vectors_; ++k) {
      sum.vectors[static_cast<std::size_t>(k)] = AlignedBuffer(bytes_);
    }
    return sum;
  }

  int summed_from_, vectors_;
  std::size_t bytes_;
  Sum own_;
  std::map<int, Source> sources_;
};

}  // namespace fast::combine
