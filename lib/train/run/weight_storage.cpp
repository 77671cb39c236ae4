#include "train/run/weight_storage.hpp"

#include <fast/worker/rotating_arena.hpp>

#include "train/run/training_setup.hpp"

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
      device != nullptr && why_not_on_device(worker_options(options), backend.parameters()).empty();
  return is_averaged_there ? device_weights(*device) : host_weights(backend);
}

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

// The only source that trains on weights in a Worker's slots.

namespace {

class SlotWeights final : public WeightStorage {
 public:
  explicit SlotWeights(Backend& backend) : backend_(backend) {}

  std::vector<TensorView> tensors() override { return backend_.parameters(); }

  double round(Worker& worker, TrainingStep& step, const Batch& batch,
               const StepOptions& /*options*/) override {
    rotating_ = &worker;
    return are_doubles(worker) ? round_of<double>(worker, step, batch)
                               : round_of<float>(worker, step, batch);
  }

  void download() override {
    if (rotating_ == nullptr) return;
    are_doubles(*rotating_) ? copy_from<double>(*rotating_) : copy_from<float>(*rotating_);
  }

  void finish(Worker& worker) override {
    worker.await_finish();
    rotating_ = nullptr;
  }

 private:
  static bool are_doubles(const Worker& worker) {
    return worker.layout().segments().front().dtype == DType::f64;
  }

  template <class T>
  double round_of(Worker& worker, TrainingStep& step, const Batch& batch) {
    SlotStep& slots = *backend_.in_slots();
    const PartUpdate<T> update = [&slots](std::size_t first, std::span<T> weights) {
      slots.add_step(first, weights.data(), weights.size());
    };
    return RotatingArena<T>(worker).step(
        [&](const T* weights) { return step.find_gradients(weights, batch); }, update);
  }

  template <class T>
  static void copy_from(Worker& worker) {
    const T* weights = RotatingArena<T>(worker).weights();
    worker.layout().scatter(reinterpret_cast<const std::byte*>(weights));
  }

  Backend& backend_;
  Worker* rotating_ = nullptr;  ///< between its first round and finish()
};

}  // namespace

std::unique_ptr<WeightStorage> slot_weights(Backend& backend) {
  return std::make_unique<SlotWeights>(backend);
}

}  // namespace fast::train
