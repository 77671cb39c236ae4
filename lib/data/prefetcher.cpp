#include <atomic>
#include <deque>
#include <exception>
#include <fast/core/error.hpp>
#include <fast/data/loader.hpp>
#include <optional>
#include <utility>

#include "core/serial_executor.hpp"

namespace fast::data {

/// The executor makes each batch in a task of its own. A restart begins a new run: tasks of earlier
/// runs do nothing.
struct Prefetcher::Impl {
  struct Position {
    std::size_t epoch, round;
    bool operator==(const Position&) const = default;
  };
  struct Slot {
    std::shared_ptr<float> inputs;
    std::vector<std::int32_t> labels;
    std::vector<float> targets;
    Batch batch = {};
    std::exception_ptr failure = {};
  };
  /// A batch that has been submitted to the executor.
  struct Made {
    Slot* slot;
    std::uint64_t task;
  };

  Impl(Loader of, PrefetchOptions with) : loader(std::move(of)), options(std::move(with)) {
    if (options.ahead == 0 && !options.memory) return;
    slots.resize(options.ahead + 1);  // one is in use
    for (Slot& slot : slots) {
      slot.inputs = allocate();
      const data::Dataset& samples = loader.dataset();
      samples.targets().empty() ? slot.labels.resize(loader.room_for_labels())
                                : slot.targets.resize(loader.batch_size() * samples.target_size());
    }
    if (options.ahead > 0) executor = std::make_unique<SerialExecutor>();
  }
  ~Impl() { restart({}); }

  std::size_t values() const { return loader.batch_size() * loader.dataset().sample_size(); }
  std::shared_ptr<float> allocate() const {
    if (options.memory) return options.memory->allocate(values());
    auto own = std::make_shared<std::vector<float>>(values());
    return {own, own->data()};
  }
  Position after(Position position) const {
    return position.round + 1 < loader.rounds() ? Position{position.epoch, position.round + 1}
                                                : Position{position.epoch + 1, 0};
  }

  void make(Slot& slot, Position position) {
    slot.failure = nullptr;
    try {
      if (options.memory) options.memory->refill(slot.inputs.get());
      slot.batch = loader.fill(position.epoch, position.round, {slot.inputs.get(), values()},
                               slot.labels, slot.targets);
      if (options.memory) options.memory->filled(slot.batch);
    } catch (...) {
      slot.failure = std::current_exception();
    }
  }

  /// After a failure the later batches of the run are not made.
  void make_ahead(Slot& slot, Position position, std::size_t in_run) {
    if (run != in_run) return;
    make(slot, position);
    if (slot.failure) run.compare_exchange_strong(in_run, in_run + 1);
  }

  void restart(std::optional<Position> from) {
    ++run;
    made.clear();
    next = from;
  }

  /// Submits batches until every slot has one. Slots are used in turn.
  void submit() {
    while (made.size() < slots.size()) {
      Slot& slot = slots[turn++ % slots.size()];
      const auto task = executor->submit([this, &slot, position = *next, in_run = run.load()] {
        make_ahead(slot, position, in_run);
      });
      made.push_back({&slot, task});
      next = after(*next);
    }
  }

  void await(std::uint64_t task) const {
    require(executor->wait(task, Deadline(options.deadline)), ErrorKind::deadline,
            "Prefetcher: a batch is not there after {:.1f} s, the limit; see whether the data can "
            "be read, or raise the deadline",
            options.deadline.count());
  }

  const Batch& take(Position position) {
    if (expected != position) restart(position);
    expected.reset();
    submit();
    const Made first = made.front();
    await(first.task);
    made.pop_front();
    if (first.slot->failure) std::rethrow_exception(first.slot->failure);
    expected = after(position);
    return first.slot->batch;
  }

  const Batch& batch(Position position) {
    if (executor) return take(position);
    if (slots.empty()) return loader.batch(position.epoch, position.round);
    make(slots[0], position);
    if (slots[0].failure) std::rethrow_exception(slots[0].failure);
    return slots[0].batch;
  }

  void own(std::vector<std::size_t> samples) {
    restart({});
    expected.reset();
    if (!executor) return loader.own(std::move(samples));
    await(executor->submit([this, own = std::move(samples)] { loader.own(own); }));
  }

  Loader loader;  ///< used by the executor while it has tasks
  PrefetchOptions options;
  std::vector<Slot> slots;
  std::atomic<std::size_t> run = 0;  ///< tasks of earlier runs do nothing
  std::size_t turn = 0;
  std::deque<Made> made;
  std::optional<Position> next;              ///< to be submitted next
  std::optional<Position> expected;          ///< the next batch without a restart
  std::unique_ptr<SerialExecutor> executor;  ///< declared last: it ends first
};

Prefetcher::Prefetcher(Loader loader, PrefetchOptions options)
    : impl_(std::make_unique<Impl>(std::move(loader), std::move(options))) {}
Prefetcher::Prefetcher(Prefetcher&&) noexcept = default;
Prefetcher& Prefetcher::operator=(Prefetcher&&) noexcept = default;
Prefetcher::~Prefetcher() = default;

std::size_t Prefetcher::rounds() const { return impl_->loader.rounds(); }

const Batch& Prefetcher::batch(std::size_t epoch, std::size_t round) {
  return impl_->batch({epoch, round});
}

void Prefetcher::own(std::vector<std::size_t> samples) { impl_->own(std::move(samples)); }

}  // namespace fast::data
