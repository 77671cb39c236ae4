#include <fast/core/error.hpp>
#include <fast/worker/rotating_arena.hpp>

#include "worker/impl.hpp"

namespace fast {
namespace {

void check_tensors(const ParameterLayout& layout, DType dtype) {
  for (const Segment& segment : layout.segments()) {
    require(segment.dtype == dtype && segment.role == Role::parameter, ErrorKind::argument,
            "rotating arena: {} over tensors of which some are {}s of type {}; give parameters of "
            "one type",
            name(dtype), segment.role == Role::parameter ? "parameter" : "buffer",
            name(segment.dtype));
  }
}

/// Until the end of a round, however it ends.
struct Given {
  combine::Mixer& mixer;
  ~Given() { mixer.take_updates({}); }
};

}  // namespace

void check_for_rotation(const WorkerOptions& options) {
  const algorithm::RuleTraits& traits = options.algorithm.traits();
  require(!options.accelerator, ErrorKind::argument,
          "rotating arena: the tensors are on a device; end rounds without an update");
  require(!options.site, ErrorKind::argument,
          "rotating arena: the worker is a site, whose exchanges change the model's own memory; "
          "end rounds without an update");
  const bool averages = traits.plain_average && traits.timing.average_every == 0;
  require(averages && options.mix_every == 1 && options.mix_times == 1, ErrorKind::argument,
          "rotating arena: algorithm {}, mixing {} times every {} steps; take awc or pairwise, "
          "mixing once every step",
          traits.name, options.mix_times, options.mix_every);
  require(options.not_finite != NotFinite::heal, ErrorKind::argument,
          "rotating arena: NotFinite::heal would leave out a step that has been published already; "
          "take NotFinite::abort or a fixed arena");
  require(
      options.robust == Robust::none, ErrorKind::argument,
      "rotating arena: robust averaging reads the neighbors' weights twice; take robust none or "
      "a fixed arena");
  if (options.codec.kind != codec::Kind::identity) {  // its name is not made in every round
    fail(ErrorKind::argument,
         "rotating arena: codec {}, but the weights live in the messages; take the codec identity",
         codec::name(options.codec));
  }
}

template <class T>
RotatingArena<T>::RotatingArena(Worker& worker) : worker_(&worker) {
  if (!worker.impl_) return;
  check_for_rotation(worker.impl_->setting.options);
  check_tensors(worker.layout(), dtype_of<T>);
}

template <class T>
const T* RotatingArena<T>::weights() const {
  if (!worker_->impl_) return nullptr;
  return reinterpret_cast<const T*>(worker_->impl_->link.exchange->published().data);
}

template <class T>
void RotatingArena<T>::end_round(const PartUpdate<T>& update) {
  if (!worker_->impl_) return;
  Worker::Impl& parts = *worker_->impl_;
  parts.rotates = true;
  parts.mixer->take_updates(&update);
  const Given given{*parts.mixer};
  parts.end_round({});
}

template <class T>
void RotatingArena<T>::end_round(double loss, const PartUpdate<T>& update) {
  if (worker_->impl_) worker_->impl_->check_loss(loss);
  end_round(update);
}

template class RotatingArena<float>;
template class RotatingArena<double>;

}  // namespace fast
