#include "train/run/resume.hpp"

#include <algorithm>
#include <cstring>
#include <fast/core/error.hpp>
#include <fast/train/model_metadata.hpp>
#include <numeric>
#include <sstream>
#include <string>

#include "core/message.hpp"

namespace fast::train {
namespace {

constexpr auto beginning_of_stream = "Trainer: beginning of the stream";

void begin_here(const RunPlan& plan, const TrainingCursor& position, data::StreamOrder& order) {
  const std::string& name = plan.options.stream->name();
  const data::SampleStream::Extent extent = plan.options.stream->extent();
  const auto epoch = static_cast<std::size_t>(position.epoch());
  if (!order.has_begun()) return order.begin(extent.first, epoch, position.round());
  const std::string now = plan.options.stream->identity();
  require(order.stream().empty() || now.empty() || order.stream() == now, ErrorKind::data,
          "{}: it was deleted and made again since the checkpoint: its numbers are those of other "
          "samples; resume on the stream of the run, or begin a new run",
          name);
  const std::uint64_t next = order.round_begin(epoch, position.round());
  require(next <= extent.end, ErrorKind::data,
          "{}: the checkpoint goes on with message {}, the stream ends with message {}; it is "
          "another stream, or was made again: resume on the stream of the run",
          name, next, extent.end - 1);
  if (next >= extent.first) return;
  plan.log(LogLevel::warning,
           fmt::format("{}: messages {} to {} are no longer there: the run goes on without these "
                       "{}",
                       name, next, extent.first - 1, extent.first - next));
  order.begin(extent.first, epoch, position.round());
}

}  // namespace

void begin_stream(const RunPlan& plan, const TrainingCursor& position, data::StreamOrder& order) {
  agree(plan.group, plan.deadline(), beginning_of_stream, [&] {
    if (plan.group.rank() == 0) begin_here(plan, position, order);
  });
  const auto origins =
      plan.group.all_gather(std::to_string(order.origin()), plan.deadline(), beginning_of_stream);
  order.begin_at_origin(std::stoll(origins.front()));
  order.set_stream(plan.options.stream->identity());
}

std::vector<int> sources_of(const Manifest& manifest, int rank, int workers) {
  if (manifest.workers <= workers) return {rank % manifest.workers};
  std::vector<int> group;
  for (int w = manifest.workers * rank / workers; w < manifest.workers * (rank + 1) / workers; ++w)
    group.push_back(w);
  return group;
}

namespace {

constexpr auto resuming = "Trainer: resuming";
constexpr auto worker_rounds = "worker rounds";

/// The rounds of the Worker whose state a file holds.
std::int64_t rounds_in(const Safetensors& file) {
  std::int64_t rounds = 0;
  if (const StoredTensor* counters = file.find("state.worker.counters"))
    std::memcpy(&rounds, file.data(*counters).data(), sizeof rounds);
  return rounds;
}

/// Of the whole run.
std::int64_t own_rounds(const Safetensors& file) {
  return metadata_number(file.metadata(), "fast.round");
}

bool is_spare(const RunPlan& plan) { return plan.group.rank() >= plan.group.size(); }

/// What other workers have to know of a worker's file, in one line: empty when it has none.
std::string describe_place(const ResumePoint& point) {
  if (!point.own) return {};
  const auto number = [&](const char* name) {
    return metadata_number(point.own->metadata(), name);
  };
  return fmt::format("{} {} {} {} {} {}", point.manifest.round, number("fast.round"),
                     number("fast.epoch"), number("fast.epoch_round"), number("fast.epoch_rounds"),
                     rounds_in(*point.own));
}

Metadata read_place(const std::string& line) {
  std::istringstream in(line);
  Metadata place;
  for (const char* name : {"checkpoint", "fast.round", "fast.epoch", "fast.epoch_round",
                           "fast.epoch_rounds", worker_rounds}) {
    in >> place[name];
  }
  return place;
}

bool are_of_one_round(const Metadata& a, const Metadata& b) {
  return a.at("checkpoint") == b.at("checkpoint") && a.at("fast.round") == b.at("fast.round");
}

/// Of the first file that can be read.
Metadata first_place(const Manifest& manifest) {
  for (const WorkerFile& shard : manifest.shards) {
    try {
      return read_shard(manifest, shard.worker).metadata();
    } catch (const Error&) {
      continue;
    }
  }
  return {};
}

/// Of the files that this worker takes. Throws Error(data) for one that is missing or broken.
void require_whole(const RunPlan& plan, const Manifest& manifest) {
  for (const int source : sources_of(manifest, plan.group.rank(), plan.group.size()))
    read_shard(manifest, source);
}

/// A table that has changed may have other categories, and as many: the weights would be of others.
/// So they are of targets that are scaled, or not.
void check_features(const RunPlan& plan, const ResumePoint& point) {
  const std::string directory = point.manifest.directory.string();
  const std::optional<ModelMetadata> note =
      model_note(point.own ? point.own->metadata() : first_place(point.manifest), directory);
  if (!note) return;
  const bool was_scaled = !note->normalization.target_mean.empty();
  require(was_scaled != plan.data.normalization.target_mean.empty(), ErrorKind::argument,
          "Trainer: the targets of {} were {}; {} --scale-targets", printable(directory),
          was_scaled ? "scaled" : "not scaled", was_scaled ? "add" : "leave out");
  require(note->normalization.target_mean == plan.data.normalization.target_mean &&
              note->normalization.target_stddev == plan.data.normalization.target_stddev,
          ErrorKind::data,
          "Trainer: the targets have another mean or standard deviation than those of {}, to which "
          "its outputs are scaled; resume with the data of the run, or begin a new run",
          printable(directory));
  if (plan.data.features.empty() || note->features.empty() || note->features == plan.data.features)
    return;
  const auto [own, theirs] =
      std::ranges::mismatch(plan.data.features, note->features);  // one may be longer
  const auto shown = [](const auto& at, const auto& end) {
    return at == end ? std::string("none") : fmt::format("\"{}\"", printable(*at));
  };
  fail(ErrorKind::data,
       "Trainer: feature {} of the data is {}, that of {} is {}; resume with the table of "
       "the run, or begin a new run",
       own - plan.data.features.begin() + 1, shown(own, plan.data.features.end()),
       printable(directory), shown(theirs, note->features.end()));
}

void find(const RunPlan& plan, ResumePoint& point) {
  point.manifest = find_checkpoint(*plan.options.checkpoints.resume);
  if (is_spare(plan)) {
    point.any_place = first_place(point.manifest);
    return;
  }
  if (point.manifest.workers != plan.group.size()) {
    if (plan.options.checkpoints.strict) require_whole(plan, point.manifest);
    check_features(plan, point);
    return;
  }
  try {
    point.own = read_shard(point.manifest, plan.group.rank());
  } catch (const Error& error) {
    if (plan.options.checkpoints.strict) throw;
    plan.log(LogLevel::warning, fmt::format("worker {}: {}; taking its neighbors' average",
                                            plan.group.rank(), error.what()));
  }
  check_features(plan, point);
}

/// Collective over all ranks. `line` describes this worker's place.
void compare(const RunPlan& plan, const std::string& line, ResumePoint& point) {
  auto lines = plan.group.everyone().all_gather(line, plan.deadline(), resuming);
  lines.resize(static_cast<std::size_t>(plan.group.size()));
  const bool whole =
      std::ranges::none_of(lines, [](const std::string& line) { return line.empty(); });
  if (!whole) return;
  for (const std::string& line : lines) point.places.push_back(read_place(line));
  const bool alike = std::ranges::all_of(point.places, [&](const auto& place) {
    return are_of_one_round(place, point.places.front());
  });
  point.exact = alike || plan.options.worker.staleness != 0;
}

/// Of the learning rate, as far as this worker's file knows.
std::int64_t reductions_in(const RunPlan& plan, const ResumePoint& point) {
  if (plan.options.learning_rate.schedule != LearningRate::Schedule::plateau) return 0;
  const Metadata place = point.own ? point.own->metadata() : first_place(point.manifest);
  return place.contains(lr_reductions_key) ? metadata_number(place, lr_reductions_key) : 0;
}

/// Collective over all ranks. Above staleness 0, files may be of different rounds: all take the
/// lowest rate.
std::int64_t most_reductions(const RunPlan& plan, std::int64_t own) {
  if (plan.options.learning_rate.schedule != LearningRate::Schedule::plateau) return 0;
  std::int64_t most = 0;
  for (const std::string& one :
       plan.group.everyone().all_gather(std::to_string(own), plan.deadline(), resuming))
    most = std::max<std::int64_t>(most, std::stoll(one));
  return most;
}

}  // namespace

std::optional<ResumePoint> find_resume_point(const RunPlan& plan) {
  if (!plan.options.checkpoints.resume) return std::nullopt;
  ResumePoint point;
  std::string line;
  agree(plan.group.everyone(), plan.deadline(), resuming, [&] {
    find(plan, point);
    line = describe_place(point);
    point.reductions = reductions_in(plan, point);
  });
  compare(plan, line, point);
  point.reductions = most_reductions(plan, point.reductions);
  return point;
}

void Resume::run() {
  if (!point_) return;
  agree(plan_.group, plan_.deadline(), resuming, [this] { load(); });
  if (point_->exact) {
    state_.restore_rule(*point_->own);
  } else {
    replica_.worker().republish();
  }
  const std::int64_t round = point_->manifest.round;
  state_.position().count_from(round, point_->exact ? own_rounds(*point_->own) : round);
  point_->own.reset();  // its memory
  const bool has_ended = state_.agree_on_end();
  if (plan_.group.rank() != 0) return;
  const bool is_over = state_.position().epoch() >= plan_.options.epochs;
  const char* const then = is_over     ? "; all epochs are done, no step follows"
                           : has_ended ? "; the run had ended by its patience, no step follows"
                                       : "";
  plan_.log(LogLevel::info, fmt::format("resuming from round {} of {}{}", round,
                                        point_->manifest.directory.string(), then));
}

void Resume::join(const std::optional<membership::NumberedRound>& next) {
  TrainingCursor& position = state_.position();
  std::int64_t before = 0;
  if (point_) {
    const auto seat = static_cast<std::size_t>(plan_.group.rank());
    const bool has_own = seat < point_->places.size();  // unlike a worker that joins
    const Metadata& place = point_->exact ? point_->places[has_own ? seat : 0] : point_->any_place;
    if (!place.empty()) position.take_place(place);
    if (point_->exact) before = metadata_number(place, worker_rounds);
    const std::int64_t saved = point_->manifest.round;
    position.count_from(saved, point_->exact ? metadata_number(place, "fast.round") : saved);
  }
  const std::int64_t round = replica_.worker().round();
  position.advance(round - before);
  if (next) position.take_place(static_cast<int>(next->number), next->round, round);
}

void Resume::load() {
  const bool equal =
      !point_->exact && plan_.options.worker.algorithm.traits().memory.needs_equal_start;
  if (point_->own) {
    state_.read(*point_->own);
  } else {
    if (!equal) load_average();
    const Metadata place = first_place(point_->manifest);
    if (!place.empty()) state_.take_place(place);
  }
  if (point_->exact) state_.read_average_so_far(*point_->own);
  if (equal) load_average_of_all(plan_.group.rank() == 0);
  load_best();
  replica_.home().upload();
  if (!point_->exact) replica_.restart_ema();
}

/// Worker 0's file may be whole where another one is missing, or where the workers are more or
/// fewer.
void Resume::load_best() {
  if (!state_.keeps_best()) return;
  if (point_->own) return state_.read_best(*point_->own);
  try {
    state_.read_best(read_shard(point_->manifest, 0));
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data) throw;
    plan_.log(LogLevel::warning, fmt::format("{}; the best model so far is lost", error.what()));
  }
}

/// Of as many workers: the neighbors' average, or everybody's where no neighbor's file is whole.
void Resume::load_average() {
  const Group& group = plan_.group;
  const Manifest& manifest = point_->manifest;
  std::vector<int> sources = sources_of(manifest, group.rank(), group.size());
  if (manifest.workers == group.size()) sources = plan_.schedule.at(0).in_neighbors(group.rank());
  try {
    state_.read_average(manifest, sources, plan_.options.worker.log);
  } catch (const Error& error) {
    if (error.kind() != ErrorKind::data || plan_.options.checkpoints.strict) throw;
    load_average_of_all(true);
  }
}

/// `tells`: of files that cannot be read.
void Resume::load_average_of_all(bool tells) {
  std::vector<int> everybody(static_cast<std::size_t>(point_->manifest.workers));
  std::iota(everybody.begin(), everybody.end(), 0);
  state_.read_average(point_->manifest, everybody, tells ? plan_.options.worker.log : LogSink());
}

}  // namespace fast::train
