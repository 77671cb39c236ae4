#include "train/run/checkpoint_state.hpp"

#include <algorithm>
#include <fast/core/error.hpp>
#include <utility>

namespace fast::train {
namespace {

constexpr std::string_view state_prefix = "state.", best_prefix = "best.";

void add(std::vector<TensorView>& all, std::string_view prefix, std::vector<TensorView> views) {
  for (TensorView& view : views) {
    view.name.insert(0, prefix);
    all.push_back(std::move(view));
  }
}

std::vector<TensorView> prefixed(std::string_view prefix, std::vector<TensorView> views) {
  std::vector<TensorView> all;
  add(all, prefix, std::move(views));
  return all;
}

}  // namespace

std::vector<TensorView> RunState::tensors() {
  std::vector<TensorView> all;
  replica_.home().download();
  add(all, model_prefix, replica_.backend().parameters());
  add(all, optimizer_prefix, replica_.backend().optimizer_state());
  add(all, state_prefix, replica_.worker().state());
  if (replica_.ema() != nullptr) add(all, ema_prefix, replica_.ema()->state());
  add(all, best_prefix, best_.state());
  return all;
}

Metadata RunState::metadata() const {
  Metadata metadata = position_.to_metadata();
  metadata["fast.workers"] = std::to_string(replica_.worker().size());
  metadata.merge(balancer_.to_metadata());
  metadata["fast.worker"] = std::to_string(replica_.worker().rank());
  return metadata;
}

void RunState::read(const Safetensors& own) {
  own.read(prefixed(model_prefix, replica_.backend().parameters()));
  own.read(prefixed(optimizer_prefix, replica_.backend().optimizer_state()));
  take_place(own.metadata());
}

void RunState::take_place(const Metadata& metadata) {
  position_.take_place(metadata);
  balancer_.take_shares(metadata);
}

void RunState::read_average_so_far(const Safetensors& own) {
  if (Ema* ema = replica_.ema()) {
    own.read(prefixed(ema_prefix, ema->state()));
    ema->take_state();
  }
}

void RunState::read_best(const Safetensors& first) {
  const std::vector<TensorView> saved = first.views(best_prefix);
  if (saved.empty()) return;
  std::vector<TensorView> room = best_.room();
  // Runs that knew class labels only have saved no loss.
  std::erase_if(room, [&](const TensorView& view) {
    return std::ranges::none_of(saved,
                                [&](const TensorView& other) { return other.name == view.name; });
  });
  try {
    first.read(prefixed(best_prefix, std::move(room)));
  } catch (const Error&) {
    best_.forget();
    throw;
  }
}

void RunState::restore_rule(const Safetensors& own) {
  replica_.worker().restore(own.views(state_prefix));
}

void RunState::read_average(const Manifest& manifest, const std::vector<int>& workers,
                            const LogSink& log) {
  const OwnedTensors model = average_shards(manifest, workers, model_prefix, log);
  copy_tensors(model.views, replica_.backend().parameters(), "checkpoint");
  const OwnedTensors optimizer = average_shards(manifest, workers, optimizer_prefix);
  copy_tensors(optimizer.views, replica_.backend().optimizer_state(), "checkpoint");
}

}  // namespace fast::train
