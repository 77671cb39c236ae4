#include "train/run/weight_storage.hpp"

namespace fast::train {
namespace {

class DeviceWeights final : public WeightStorage {
 public:
  explicit DeviceWeights(DeviceReplica& replica) : replica_(replica) {}
  ~DeviceWeights() override {
    try {
      replica_.keep_mirror();
    } catch (const std::exception&) {
      return;  // the mirror stays as old as it is
    }
  }
  DeviceWeights(const DeviceWeights&) = delete;
  DeviceWeights& operator=(const DeviceWeights&) = delete;

  std::vector<TensorView> tensors() override { return replica_.device_parameters(); }
  std::shared_ptr<Accelerator> accelerator() override { return replica_.accelerate(); }
  void download() override { replica_.download(); }
  void upload() override { replica_.upload(); }

 private:
  DeviceReplica& replica_;
};

}  // namespace

std::unique_ptr<WeightStorage> device_weights(DeviceReplica& replica) {
  return std::make_unique<DeviceWeights>(replica);
}

}  // namespace fast::train
