#include "train/run/training_batches.hpp"

#include <chrono>
#include <mutex>
#include <set>
#include <thread>
#include <utility>

#include "support/catch.hpp"
#include "train/run/run_parts.hpp"

using namespace fast;
using namespace fast::testing;

namespace {

train::RunPlan sharded_plan(int rank, const char* shards, int workers = 4) {
  train::TrainerOptions options = trainer_options();
  options.shards = data::sharding_from(shards);
  options.take_over = true;
  const auto backend = small_backend();
  return train::plan_run(local::make_groups(workers)[static_cast<std::size_t>(rank)],
                         stencil::ring(), *backend, made_up_data(), options);
}

bool are_next(train::TrainingBatches& batches, train::TrainingBatches& lost, int epoch,
              std::size_t round) {
  const Batch* missed = batches.next_missed();
  if (missed == nullptr) return false;
  const Batch& same = lost.batch(epoch, round);
  return std::equal(missed->inputs.begin(), missed->inputs.end(), same.inputs.begin());
}

/// The first values of the samples of some epochs tell them apart.
std::set<float> samples_of(train::TrainingBatches& batches, int epochs) {
  std::set<float> all;
  for (int epoch = 0; epoch < epochs; ++epoch)
    for (std::size_t round = 0; round < batches.rounds(); ++round) {
      const Batch& batch = batches.batch(epoch, round);
      for (std::size_t s = 0; s < batch.count(); ++s) all.insert(batch.inputs[s * 16]);
    }
  return all;
}

}  // namespace

TEST_CASE("the workers' batches of an epoch are of different samples") {
  std::set<float> all;
  std::size_t rounds = 0;
  for (int rank = 0; rank < 4; ++rank) {
    train::TrainingBatches batches(sharded_plan(rank, "even"));
    rounds += batches.rounds();
    all.merge(samples_of(batches, 1));
  }
  CHECK(all.size() == 16 * rounds);
}

TEST_CASE("a worker trains on samples of a neighbor that is gone, in as many rounds as before") {
  train::TrainingBatches batches(sharded_plan(1, "dirichlet:0.5"));
  const std::size_t rounds = batches.rounds();
  const auto own = samples_of(batches, 8);
  batches.take_over({}, 0);
  CHECK(samples_of(batches, 8) == own);
  batches.parts().note_missed(2, 0);
  batches.take_over({}, 1);
  CHECK(batches.rounds() == rounds);
  CHECK(samples_of(batches, 8).size() > own.size());
}

TEST_CASE("batches that a lost worker has left out come in their order, each once") {
  train::TrainingBatches batches(sharded_plan(1, "even")), lost(sharded_plan(1, "even"));
  const std::size_t rounds = batches.rounds();
  CHECK(batches.next_missed() == nullptr);
  batches.note_left_out(3, 1, 1);  // the last two of epoch 0, the first of epoch 1
  for (const std::size_t place : {rounds - 2, rounds - 1, rounds}) {
    const Batch* missed = batches.next_missed();
    REQUIRE(missed != nullptr);
    const Batch& same = lost.batch(static_cast<int>(place / rounds), place % rounds);
    CHECK(std::equal(missed->inputs.begin(), missed->inputs.end(), same.inputs.begin()));
  }
  CHECK(batches.next_missed() == nullptr);
}

TEST_CASE("batches that several workers have left out come in their order, also after a growth") {
  const train::RunPlan before = sharded_plan(1, "even", 3), after = sharded_plan(1, "even", 4);
  train::TrainingBatches lost(before);
  for (const bool grows : {false, true}) {
    INFO((grows ? "grows" : "does not grow"));
    train::TrainingBatches batches(before);
    batches.note_left_out(2, 1, 3, 5);
    batches.note_left_out(1, 1, 3);
    CHECK(are_next(batches, lost, 0, lost.rounds() - 4));
    if (grows) batches.grow(after);
    CHECK(are_next(batches, lost, 0, lost.rounds() - 3));
    CHECK(are_next(batches, lost, 1, 2));
    CHECK(batches.next_missed() == nullptr);
  }
}

TEST_CASE("batches that were left out before a growth are those of fewer workers") {
  for (const char* shards : {"even", "dirichlet:0.5"}) {
    INFO(shards);
    const train::RunPlan before = sharded_plan(1, shards, 3), after = sharded_plan(1, shards, 4);
    train::TrainingBatches lost(before), lost_after(after);
    const std::size_t rounds = lost.rounds();
    CHECK(rounds > lost_after.rounds());

    train::TrainingBatches there(before);  // as the run grows
    there.note_left_out(3, 1, 1);
    CHECK(are_next(there, lost, 0, rounds - 2));
    there.grow(after);
    CHECK(there.rounds() == lost_after.rounds());
    CHECK(are_next(there, lost, 0, rounds - 1));
    CHECK(are_next(there, lost, 1, 0));
    CHECK(there.next_missed() == nullptr);

    train::TrainingBatches late(after);  // comes when the run has grown before epoch 1
    late.note_left_out(1, 1, 1);
    late.note_left_out(after, 3, 2, 1);
    CHECK(are_next(late, lost, 0, rounds - 2));
    CHECK(are_next(late, lost, 0, rounds - 1));
    CHECK(are_next(late, lost_after, 1, 0));
    CHECK(late.next_missed() == nullptr);
  }
}

namespace {

/// Notes when the memory of a prefetcher is used after a later one has begun to take its own.
struct WatchedMemory final : BatchMemory {
  std::mutex mutex;
  std::set<const float*> now, before;
  bool next_begins = false;
  int late = 0;

  /// The memory that is allocated from now on is that of a later prefetcher.
  void expect_next() {
    const std::lock_guard lock(mutex);
    next_begins = true;
  }
  std::shared_ptr<float> allocate(std::size_t values) override {
    auto own = std::make_shared<std::vector<float>>(values);
    const std::lock_guard lock(mutex);
    if (std::exchange(next_begins, false)) before.merge(std::exchange(now, {}));
    before.erase(own->data());  // freed memory may come again
    now.insert(own->data());
    return {own, own->data()};
  }
  void note(const float* inputs) {
    const std::lock_guard lock(mutex);
    if (before.contains(inputs)) ++late;
  }
  void refill(const float* inputs) override {
    note(inputs);
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  }
  void filled(const Batch& batch) override { note(batch.inputs.data()); }
};

}  // namespace

TEST_CASE("when a run grows, one prefetcher uses the memory of batches at a time") {
  for (const std::int64_t left_out : {0, 3}) {
    const auto memory = std::make_shared<WatchedMemory>();
    train::RunPlan before = sharded_plan(1, "even", 3), after = sharded_plan(1, "even", 4);
    before.options.prefetch = after.options.prefetch = {.ahead = 8, .memory = memory};
    train::TrainingBatches batches(before);
    batches.batch(0, 0);  // the thread goes on with the next ones
    batches.note_left_out(left_out, 1, 1);
    memory->expect_next();
    batches.grow(after);
    batches.batch(1, 0);
    std::int64_t missed = 0;
    while (batches.next_missed() != nullptr) ++missed;
    CHECK(missed == left_out);
    CHECK(memory->late == 0);
  }
}
