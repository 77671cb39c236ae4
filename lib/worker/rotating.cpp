// Rounds of weights that live in slots.
#include <algorithm>
#include <fast/core/error.hpp>

#include "worker/engine.hpp"

namespace fast::worker {

void Engine::require_rotating(DType dtype) const {
  require(!options_.accelerator, ErrorKind::argument,
          "Worker: a rotating arena over tensors on a device; end rounds without an update");
  require(
      declared_.plain_average && options_.mix_every == 1, ErrorKind::argument,
      "Worker: a rotating arena with algorithm {}, mixing every {} steps; take awc or pairwise, "
      "mixing every step",
      declared_.name, options_.mix_every);
  require(options_.not_finite != NotFinite::heal, ErrorKind::argument,
          "Worker: a rotating arena with NotFinite::heal, though a step that is to be left out "
          "would be published at once; take NotFinite::abort or a fixed arena");
  if (options_.codec.kind != codec::Kind::identity) {  // its name is not made up every round
    fail(ErrorKind::argument,
         "Worker: a rotating arena with codec {}, though the weights live in the messages; take "
         "the codec identity",
         codec::name(options_.codec));
  }
  for (const Segment& segment : layout().segments()) {
    require(segment.dtype == dtype && segment.role == Role::parameter, ErrorKind::argument,
            "Worker: a rotating arena of {} over tensors of which some are {}s of type {}; give "
            "parameters of one type",
            name(dtype), segment.role == Role::parameter ? "parameter" : "buffer",
            name(segment.dtype));
  }
}

void Engine::end_round(combine::AnyPartUpdate update) {
  rotates_ = true;
  mixer_->take_updates(update);
  end_round(StepOptions{});
  mixer_->take_updates({});
}

}  // namespace fast::worker
