#include "train/options/rows.hpp"

#include <fast/core/error.hpp>
#include <utility>

#include "core/text.hpp"

namespace fast::train {
namespace {

using namespace options;

/// A value that has a text(), and a function that reads it and throws Error on another text.
template <class T>
Value<T> with_text(std::string required, T (*read)(std::string_view text)) {
  return {.required = std::move(required),
          .parse =
              [read](std::string_view text, T& into) {
                try {
                  return into = read(text), Fit::good;
                } catch (const Error&) {
                  return Fit::unreadable;
                }
              },
          .format = [](const T& value) { return value.text(); }};
}

Value<LearningRate::Schedule> schedule() {
  using enum LearningRate::Schedule;
  return choice<LearningRate::Schedule>(
      {{"constant", constant}, {"step", step}, {"cosine", cosine}, {"plateau", plateau}});
}

/// Rounds, or seconds or minutes with their unit.
Fit read_interval(std::string_view text, CheckpointOptions& into) {
  const double unit_s = text.ends_with("min") ? 60 : text.ends_with("s") ? 1 : 0;
  std::int64_t rounds = 0;
  double time_s = 0;
  if (unit_s == 0) {
    if (!reads(text, rounds) || rounds <= 0) return Fit::unreadable;
  } else {
    text.remove_suffix(unit_s == 60 ? 3 : 1);
    if (!reads(text, time_s) || !positive().contains(time_s * unit_s)) return Fit::unreadable;
  }
  into.every_rounds = rounds;
  into.every_s = time_s * unit_s;
  return Fit::good;
}

Value<CheckpointOptions> interval() {
  return {.kind = Kind::mixed,
          .required = "a number of rounds or a time (90s, 10min)",
          .parse = read_interval,
          .format = [](const CheckpointOptions& checkpoints) -> std::optional<std::string> {
            if (checkpoints.every_rounds > 0 && checkpoints.every_s > 0)
              return fmt::format("{} rounds and {}s", checkpoints.every_rounds,
                                 checkpoints.every_s);
            if (checkpoints.every_rounds > 0) return fmt::format("{}", checkpoints.every_rounds);
            if (checkpoints.every_s > 0) return fmt::format("{}s", checkpoints.every_s);
            return std::nullopt;
          }};
}

Fit read_slow_workers(std::string_view text, std::map<int, double>& into) {
  std::map<int, double> slow;
  for (const std::string_view one : split_text(text, ',')) {
    const std::size_t colon = one.find(':');
    int worker = -1;
    double factor = 0;
    const bool good = colon != std::string_view::npos && reads(one.substr(0, colon), worker) &&
                      reads(one.substr(colon + 1), factor) && worker >= 0;
    if (!good || !slow.emplace(worker, factor).second) return Fit::unreadable;
  }
  into = std::move(slow);
  return Fit::good;
}

Value<std::map<int, double>> slow_workers() {
  return {.required = "RANK:FACTOR (2:4), for several workers 1:2,2:4",
          .parse = read_slow_workers,
          .format = [](const std::map<int, double>& slow) -> std::optional<std::string> {
            if (slow.empty()) return std::nullopt;
            std::string text;
            for (const auto& [worker, factor] : slow)
              text += fmt::format("{}{}:{}", text.empty() ? "" : ",", worker, factor);
            return text;
          }};
}

void add_data_rows(OptionTable& table, TrainerOptions& trainer) {
  table.group("data");
  table
      .add("shards", trainer.shards,
           with_text("even or dirichlet:ALPHA with a positive number (dirichlet:0.1)",
                     data::sharding_from),
           "even, or dirichlet:ALPHA: each worker has few labels (the smaller ALPHA, the fewer), "
           "like data that were gathered in different places")
      .offer({"even"})
      .agreed();
  table
      .add("balance", trainer.balance,
           with_text("even, measured or a positive number for each worker (1,2,4)", balance_from),
           "even, measured or 1,2,4: batches have the same size on all workers, or sizes in "
           "proportion to their measured speed or to these numbers, one for each worker")
      .offer({"even", "measured"})
      .agreed();
  table
      .add("step_samples", trainer.step_samples, number<std::size_t>(any()),
           "samples of an optimizer step: a worker with a larger batch makes several local steps "
           "in a round; 0: one step with the whole batch")
      .agreed();
  table
      .add("window", trainer.window, optional(number<std::size_t>(one_or_more()), "auto"),
           "samples that are shuffled together: of shards (.packed, .tar) 10000, of data in memory "
           "all, unless this is given")
      .agreed();
  table
      .add("adopt_lost_shards", trainer.take_over,
           "with --shards dirichlet: neighbors train on the samples of a worker that is gone, "
           "from the next epoch on")
      .also("take_over");
  table
      .add("mixup", trainer.mixup, number<double>(zero_or_more()),
           "train on pairs of samples of a batch, mixed in shares from Beta(MIXUP, MIXUP) with "
           "their labels, as 0.2; 0: not")
      .agreed();
  table.add("loader_threads", trainer.loader_threads, number<int>(one_or_more()),
            "threads that make a batch");
}

void add_optimizer_rows(OptionTable& table, TrainerOptions& trainer) {
  table.group("optimizer");
  table.add("epochs", trainer.epochs, number<int>(one_or_more()), "passes over the training data")
      .agreed();
  table
      .add("lr_schedule", trainer.learning_rate.schedule, schedule(),
           "constant, step (a tenth at 1/2, a hundredth at 3/4), cosine, or plateau (lower each "
           "time that the loss on the samples of --validation falls no more)")
      .also("schedule")
      .agreed();
  const auto on_plateau = [&trainer] {
    return trainer.learning_rate.schedule == LearningRate::Schedule::plateau;
  };
  constexpr char plateau_only[] =
      "it is an option of --lr-schedule plateau; leave it out or take that schedule";
  table
      .add("plateau_factor", trainer.learning_rate.plateau_factor,
           number<double>({.low = 0, .high = 1, .low_counts = false, .text = "a {} in (0, 1)"}),
           "what the learning rate is multiplied by on a plateau")
      .agreed()
      .only_if(on_plateau, plateau_only);
  table
      .add("plateau_patience", trainer.learning_rate.plateau_patience, number<int>(zero_or_more()),
           "epochs in a row without a lower validation loss that leave the rate as it is")
      .agreed()
      .only_if(on_plateau, plateau_only);
  table
      .add("plateau_threshold", trainer.learning_rate.plateau_threshold, number<double>(fraction()),
           "share of the least validation loss by which a lower one must be below it")
      .agreed()
      .only_if(on_plateau, plateau_only);
  table
      .add("warmup", trainer.learning_rate.warmup_epochs, number<double>(zero_or_more()),
           "epochs in which the learning rate rises linearly (a quarter of the run at most)")
      .agreed();
  table
      .add("seed", trainer.seed, number<std::uint64_t>(any()),
           "seed of the initial weights and of the order of samples")
      .agreed();
  table
      .add("validation", trainer.validation, number<double>(fraction()),
           "share of the training samples, drawn from all classes, that is held out to choose the "
           "best epoch's mean model")
      .agreed();
  table
      .add("patience", trainer.patience, number<int>(zero_or_more()),
           "epochs without a better mean model (by --validation) after which the run ends; 0: run "
           "all epochs")
      .agreed();
  table
      .add("ema", trainer.ema_decay, number<double>(fraction()),
           "decay of an average of weights over steps, which the run ends with; 0: none")
      .agreed();
}

void add_exchange_rows(OptionTable& table, TrainerOptions& trainer) {
  table.group("exchange");
  table
      .add("arena", trainer.arena,
           choice<Arena>({{"fixed", Arena::fixed}, {"rotating", Arena::rotating}}),
           "fixed, or rotating: weights live in what is published and the optimizer takes part in "
           "the averaging pass, which saves memory traffic (awc or pairwise, codec identity)")
      .agreed();
  table
      .add("closing_rounds", trainer.closing_rounds,
           optional(number<std::int64_t>(zero_or_more()), "auto"),
           "rounds of averaging only, after training; auto: by the spectral gap")
      .offer({"auto"})
      .agreed();
}

void add_output_rows(OptionTable& table, TrainerOptions& trainer) {
  table.group("output");
  table
      .add("out", trainer.out, path(),
           "directory for the mean model, metrics, logs and the options")
      .offer({std::string(directories)});
  table
      .add("log_level", trainer.log_level,
           choice<LogLevel>({{"error", LogLevel::error},
                             {"warning", LogLevel::warning},
                             {"info", LogLevel::info},
                             {"debug", LogLevel::debug}}),
           "the least that OUT/logs/RANK.log keeps: error, warning, info or debug")
      .only_if([&trainer] { return trainer.out.has_value(); },
               "the log is a file of the run's directory; add --out DIRECTORY");
  table.add("overwrite", trainer.overwrite,
            "replace the run that --out or --checkpoints holds; only files that a run writes are "
            "removed");
  using enum ProgressStyle;
  table.add(
      "progress", trainer.progress_style,
      choice<ProgressStyle>({{"auto", automatic}, {"bar", bar}, {"lines", lines}, {"none", none}}),
      "bar, lines (one every 5 s) or none; auto: a bar on a terminal, also under fastrun, "
      "otherwise lines");
  table.add("evaluate_every", trainer.evaluate_every, number<std::size_t>(any()),
            "rounds between lines of metrics (with --out), besides those of epochs; 0: none");
}

void add_checkpoint_rows(OptionTable& table, TrainerOptions& trainer) {
  CheckpointOptions& checkpoints = trainer.checkpoints;
  table.group("checkpoints");
  table
      .add("checkpoint_every", checkpoints, interval(),
           "a number of rounds, or a time (90s, 10min), after which all workers save what they "
           "need to go on; on SIGTERM or SIGUSR2 they save and end")
      .agreed();
  table
      .add("checkpoints", checkpoints.directory, path(),
           "directory for checkpoints, the same for all workers [OUT/checkpoints]")
      .offer({std::string(directories)});
  table.add("keep", checkpoints.keep, number<int>(one_or_more()), "checkpoints that stay");
  table
      .add("resume", checkpoints.resume, path(),
           "a checkpoint, or a directory of checkpoints, to go on from")
      .offer({std::string(directories)})
      .agreed();
  table.add("strict", checkpoints.strict,
            "refuse checkpoints of which some worker's file is broken");
}

void add_fault_rows(OptionTable& table, TrainerOptions& trainer) {
  constexpr double seconds_of_ms = 1e-3;
  table.group("faults");
  table.add("slow", trainer.pace.slow, slow_workers(),
            "RANK:FACTOR, a worker whose steps sleep so that they take FACTOR times as long; also "
            "several (1:2,2:4)");
  table.add("step_ms", trainer.pace.step_s, scaled(zero_or_more(), seconds_of_ms),
            "milliseconds that a step on --batch-size samples takes at least; shorter steps sleep");
}

}  // namespace

void add_rows(OptionTable& table, TrainerOptions& trainer) {
  add_data_rows(table, trainer);
  add_optimizer_rows(table, trainer);
  add_exchange_rows(table, trainer);
  add_output_rows(table, trainer);
  add_checkpoint_rows(table, trainer);
  add_fault_rows(table, trainer);
}

void add_batch_size(OptionTable& table, std::size_t& samples) {
  table.add("batch_size", samples, options::number<std::size_t>(options::one_or_more()),
            "samples per step and worker");
}

void add_learning_rate(OptionTable& table, std::optional<double>& rate,
                       std::string_view otherwise) {
  table
      .add("lr", rate, options::optional(options::number<double>(options::positive())),
           fmt::format("learning rate [{}]", otherwise))
      .also("learning_rate");
}

LearningRate usual_learning_rate() { return {0.05, LearningRate::Schedule::cosine, 1}; }

}  // namespace fast::train
