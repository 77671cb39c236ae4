// What a worker carries from round to round, out to a checkpoint and back.
#include <algorithm>
#include <cstring>
#include <fast/core/error.hpp>

#include "worker/engine.hpp"

namespace fast::worker {
namespace {

constexpr auto counters_name = "worker.counters", message_name = "worker.message",
               scalars_name = "worker.message_scalars";

TensorView raw(std::string name, const std::byte* data, std::size_t size_bytes) {
  return {std::move(name),
          const_cast<std::byte*>(data),
          {static_cast<std::int64_t>(size_bytes)},
          DType::u8,
          Role::parameter,
          Device{}};
}

const TensorView& find(const std::vector<TensorView>& saved, const TensorView& own) {
  const auto found = std::find_if(saved.begin(), saved.end(),
                                  [&](const TensorView& view) { return view.name == own.name; });
  require(found != saved.end() && found->shape == own.shape && found->dtype == own.dtype,
          ErrorKind::mismatch,
          "Worker: a saved state with {} where this worker has {}; resume with the options it was "
          "saved with",
          found == saved.end() ? "nothing" : describe(*found), describe(own));
  return *found;
}

void take(const std::vector<TensorView>& saved, const TensorView& own) {
  std::memcpy(own.data, find(saved, own).data, own.size_bytes());
}

bool is_in(const std::vector<TensorView>& saved, const TensorView& own) {
  return std::any_of(saved.begin(), saved.end(),
                     [&](const TensorView& view) { return view.name == own.name; });
}

}  // namespace

/// Where the host can read it.
const std::byte* Engine::published_message() {
  const std::byte* own = link_.exchange->published().data;
  if (!options_.accelerator) return own;
  if (message_.size_bytes() == 0) message_ = AlignedBuffer(shape_.vectors_bytes());
  mixer_->copy(message_.data(), own, shape_.vectors_bytes());
  mixer_->settle();
  return message_.data();
}

std::vector<TensorView> Engine::state() {
  counters_ = {stats_.rounds, combinations_, sent_ ? 1 : 0};
  std::vector<TensorView> views{view_of(counters_name, std::span<std::int64_t>(counters_))};
  const Payload own = link_.exchange->published();
  if (before_step()) {
    views.push_back(raw(message_name, published_message(), shape_.vectors_bytes()));
    if (shape_.scalars > 0) {
      auto* scalars = const_cast<double*>(own.scalars);
      views.push_back(
          view_of(scalars_name, std::span(scalars, static_cast<std::size_t>(shape_.scalars))));
    }
  }
  for (TensorView& view : mixer_->state()) views.push_back(std::move(view));
  if (declared_.remembers_neighbors) views.push_back(mixer_->epoch_view());
  return views;
}

/// Nobody reads what has been published so far: no round has ended.
void Engine::restore(const std::vector<TensorView>& saved) {
  require(stats_.rounds == 0 && !left_, ErrorKind::argument,
          "Worker: a state is restored before the first round, {} have been made", stats_.rounds);
  take(saved, view_of(counters_name, std::span<std::int64_t>(counters_)));
  stats_.rounds = counters_[0];
  combinations_ = counters_[1];
  if (options_.staleness == 0) {
    restore_exactly(saved);
  } else {
    mixer_->start(false);
    publish_first(combinations_);
  }
  link_.exchange->complete(combinations_);
  link_.exchange->flush();
  group_.barrier(Deadline(options_.deadline), "Worker: resuming");
}

/// The message in force is the one that was sent: made anew, it might be rounded otherwise.
void Engine::restore_exactly(const std::vector<TensorView>& saved) {
  if (before_step()) {
    const MutablePayload next = link_.exchange->acquire();
    const TensorView& message = find(saved, raw(message_name, next.data, shape_.vectors_bytes()));
    mixer_->copy(next.data, static_cast<const std::byte*>(message.data), shape_.vectors_bytes());
    mixer_->settle();
    if (shape_.scalars > 0) {
      take(saved, view_of(scalars_name,
                          std::span(next.scalars, static_cast<std::size_t>(shape_.scalars))));
    }
    if (next.weights != nullptr) mixer_->copy_weights_to(next.weights);
    link_.exchange->publish(combinations_, next.weights != nullptr);
  } else {
    publish_weights();
  }
  for (const TensorView& own : mixer_->state()) take(saved, own);
  if (is_in(saved, mixer_->epoch_view())) take(saved, mixer_->epoch_view());
  mixer_->take_state();
  sent_ = counters_[2] != 0;
}

}  // namespace fast::worker
