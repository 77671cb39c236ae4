#include "train/run/weight_storage.hpp"

#include "train/run/run_plan.hpp"

namespace fast::train {
namespace {

class HostWeights final : public WeightStorage {
 public:
  explicit HostWeights(Backend& backend) : backend_(backend) {}
  std::vector<TensorView> tensors() override { return backend_.parameters(); }

 private:
  Backend& backend_;
};

}  // namespace

double WeightStorage::round(Worker& worker, TrainingStep& step, const Batch& batch,
                            const StepOptions& options) {
  return worker.step([&] { return step.train(batch); }, options);
}

std::unique_ptr<WeightStorage> host_weights(Backend& backend) {
  return std::make_unique<HostWeights>(backend);
}

std::unique_ptr<WeightStorage> weights_home(const TrainerOptions& options, Backend& backend) {
  if (options.arena == Arena::rotating) return slot_weights(backend);
  auto* device = dynamic_cast<DeviceReplica*>(&backend);
  const bool is_averaged_there =
      device != nullptr && why_not_on_device(worker_options(options)).empty();
  return is_averaged_there ? device_weights(*device) : host_weights(backend);
}

}  // namespace fast::train
