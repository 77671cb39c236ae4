// A run's checkpoints: when they are due, what is in them, and how a run goes on from one.
#include <fast/core/error.hpp>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <random>

#include "train/training_run.hpp"

namespace fast::train {
namespace {

constexpr std::string_view state_prefix = "state.", ema_prefix = "ema.", best_prefix = "best.";
constexpr double hear_within_s = 0.5;

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

/// The file's own memory.
std::vector<TensorView> views_of(const Safetensors& file, std::string_view prefix) {
  std::vector<TensorView> views;
  for (const StoredTensor& tensor : file.tensors()) {
    if (!tensor.name.starts_with(prefix)) continue;
    void* data = const_cast<std::byte*>(file.data(tensor).data());
    views.push_back(
        {tensor.name.substr(prefix.size()), data, tensor.shape, tensor.dtype, Role::parameter, {}});
  }
  return views;
}

std::int64_t number(const Safetensors& file, const std::string& name) {
  const auto found = file.metadata().find(name);
  std::int64_t value = -1;
  if (found != file.metadata().end()) {
    const std::string& text = found->second;
    std::from_chars(text.data(), text.data() + text.size(), value);
  }
  require(value >= 0, ErrorKind::data,
          "checkpoint: its metadata have no \"{}\"; it was not written by a training run", name);
  return value;
}

/// Whose files make up worker `rank` of `workers`: those of a group, or one that is cloned.
std::vector<int> sources_of(const Manifest& manifest, int rank, int workers) {
  if (manifest.workers <= workers) return {rank % manifest.workers};
  std::vector<int> group;
  for (int w = manifest.workers * rank / workers; w < manifest.workers * (rank + 1) / workers; ++w)
    group.push_back(w);
  return group;
}

}  // namespace

bool Training::saves_checkpoints() const {
  const CheckpointOptions& options = options_.checkpoints;
  return options.every_rounds > 0 || options.every_s > 0 || options.directory;
}

void Training::check_checkpoints() const {
  const CheckpointOptions& options = options_.checkpoints;
  require(options.every_rounds >= 0 && options.every_s >= 0, ErrorKind::argument,
          "Trainer: checkpoints every {} rounds or {} s; 0 or more are required",
          options.every_rounds, options.every_s);
  require(!saves_checkpoints() || options.directory || options_.out, ErrorKind::argument,
          "Trainer: checkpoints without a directory; name one for them or for the run's output");
}

RunPlaces Training::places() const {
  const CheckpointOptions& options = options_.checkpoints;
  RunPlaces places{options_.out, std::nullopt, options.resume, options_.overwrite};
  if (saves_checkpoints())
    places.checkpoints = options.directory.value_or(options_.out.value_or("") / "checkpoints");
  return places;
}

bool Training::is_first_of_host() const {
  return group_.hosts()[static_cast<std::size_t>(group_.rank())] == group_.rank();
}

/// Collective. One worker of each host makes its directories the run's, before any writes there.
void Training::take_places() {
  const Deadline deadline(options_.worker.deadline);
  std::random_device device;
  const std::string random = fmt::format("{:08x}{:08x}", device(), device());
  const std::string fresh = group_.all_gather(random, deadline, "Trainer: numbering the run")[0];
  agree(group_, deadline, "Trainer: opening the run's directories", [&] {
    if (!is_first_of_host()) return;
    std::optional<std::int64_t> from;
    if (options_.checkpoints.resume) from = find_checkpoint(*options_.checkpoints.resume).round;
    claim(places(), number_of(places(), fresh), from);
  });
  agree(group_, deadline, "Trainer: opening the run's files", [&] {
    if (options_.out) metrics_.emplace(*options_.out, group_.rank());
    if (saves_checkpoints()) open_checkpoints();
  });
}

void Training::open_checkpoints() {
  const CheckpointOptions& options = options_.checkpoints;
  CheckpointWriter::Options writer;
  writer.directory = *places().checkpoints;
  writer.rank = group_.rank();
  writer.workers = group_.size();
  writer.keep = options.keep;
  writer.patience_s = 2 * options_.worker.suspect_after.count();
  writer.log = options_.worker.log;
  checkpoints_.emplace(std::move(writer));
}

/// Collective.
void Training::open_control() {
  RunControl::Options control;
  control.exact = options_.worker.staleness == 0;
  control.silent_after = options_.worker.suspect_after;
  control.deadline = options_.worker.deadline;
  control.stop_requested = options_.checkpoints.stop_requested;
  control_.emplace(group_, std::move(control));
}

/// Rounds in which every worker hears of a checkpoint that is wanted, so that none has to hold.
std::int64_t Training::rounds_ahead() const {
  const double round_s = loop_s_ / static_cast<double>(std::max<std::int64_t>(1, rounds_here_));
  return static_cast<std::int64_t>(std::ceil(hear_within_s / std::max(round_s, 1e-6)));
}

/// Before a round: saves or stops when the workers have agreed to do so here. False: stops.
bool Training::may_go_on() {
  for (;;) {
    const Turn turn = control_->take_turn(rounds_, rounds_ahead());
    if (turn == Turn::go) return true;
    stopped_ = turn == Turn::stop;
    const std::int64_t round = control_->round_of(stopped_ ? Request::stop : Request::save);
    if (checkpoints_ && round != last_saved_) save_checkpoint(round);
    if (stopped_) return false;
    control_->saved();
  }
}

/// Saves when that is due by rounds; asks all to do so when it is due otherwise.
void Training::after_round() {
  if (!checkpoints_) return;
  const CheckpointOptions& options = options_.checkpoints;
  const bool exact = options_.worker.staleness == 0;
  const bool by_time =
      options.every_s > 0 && Seconds(Clock::now() - saved_at_).count() >= options.every_s;
  const bool by_rounds = options.every_rounds > 0 && rounds_ >= last_saved_ + options.every_rounds;
  if (by_time || (by_rounds && !exact)) control_->request_save();
  const bool is_due = options.every_rounds > 0 && rounds_ % options.every_rounds == 0;
  if (exact && is_due) save_checkpoint(rounds_);
}

void Training::save_checkpoint(std::int64_t round) {
  bring_weights_home();
  std::vector<TensorView> tensors;
  download();
  add(tensors, model_prefix, backend_.parameters());
  add(tensors, optimizer_prefix, backend_.optimizer_state());
  add(tensors, state_prefix, worker_->state());
  if (ema_) add(tensors, ema_prefix, ema_->state());
  if (best_.packed.size_bytes() > 0) add(tensors, best_prefix, best_.state());
  checkpoints_->save(round, tensors,
                     {{"fast.round", std::to_string(rounds_)},
                      {"fast.epoch", std::to_string(next_.epoch)},
                      {"fast.epoch_round", std::to_string(next_.round)},
                      {"fast.epoch_rounds", std::to_string(loader_->rounds())},
                      {"fast.workers", std::to_string(group_.size())},
                      {"fast.worker", std::to_string(group_.rank())}});
  last_saved_ = round;
  saved_at_ = Clock::now();
}

/// Collective.
void Training::resume() {
  if (!options_.checkpoints.resume) return;
  std::optional<Manifest> manifest;
  std::optional<Safetensors> own;
  const Deadline deadline(options_.worker.deadline);
  const auto tell = [&](const std::string& text) {
    if (options_.worker.log) options_.worker.log(LogLevel::warning, text);
  };
  agree(group_, deadline, "Trainer: resuming", [&] {
    manifest = find_checkpoint(*options_.checkpoints.resume);
    if (manifest->workers != group_.size()) return;
    try {
      own = read_shard(*manifest, group_.rank());
    } catch (const Error& error) {
      if (options_.checkpoints.strict) throw;
      tell(
          fmt::format("worker {}: {}; taking its neighbors' average", group_.rank(), error.what()));
    }
  });
  const std::string mine =
      fmt::format("{} {}", manifest->round, own ? number(*own, "fast.round") : std::int64_t{-1});
  const auto all = group_.all_gather(mine, deadline, "Trainer: resuming");
  const bool whole = std::all_of(all.begin(), all.end(),
                                 [](const std::string& one) { return !one.ends_with(" -1"); });
  const bool alike = std::all_of(all.begin(), all.end(),
                                 [&](const std::string& one) { return one == all.front(); });
  const bool exact = whole && (alike || options_.worker.staleness != 0);
  agree(group_, deadline, "Trainer: resuming", [&] {
    load(*manifest, own, exact);
    upload();
    if (!exact) begin_ema();
  });
  if (exact) {
    worker_->restore(views_of(*own, state_prefix));
  } else {
    worker_->republish();
  }
  resumed_ = rounds_ = last_saved_ = manifest->round;
  if (group_.rank() == 0 && options_.worker.log) {
    options_.worker.log(LogLevel::info, fmt::format("resuming from round {} of {}", manifest->round,
                                                    manifest->directory.string()));
  }
}

/// Parameters, buffers and the optimizer's state, and where in its data the run stood.
void Training::load(const Manifest& manifest, const std::optional<Safetensors>& own, bool exact) {
  std::vector<TensorView> model = backend_.parameters();
  std::vector<TensorView> optimizer = backend_.optimizer_state();
  if (own) {
    own->read(prefixed(model_prefix, model));
    own->read(prefixed(optimizer_prefix, optimizer));
    take_position(*own);
  } else {
    load_average(manifest, model, optimizer);
  }
  if (!exact) return;
  if (ema_) {
    own->read(prefixed(ema_prefix, ema_->state()));
    ema_->take_state();
  }
  const auto best = views_of(*own, best_prefix);
  if (validation_.size() > 0 && group_.rank() == 0 && !best.empty()) {
    best_.packed = AlignedBuffer(layout_.size_bytes());
    own->read(prefixed(best_prefix, best_.state()));
  }
}

/// Of as many workers: the neighbors' average, or everybody's where no neighbor's file is whole.
void Training::load_average(const Manifest& manifest, const std::vector<TensorView>& model,
                            const std::vector<TensorView>& optimizer) {
  const auto read_from = [&](const std::vector<int>& workers) {
    const OwnedTensors found = average_shards(manifest, workers, model_prefix, options_.worker.log);
    copy_tensors(found.views, model, "checkpoint");
    copy_tensors(average_shards(manifest, workers, optimizer_prefix).views, optimizer,
                 "checkpoint");
  };
  std::vector<int> everybody, sources = sources_of(manifest, group_.rank(), group_.size());
  for (int w = 0; w < manifest.workers; ++w) everybody.push_back(w);
  if (manifest.workers == group_.size()) sources = schedule_->at(0).in_neighbors(group_.rank());
  try {
    read_from(sources);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data || options_.checkpoints.strict) throw;
    read_from(everybody);
  }
  for (const Shard& shard : manifest.shards) {
    try {
      take_position(read_shard(manifest, shard.worker));
      return;
    } catch (const Error&) {
    }
  }
}

std::size_t place_in_epoch(std::int64_t round, std::int64_t of, std::size_t rounds) {
  if (of <= 0 || round >= of || rounds == 0) return 0;
  const double part = static_cast<double>(round) / static_cast<double>(of);
  const auto nearest = std::llround(part * static_cast<double>(rounds));
  return std::min(static_cast<std::size_t>(nearest), rounds - 1);
}

/// In parts of an epoch, as its rounds are others with another number of workers.
void Training::take_position(const Safetensors& file) {
  next_.epoch = static_cast<int>(number(file, "fast.epoch"));
  next_.round = place_in_epoch(number(file, "fast.epoch_round"), number(file, "fast.epoch_rounds"),
                               loader_->rounds());
}

}  // namespace fast::train
