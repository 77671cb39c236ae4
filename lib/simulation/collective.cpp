#include "simulation/collective.hpp"
#include <bit>

namespace fast::simulation {

Collective::Collective(Pattern pattern, int workers, double payload_bytes)
    : pattern_(pattern), workers_(workers), payload_bytes_(payload_bytes) {
  core_ = static_cast<int>(std::bit_floor(static_cast<unsigned>(workers)));
  const int doublings = std::countr_zero(static_cast<unsigned>(core_));
  const bool ring = pattern == Pattern::ring_allreduce;
  steps_ = ring ? 2 * (workers - 1) : doublings + (core_ < workers ? 2 : 0);
}

CollectiveStep Collective::ring_step(int worker) const {
  return {(worker + 1) % workers_, (worker + workers_ - 1) % workers_, payload_bytes_ / workers_};
}

// Workers beyond the power of two give their values to one within it, and get the result back.
CollectiveStep Collective::fold(int worker, bool inwards) const {
  const int other = worker >= core_ ? worker - core_ : worker + core_;
  if (other >= workers_) return {};
  const bool sends = (worker >= core_) == inwards;
  return {sends ? other : nobody, sends ? nobody : other, payload_bytes_};
}

CollectiveStep Collective::doubling_step(int worker, int step) const {
  const bool folds = core_ < workers_;
  if (folds && step == 0) return fold(worker, true);
  if (folds && step == steps_ - 1) return fold(worker, false);
  if (worker >= core_) return {};
  const int partner = worker ^ (1 << (folds ? step - 1 : step));
  return {partner, partner, payload_bytes_};
}

CollectiveStep Collective::at(int worker, int step) const {
  return pattern_ == Pattern::ring_allreduce ? ring_step(worker) : doubling_step(worker, step);
}

}  // namespace fast::simulation
