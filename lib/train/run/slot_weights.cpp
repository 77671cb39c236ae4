// The only source that trains on weights in a Worker's slots.
#include <fast/worker/rotating_arena.hpp>

#include "train/run/weight_storage.hpp"

namespace fast::train {
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
