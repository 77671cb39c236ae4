#include "train/run/run_files.hpp"

#include <fast/core/error.hpp>
#include <random>
#include <utility>

namespace fast::train {
namespace {

bool saves(const CheckpointOptions& options) {
  return options.every_rounds > 0 || options.every_s > 0 || options.directory;
}

/// The number of a new run: worker 0's.
std::string draw_number(const RunPlan& plan) {
  std::random_device device;
  const std::string random = fmt::format("{:08x}{:08x}", device(), device());
  return plan.group.all_gather(random, plan.deadline(), "Trainer: numbering the run")[0];
}

void claim_places(const RunPlaces& places, const std::string& fresh) {
  std::optional<std::int64_t> from;
  if (places.resume) from = find_checkpoint(*places.resume).round;
  claim(places, number_of(places, fresh), from);
}

CheckpointWriter::Options writer_options(const RunPlan& plan, std::filesystem::path directory) {
  CheckpointWriter::Options writer;
  writer.directory = std::move(directory);
  writer.rank = plan.group.rank();
  writer.workers = plan.group.size();
  writer.keep = plan.options.checkpoints.keep;
  writer.patience_s = 2 * plan.options.worker.suspect_after.count();
  writer.log = plan.options.worker.log;
  return writer;
}

}  // namespace

RunPlaces places_of(const TrainerOptions& options) {
  const CheckpointOptions& checkpoints = options.checkpoints;
  require(checkpoints.every_rounds >= 0 && checkpoints.every_s >= 0, ErrorKind::argument,
          "Trainer: checkpoints every {} rounds or {} s; 0 or more are required",
          checkpoints.every_rounds, checkpoints.every_s);
  RunPlaces places{options.out, std::nullopt, checkpoints.resume, options.overwrite};
  if (!saves(checkpoints)) return places;
  require(checkpoints.directory || options.out, ErrorKind::argument,
          "Trainer: checkpoints without a directory; name one for them or for the run's output");
  places.checkpoints =
      checkpoints.directory ? *checkpoints.directory : *options.out / "checkpoints";
  return places;
}

RunFiles open_files(const RunPlan& plan) {
  RunFiles files;
  const RunPlaces places = places_of(plan.options);
  const std::string fresh = draw_number(plan);
  agree(plan.group, plan.deadline(), "Trainer: opening the run's directories", [&] {
    if (plan.is_first_of_host()) claim_places(places, fresh);
  });
  agree(plan.group, plan.deadline(), "Trainer: opening the run's files", [&] {
    if (places.out) files.metrics.emplace(*places.out, plan.group.rank());
    if (!places.checkpoints) return;
    files.checkpoints =
        std::make_unique<CheckpointWriter>(writer_options(plan, *places.checkpoints));
  });
  return files;
}

}  // namespace fast::train
