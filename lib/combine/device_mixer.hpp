// Sweeps over tensors on a device: described run by run, done by its accelerator.
#pragma once

#include <fast/core/memory.hpp>

#include "combine/accelerator.hpp"
#include "combine/element_work.hpp"
#include "combine/mixer.hpp"

namespace fast::combine {

class DeviceMemory final : public ModelMemory {
 public:
  DeviceMemory(ParameterLayout layout, std::shared_ptr<Accelerator> accelerator)
      : ModelMemory(std::move(layout)), accelerator_(std::move(accelerator)) {}
  void copy(std::byte* to, const std::byte* from, std::size_t size_bytes) const override {
    accelerator_->work()->copy(to, from, size_bytes);
  }
  void settle() const override { accelerator_->work()->settle(); }

 private:
  std::shared_ptr<Accelerator> accelerator_;
};

class DeviceMixer final : public Mixer {
 public:
  /// What check_for_device() lets pass.
  DeviceMixer(ParameterLayout layout, std::shared_ptr<algorithm::Algorithm> algorithm,
              const codec::Options& codec, std::shared_ptr<Accelerator> accelerator);

  std::vector<TensorView> state() override;
  void take_state() override;

 private:
  using Memory = std::shared_ptr<std::byte>;

  void run(const Pass& pass) override;
  ElementWork work_for(const Pass& pass, const codec::Piece& piece) const;
  void add_pulls(ElementWork& work, const Pass& pass, const codec::Piece& piece) const;
  void add_publication(ElementWork& work, const Pass& pass, const codec::Piece& piece) const;
  Memory kept() const { return accelerator_->work()->allocate(layout().size_bytes()); }

  std::shared_ptr<Accelerator> accelerator_;
  std::vector<Memory> state_;
  std::vector<Memory> gathered_;       ///< pulls, by payload vector
  std::vector<AlignedBuffer> images_;  ///< of state_, for checkpoints
};

}  // namespace fast::combine
