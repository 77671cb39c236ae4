#include "worker/worker_state.hpp"

#include <algorithm>
#include <cstring>
#include <fast/core/error.hpp>
#include <string_view>

#include "worker/participation.hpp"

namespace fast::worker {
namespace {

constexpr auto counters_name = "worker.counters", message_name = "worker.message",
               scalars_name = "worker.message_scalars", row_name = "worker.mixing_row",
               rule_name = "worker.rule";

TensorView raw(std::string name, const std::byte* data, std::size_t size_bytes) {
  return {std::move(name),
          const_cast<std::byte*>(data),
          {static_cast<std::int64_t>(size_bytes)},
          DType::u8,
          Role::parameter,
          Device{}};
}

/// Null: no view has this name.
const TensorView* by_name(const std::vector<TensorView>& saved, const std::string& name) {
  const auto found = std::ranges::find(saved, name, &TensorView::name);
  return found == saved.end() ? nullptr : &*found;
}

bool is_like(const TensorView* view, const TensorView& own) {
  return view != nullptr && view->shape == own.shape && view->dtype == own.dtype;
}

const TensorView& find(const std::vector<TensorView>& saved, const TensorView& own) {
  const TensorView* found = by_name(saved, own.name);
  require(is_like(found, own), ErrorKind::mismatch,
          "Worker: a saved state with {} where this worker has {}; resume with the options it was "
          "saved with, and with the same version of FAST",
          found == nullptr ? "nothing" : describe(*found), describe(own));
  return *found;
}

/// The rule that has kept vectors in a saved state; empty: none has.
std::string_view rule_of(const std::vector<TensorView>& saved) {
  const TensorView* view = by_name(saved, rule_name);
  return view == nullptr
             ? std::string_view()
             : std::string_view(static_cast<const char*>(view->data), view->size_bytes());
}

void take(const std::vector<TensorView>& saved, const TensorView& own) {
  std::memcpy(own.data, find(saved, own).data, own.size_bytes());
}

}  // namespace

/// The message in force, where the host can read it.
const std::byte* WorkerState::message() {
  if (const codec::HostMessage* coded = worker_.mixer.host_message()) return coded->code.data();
  const std::byte* own = worker_.exchange.published().data;
  if (!worker_.options().accelerator) return own;
  const std::size_t bytes = worker_.setting.shape.vectors_bytes();
  if (image_.size_bytes() == 0) image_ = AlignedBuffer(bytes);
  worker_.mixer.memory().copy(image_.data(), own, bytes);
  worker_.mixer.memory().settle();
  return image_.data();
}

std::vector<TensorView> WorkerState::views() {
  worker_.exchange.flush();  // what it codes is in the state
  const PayloadShape& shape = worker_.setting.shape;
  const Progress& progress = worker_.progress;
  counters_ = {progress.stats.rounds, progress.combinations, progress.sent ? 1 : 0};
  std::vector<TensorView> views{view_of(counters_name, std::span<std::int64_t>(counters_))};
  if (worker_.setting.before_step() || progress.published_early) {
    views.push_back(raw(message_name, message(), shape.vectors_bytes()));
    if (shape.scalars > 0) {
      auto* scalars = const_cast<double*>(worker_.exchange.published().scalars);
      views.push_back(
          view_of(scalars_name, std::span(scalars, static_cast<std::size_t>(shape.scalars))));
    }
  }
  const algorithm::RuleTraits& traits = worker_.setting.traits;
  if (traits.memory.vectors > 0) {
    views.push_back(
        raw(rule_name, reinterpret_cast<const std::byte*>(traits.name.data()), traits.name.size()));
  }
  for (TensorView& view : worker_.mixer.state()) views.push_back(std::move(view));
  if (traits.memory.remembers_neighbors) views.push_back(worker_.mixer.scalars().epoch_view());
  if (worker_.setting.remembers_weights()) views.push_back(view_of(row_name, mixing_row()));
  return views;
}

/// Of the coming combination.
std::span<double> WorkerState::mixing_row() {
  const std::shared_ptr<const RoundPlan::Round> round = plan_.at(worker_.progress.combinations);
  row_ = {round->row.self};
  for (std::size_t k = 0; k < round->row.neighbors.size(); ++k)
    row_.insert(row_.end(), {static_cast<double>(round->row.neighbors[k]), round->row.weights[k]});
  return row_;
}

/// A state without them is taken for one of these weights.
bool WorkerState::is_of_these_weights(const std::vector<TensorView>& saved) {
  if (!worker_.setting.remembers_weights() || !worker_.setting.exact()) return true;
  const TensorView* before = by_name(saved, row_name);
  if (before == nullptr) return true;
  const TensorView own = view_of(row_name, mixing_row());
  return is_like(before, own) && std::memcmp(before->data, own.data, own.size_bytes()) == 0;
}

/// With more steps from one combination to the next, as the saved worker may have had, rounds make
/// fewer combinations. Periods of rules, and workers that join, count at least those of the rounds.
std::int64_t WorkerState::saved_combinations() const {
  return std::max(counters_[1], worker_.setting.combinations_of(counters_[0]));
}

void WorkerState::restore(const std::vector<TensorView>& saved, Publisher& publisher) {
  Progress& progress = worker_.progress;
  require(progress.stats.rounds == 0, ErrorKind::argument,
          "Worker: a state is restored before the first round, {} have been made",
          progress.stats.rounds);
  take(saved, view_of(counters_name, std::span<std::int64_t>(counters_)));
  progress.stats.rounds = counters_[0];
  progress.combinations = saved_combinations();
  const bool has_more_than_counters = saved.size() > 1;
  if (worker_.setting.exact() && has_more_than_counters) {
    restore_exactly(saved, publisher);
  } else {
    worker_.mixer.start(false);
    if (fits(saved)) take_rule_state(saved);
    publisher.begin(progress.combinations);
  }
  worker_.exchange.complete(progress.combinations);
  worker_.exchange.flush();
}

/// Vectors of two rules may have the same sizes and another meaning. A state that names no rule is
/// taken for one of this rule.
bool WorkerState::is_of_this_rule(const std::vector<TensorView>& saved) const {
  const algorithm::RuleTraits& traits = worker_.setting.traits;
  const std::string_view rule = rule_of(saved);
  return traits.memory.vectors == 0 || rule.empty() || rule == traits.name;
}

void WorkerState::restore_exactly(const std::vector<TensorView>& saved, Publisher& publisher) {
  require(is_of_this_rule(saved), ErrorKind::mismatch,
          "Worker: a saved state of the algorithm {} where this worker has {}; resume with the "
          "options it was saved with",
          rule_of(saved), worker_.setting.traits.name);
  const bool early =
      worker_.setting.traits.timing.delay > 0 && by_name(saved, message_name) != nullptr;
  if (worker_.setting.before_step() || early) {
    restore_message(saved);
    worker_.progress.published_early = early;
  } else {
    publisher.publish_weights();
  }
  take_rule_state(saved);
  const TensorView epoch = worker_.mixer.scalars().epoch_view();
  if (by_name(saved, epoch.name) != nullptr) take(saved, epoch);
  worker_.progress.earlier_growths = growths_before(worker_.mixer.scalars().epoch());
  worker_.progress.sent = counters_[2] != 0;
}

/// The rule's state is there, and does not refer to what this worker or others have sent.
bool WorkerState::fits(const std::vector<TensorView>& saved) {
  const algorithm::RuleTraits& traits = worker_.setting.traits;
  if (traits.memory.remembers_neighbors || traits.messages.surveys || worker_.setting.sends_sums())
    return false;
  const std::vector<TensorView> state = worker_.mixer.state();
  return is_of_this_rule(saved) && std::ranges::all_of(state, [&](const TensorView& own) {
           return is_like(by_name(saved, own.name), own);
         });
}

void WorkerState::take_rule_state(const std::vector<TensorView>& saved) {
  for (const TensorView& own : worker_.mixer.state()) take(saved, own);
  worker_.mixer.take_state();
}

/// The message in force is the one that was sent: a new one might be rounded otherwise.
void WorkerState::restore_message(const std::vector<TensorView>& saved) {
  const PayloadShape& shape = worker_.setting.shape;
  const MutablePayload next = worker_.exchange.acquire();
  const TensorView& message = find(saved, raw(message_name, next.data, shape.vectors_bytes()));
  const auto* from = static_cast<const std::byte*>(message.data);
  if (codec::HostMessage* coded = worker_.mixer.host_message()) {
    std::memcpy(coded->code.data(), from, shape.vectors_bytes());
    coded->is_given = true;
  } else {
    worker_.mixer.memory().copy(next.data, from, shape.vectors_bytes());
    worker_.mixer.memory().settle();
  }
  if (shape.scalars > 0) {
    take(saved,
         view_of(scalars_name, std::span(next.scalars, static_cast<std::size_t>(shape.scalars))));
  }
  if (next.weights != nullptr) worker_.mixer.memory().copy_weights_to(next.weights);
  const auto at = Clock::now();
  worker_.exchange.publish(worker_.progress.combinations, next.weights != nullptr);
  worker_.report_published(at);
}

}  // namespace fast::worker
