#include <condition_variable>
#include <deque>
#include <exception>
#include <fast/core/error.hpp>
#include <fast/data/prefetcher.hpp>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace fast::data {
namespace {
constexpr auto look_period = std::chrono::milliseconds(50);  // at the deadline
}

struct Prefetcher::Impl {
  struct Place {
    std::size_t epoch, round;
    bool operator==(const Place&) const = default;
  };
  struct Slot {
    std::shared_ptr<float> inputs;
    std::vector<std::int32_t> labels;
    Batch batch = {};
    std::exception_ptr failure = {};
  };

  Impl(Loader of, PrefetchOptions with) : loader(std::move(of)), options(std::move(with)) {
    if (options.ahead == 0 && !options.memory) return;
    slots.resize(options.ahead + 1);  // one is in use
    for (Slot& slot : slots) {
      slot.inputs = allocate();
      slot.labels.resize(loader.batch_size());
      free.push_back(&slot);
    }
    if (options.ahead > 0)
      worker = std::jthread([this](const std::stop_token& stop) { work(stop); });
  }

  std::size_t values() const { return loader.batch_size() * loader.dataset().sample_size(); }
  std::shared_ptr<float> allocate() const {
    if (options.memory) return options.memory->allocate(values());
    auto own = std::make_shared<std::vector<float>>(values());
    return {own, own->data()};
  }
  Place after(Place place) const {
    return place.round + 1 < loader.rounds() ? Place{place.epoch, place.round + 1}
                                             : Place{place.epoch + 1, 0};
  }

  void make(Slot& slot, Place place) {
    slot.failure = nullptr;
    try {
      if (options.memory) options.memory->refill(slot.inputs.get());
      slot.batch =
          loader.fill(place.epoch, place.round, {slot.inputs.get(), values()}, slot.labels);
      if (options.memory) options.memory->filled(slot.batch);
    } catch (...) {
      slot.failure = std::current_exception();
    }
  }

  void work(const std::stop_token& stop) {
    std::unique_lock lock(mutex);
    while (wanted.wait(lock, stop, [this] { return next && !free.empty(); }) &&
           !stop.stop_requested()) {
      const Place place = *next;
      const std::size_t run = runs;
      Slot& slot = *free.back();
      free.pop_back();
      next = after(place);
      making = true;
      lock.unlock();
      make(slot, place);
      lock.lock();
      making = false;
      if (run == runs) {
        made.push_back(&slot);
        if (slot.failure) next.reset();
      } else {
        free.push_back(&slot);
      }
      changed.notify_all();
    }
  }

  /// Forgets what was made ahead.
  void restart(std::optional<Place> from) {
    ++runs;
    free.insert(free.end(), made.begin(), made.end());
    made.clear();
    next = from;
    wanted.notify_all();
  }

  template <class Condition>
  void await(std::unique_lock<std::mutex>& lock, const Condition& condition) {
    const Deadline deadline(options.deadline);
    while (!changed.wait_for(lock, look_period, condition)) {
      require(
          !deadline.expired(), ErrorKind::deadline,
          "Prefetcher: a batch is not there after {:.1f} s, the limit; see whether the data can "
          "be read, or raise the deadline",
          options.deadline.count());
    }
  }

  const Batch& take(Place place) {
    std::unique_lock lock(mutex);
    if (in_use != nullptr) free.push_back(std::exchange(in_use, nullptr));
    if (expected != place) restart(place);
    wanted.notify_all();
    expected.reset();
    await(lock, [this] { return !made.empty(); });
    in_use = made.front();
    made.pop_front();
    if (in_use->failure) std::rethrow_exception(in_use->failure);
    expected = after(place);
    return in_use->batch;
  }

  const Batch& batch(Place place) {
    if (worker.joinable()) return take(place);
    if (slots.empty()) return loader.batch(place.epoch, place.round);
    make(slots[0], place);
    if (slots[0].failure) std::rethrow_exception(slots[0].failure);
    return slots[0].batch;
  }

  Loader loader;
  PrefetchOptions options;
  std::vector<Slot> slots;
  std::mutex
      mutex;  // guards what follows but the thread; the loader is the thread's while it makes
  std::condition_variable_any wanted, changed;
  std::vector<Slot*> free;
  std::deque<Slot*> made;
  Slot* in_use = nullptr;
  std::optional<Place> next;      // to be made
  std::optional<Place> expected;  // what the user is to get next without a restart
  std::size_t runs = 0;
  bool making = false;
  std::jthread worker;  // last: it ends first
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

void Prefetcher::own(std::vector<std::size_t> samples) {
  std::unique_lock lock(impl_->mutex);
  impl_->restart({});
  impl_->expected.reset();
  impl_->await(lock, [this] { return !impl_->making; });
  impl_->loader.own(std::move(samples));
}

}  // namespace fast::data
