// Sweeps over tensors on a device: described run by run, done by its accelerator.
#pragma once

#include <fast/core/memory.hpp>
#include <fast/worker/accelerator.hpp>
#include <fast/worker/worker.hpp>

#include "algorithm/element_work.hpp"
#include "algorithm/mixer.hpp"

namespace fast::worker {

/// Throws Error(argument) in one line that names what devices do not do.
void check_for_device(const ParameterLayout& layout, const WorkerOptions& options);

class DeviceMixer final : public algorithm::Mixer {
 public:
  /// What check_for_device() lets pass.
  DeviceMixer(ParameterLayout layout, std::shared_ptr<algorithm::Algorithm> algorithm,
              const codec::Options& codec, std::shared_ptr<Accelerator> accelerator);

  void copy(std::byte* to, const std::byte* from, std::size_t size_bytes) override {
    accelerator_->work()->copy(to, from, size_bytes);
  }
  void settle() override { accelerator_->work()->settle(); }
  std::vector<TensorView> state() override;
  void take_state() override;

 private:
  using Memory = std::shared_ptr<std::byte>;

  void run(const algorithm::Pass& pass) override;
  algorithm::ElementWork work_for(const algorithm::Pass& pass, const codec::Piece& piece) const;
  void add_pulls(algorithm::ElementWork& work, const algorithm::Pass& pass,
                 const codec::Piece& piece) const;
  void add_publication(algorithm::ElementWork& work, const algorithm::Pass& pass,
                       const codec::Piece& piece) const;
  Memory kept() const { return accelerator_->work()->allocate(layout_.size_bytes()); }

  std::shared_ptr<Accelerator> accelerator_;
  std::vector<Memory> state_;
  std::vector<Memory> gathered_;       ///< pulls, by payload vector
  std::vector<AlignedBuffer> images_;  ///< of state_, for checkpoints
};

}  // namespace fast::worker
