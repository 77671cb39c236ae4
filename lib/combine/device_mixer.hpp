// Sweeps over tensors on a device: one launch of its accelerator for all tensors of a type.
#pragma once

#include <fast/core/memory.hpp>
#include <optional>

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
  /// What check_for_device() lets pass. `message`: messages are coded by the host, and have the
  /// model's types on the device; null: as they are there.
  DeviceMixer(ParameterLayout layout, std::shared_ptr<algorithm::Algorithm> algorithm,
              const codec::Options& codec, std::shared_ptr<Accelerator> accelerator,
              std::shared_ptr<codec::HostMessage> message = nullptr);

  void rebind(ParameterLayout layout) override;
  bool has_finite_weights() const override;
  bool guard(const Payload& own) override;
  void take_back() override;
  std::uint32_t bad_looks() const override;
  codec::HostMessage* host_message() override { return message_.get(); }
  std::vector<TensorView> state() override;
  void take_state() override;

 private:
  using Memory = std::shared_ptr<std::byte>;
  /// The runs of a shard whose elements have these types, those of parameters first: one launch
  /// does them.
  struct Runs {
    std::size_t shard;
    DType type, slot;
    RunTable all, parameters;
    Memory table;
  };

  std::vector<Runs> make_tables(std::size_t shards) const;
  void add_tables(std::vector<Runs>& to, std::size_t shard, std::vector<codec::Piece> pieces) const;
  const std::vector<Runs>& runs_in(std::size_t shards);
  Runs make_table(std::size_t shard, DType type, DType slot,
                  const std::vector<const codec::Piece*>& pieces) const;
  void run(const Pass& pass) override;
  ElementWork work_for(const Pass& pass, const Runs& runs) const;
  void look(Looks* looks) const;
  void restore(ElementWork& work) const;
  void add_pulls(ElementWork& work, const Pass& pass, std::size_t shard) const;
  void add_publication(ElementWork& work, const Pass& pass) const;
  std::byte* keep(std::string name, std::size_t size_bytes);
  Looks* guard_looks() const { return reinterpret_cast<Looks*>(looks_.get()); }
  Looks* host_looks() const { return guard_looks() + 1; }

  std::shared_ptr<Accelerator> accelerator_;
  std::shared_ptr<codec::HostMessage> message_;
  std::int64_t messages_ = 0;  ///< where the device codes them
  std::vector<Runs> runs_;
  std::vector<Runs> in_shards_;  ///< the same, cut into so many shards
  std::size_t shards_ = 0;
  Memory looks_;                    ///< those of guard() and those of has_finite_weights()
  mutable std::uint32_t look_ = 0;  ///< the latest one's number
  Memory seen_;                     ///< on the host: the device copies the former there
  /// After guard(), for the next sweep.
  struct Guard {
    const std::byte* own;
    std::uint32_t look;
  };
  std::optional<Guard> guard_;
  bool is_trusted_ = false;  ///< the host has looked at weights since the rule began
  /// Memory that is kept between rounds, and its image on the host, for checkpoints.
  struct Kept {
    std::string name;
    std::size_t size_bytes;
    Memory memory;
    AlignedBuffer image{};
  };
  std::vector<Kept> kept_;
  ElementWork work_;  ///< where that memory is
};

}  // namespace fast::combine
