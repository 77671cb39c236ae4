#include "train/run/checkpoint_state.hpp"

#include <fast/core/error.hpp>

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"
#include "train/run/resume.hpp"
#include "train/run/run_parts.hpp"

using namespace fast;
using namespace fast::testing;

namespace {

train::TrainerOptions averaged() {
  train::TrainerOptions options = trainer_options();
  options.ema_decay = 0.9;
  return options;
}

void train_rounds(RunParts& parts, std::size_t first, std::size_t count) {
  for (std::size_t round = first; round < first + count; ++round) {
    parts.replica.round(parts.batches.batch(0, round), 0.05);
    parts.position.advance(1);
  }
}

std::vector<double> average_of(RunParts& parts) { return values_of(parts.replica.ema()->packed()); }

}  // namespace

TEST_CASE("a run that reads its saved state continues with the same bits") {
  const TemporaryDirectory directory;
  const auto file = directory / "state.safetensors";
  std::vector<double> expected, expected_average;
  with_one_worker(averaged(), [&](RunParts& parts) {
    train_rounds(parts, 0, 9);
    train::save_safetensors(file, parts.state.tensors(), parts.state.metadata());
    train_rounds(parts, 9, 9);
    expected = values_of(parts.replica.own_model());
    expected_average = average_of(parts);
  });
  with_one_worker(averaged(), [&](RunParts& parts) {
    const train::Safetensors saved(file);
    CHECK(saved.metadata().at("fast.workers") == "1");
    parts.state.read(saved);
    parts.state.read_average_so_far(saved);
    if (parts.state.keeps_best()) parts.state.read_best(saved);
    parts.state.restore_rule(saved);
    CHECK(parts.position.round() == 9);
    train_rounds(parts, 9, 9);
    CHECK(values_of(parts.replica.own_model()) == expected);
    CHECK(average_of(parts) == expected_average);
  });
}

TEST_CASE("a best model that cannot be read leaves none behind") {
  const TemporaryDirectory directory;
  const auto file = directory / "state.safetensors";
  std::vector<std::uint8_t> packed(8);
  std::int64_t count = 0;
  const std::vector<TensorView> of_another_model{
      view_of("best.packed", std::span(packed)), view_of("best.correct", std::span(&count, 1)),
      view_of("best.epoch", std::span(&count, 1)), view_of("best.skipped", std::span(&count, 1))};
  train::save_safetensors(file, of_another_model);
  train::TrainerOptions options = trainer_options();
  options.validation = 0.2;
  with_one_worker(options, [&](RunParts& parts) {
    CHECK_THROWS_WITH(parts.state.read_best(train::Safetensors(file)),
                      ContainsSubstring("of another model"));
    CHECK_FALSE(parts.best.exists());
    CHECK(parts.best.state().empty());
  });
}

TEST_CASE("workers that resume with another number of workers use every file, in even groups") {
  for (const int before : {1, 2, 3, 5, 8}) {
    for (const int after : {1, 2, 3, 5, 8}) {
      INFO(before << " to " << after);
      const train::Manifest manifest{{}, 7, before, {}};
      std::vector<int> used(static_cast<std::size_t>(before));
      for (int rank = 0; rank < after; ++rank) {
        const auto sources = train::sources_of(manifest, rank, after);
        CHECK_FALSE(sources.empty());
        for (const int source : sources) ++used[static_cast<std::size_t>(source)];
      }
      const auto [least, most] = std::minmax_element(used.begin(), used.end());
      CHECK(*least >= 1);
      CHECK(*most - *least <= (after > before ? 1 : 0));
    }
  }
}
