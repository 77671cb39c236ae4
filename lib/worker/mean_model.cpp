#include "worker/mean_model.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <thread>
#include <utility>

#include "combine/model_memory.hpp"
#include "core/contains.hpp"
#include "exchange/group_impl.hpp"
#include "membership/liveness.hpp"
#include "worker/context.hpp"

namespace fast::worker {
namespace {

/// Smaller models are read directly: a part would be less than what an access costs.
constexpr std::size_t least_bytes = 4096;
constexpr auto look_again = std::chrono::milliseconds(1);

}  // namespace

Reduction::Reduction(const Context& context, std::shared_ptr<Peers> peers,
                     const ModelReader& reader)
    : worker_(context), peers_(std::move(peers)), reader_(reader) {}

Reduction::Found Reduction::run(const std::vector<int>& workers, std::span<std::byte> packed) {
  const std::size_t needed = worker_.mixer.layout().size_bytes();
  require(packed.empty() || packed.size() >= needed, ErrorKind::argument,
          "reduce_models: room for {} bytes, {} are needed", packed.size(), needed);
  if (workers.size() < 2 || !is_possible()) return directly(workers, packed);
  if (shown_.stage == Stage::none) begin(workers);
  const std::vector<int> missing = collect(!packed.empty());
  if (!missing.empty()) {
    complete(missing);
  } else {
    finish(packed.empty() ? Stage::known : Stage::whole, std::nullopt);
  }
  if (!packed.empty()) std::memcpy(packed.data(), room_.data(), needed);
  return {std::sqrt(std::max(shown_.all.mean_square, 0.0)), static_cast<int>(shown_.all.workers)};
}

/// The same on all workers.
bool Reduction::is_possible() {
  const std::size_t size = worker_.mixer.layout().size_bytes();
  if (peers_->results() == nullptr || !reader_.holds_weights() || size < least_bytes) return false;
  if (room_.empty()) room_ = peers_->results()->room();
  return room_.size() >= size;
}

Reduction::Found Reduction::directly(const std::vector<int>& workers,
                                     std::span<std::byte> packed) const {
  Found found{reader_.distance_among(workers), static_cast<int>(workers.size())};
  if (!packed.empty()) found.workers = reader_.mean_of(workers, packed);
  return found;
}

/// The parts do not depend on who lives: workers may not yet agree on that.
void Reduction::begin(const std::vector<int>& workers) {
  const ParameterLayout& layout = worker_.mixer.layout();
  const auto all = static_cast<std::size_t>(worker_.setting.group.size());
  const std::size_t elements = element_count(layout);
  workers_ = workers;
  figures_.resize(all);
  for (std::size_t part = 0; part < all; ++part) {
    parts_.push_back({blocks_of(layout, elements * part / all, elements * (part + 1) / all,
                                reader_.block_elements())});
  }
  shown_ = {Stage::part, compute(worker_.rank()), {}};
  peers_->results()->show(shown_);
}

/// Of all replicas that can be read.
Reduced::Figures Reduction::compute(int part) {
  const auto& blocks = parts_[static_cast<std::size_t>(part)].blocks;
  const auto store = [&](auto block, const ReplicaSums& sums) {
    sums.store_mean(room_.data() + block.front().offset_bytes);
  };
  const auto found = reader_.visit(workers_, blocks, {.mean = true, .distance = true}, store);
  Reduced::Figures figures{found.mean_square, static_cast<std::int64_t>(found.seen.size())};
  if (blocks.empty()) figures.workers = static_cast<std::int64_t>(workers_.size());
  figures_[static_cast<std::size_t>(part)] = figures;
  return figures;
}

bool Reduction::fetch(int part, int from) {
  const Part& wanted = parts_[static_cast<std::size_t>(part)];
  const std::size_t begin = wanted.begin_bytes(), size = wanted.end_bytes() - begin;
  reader_.note_read(from, size);
  return size == 0 || peers_->results()->read(from, begin, room_.subspan(begin, size));
}

/// Every worker begins with another part. Returns the parts whose workers are gone.
std::vector<int> Reduction::collect(bool with_mean) {
  const int all = static_cast<int>(parts_.size());
  std::vector<int> missing;
  for (int k = 1; k < all; ++k) {
    const int owner = (worker_.rank() + k) % all;
    const auto shown = await(owner, Stage::part);
    if (shown && (!with_mean || fetch(owner, owner))) {
      figures_[static_cast<std::size_t>(owner)] = shown->part;
    } else {
      missing.push_back(owner);
    }
  }
  // Without its parts this worker cannot compute what is missing, nor read it.
  if (!with_mean && !missing.empty()) return collect(true);
  return missing;
}

/// From the lowest worker that has all of it. If no lower worker lives, this one computes it.
void Reduction::complete(const std::vector<int>& missing) {
  for (const int other : workers_) {
    if (other >= worker_.rank()) break;
    const auto shown = await(other, Stage::known);
    if (!shown || shown->stage != Stage::whole) continue;
    const bool is_complete =
        std::ranges::all_of(missing, [&](int part) { return fetch(part, other); });
    if (is_complete) return finish(Stage::whole, shown->all);
  }
  for (const int part : missing) compute(part);
  finish(Stage::whole, std::nullopt);
}

void Reduction::finish(Stage stage, std::optional<Reduced::Figures> all) {
  if (!all) {
    all = Reduced::Figures{0, static_cast<std::int64_t>(workers_.size())};
    for (const auto& part : figures_) {
      all->mean_square += part->mean_square;
      all->workers = std::min(all->workers, part->workers);
    }
  }
  shown_.stage = std::max(shown_.stage, stage);
  shown_.all = *all;
  peers_->results()->show(shown_);
}

bool Reduction::is_gone(int worker) const {
  const std::vector<int> died = worker_.setting.group.died();
  return peers_->peer(worker).status == WorkerStatus::failed || peers_->is_suspect(worker) ||
         contains(died, worker);
}

/// Nothing if the worker is gone.
std::optional<Reduced> Reduction::await(int worker, Stage stage) {
  if (!std::ranges::binary_search(workers_, worker)) return std::nullopt;
  const auto own = [&] { return peers_->peer(worker_.rank()); };
  membership::ProgressDeadline deadline(worker_.options().deadline, own());
  for (;;) {
    const Reduced shown = peers_->results()->shown(worker);
    if (shown.stage >= stage) return shown;
    if (is_gone(worker)) return std::nullopt;
    require(!deadline.expired(own()), ErrorKind::deadline,
            "Worker: worker {} has waited {:.1f} s for worker {}'s part of the mean model; look "
            "for what holds that worker, or allow more with a longer deadline",
            worker_.rank(), deadline.waited(own()).count(), worker);
    std::this_thread::sleep_for(look_again);
  }
}

std::vector<MeanPart> MeanModel::read(const std::vector<int>& workers,
                                      std::span<std::byte> packed) const {
  const std::size_t needed = worker_.mixer.layout().size_bytes();
  require(packed.size() >= needed, ErrorKind::argument,
          "mean_model: room for {} bytes, {} are needed", packed.size(), needed);
  const std::vector<ModelReader::Seen> seen = reader_.read_mean(workers, packed);
  warn_of_missing(static_cast<int>(workers.size() - seen.size()), workers.size());
  std::vector<MeanPart> parts;
  for (const ModelReader::Seen& each : seen) parts.push_back({each.worker, steps_in(each)});
  return parts;
}

/// What is published for a combination has, of the rounds before it, all steps; of its own round,
/// that step too, if the rule publishes after it or the round has made an average already. At
/// staleness 0, weights that are nobody's message are the first or the last ones.
std::int64_t MeanModel::steps_in(const ModelReader::Seen& seen) const {
  const WorkerConfig& setting = worker_.setting;
  const bool is_message = seen.round >= 0;
  const std::int64_t made =
      (is_message ? seen.round : peers_->peer(seen.worker).progress) - worker_.progress.republished;
  const bool has_own =
      is_message && (!setting.before_step() || made % setting.options.mix_times != 0);
  return setting.rounds_of(made) + (has_own ? setting.steps() - setting.traits.timing.delay : 0);
}

double MeanModel::reduce(Reduction& reduction, const std::vector<int>& workers,
                         std::span<std::byte> packed) const {
  const Reduction::Found found = reduction.run(workers, packed);
  if (!packed.empty()) {
    warn_of_missing(static_cast<int>(workers.size()) - found.workers, workers.size());
  }
  return found.distance;
}

void MeanModel::warn_of_missing(int missing, std::size_t all) const {
  if (std::exchange(missing_, missing) == missing || missing == 0) return;
  worker_.warn(
      fmt::format("worker {}: the mean model is that of {} of {} workers; the others' weights "
                  "could not be read",
                  worker_.rank(), static_cast<int>(all) - missing, all));
}

std::vector<MeanPart> MeanModel::read(const std::vector<int>& workers,
                                      const std::vector<TensorView>& out) const {
  const ParameterLayout& layout = worker_.mixer.layout();
  const ParameterLayout target = layout.rebound(out);
  const AlignedBuffer packed(target.size_bytes());
  std::vector<MeanPart> parts = read(workers, std::span(packed.data(), packed.size_bytes()));
  if (target.device() == Device{}) {
    target.scatter(packed.data());
    return parts;
  }
  require(target.device() == layout.device(), ErrorKind::argument,
          "mean_model: tensors in {}, this worker's are in {}; hand over such or host memory",
          describe(target.device()), describe(layout.device()));
  worker_.mixer.memory().copy_weights_from(packed.data(), target);
  return parts;
}

GlobalAverage::GlobalAverage(const Context& context, std::unique_ptr<Reducer> reducer)
    : worker_(context),
      reducer_(std::move(reducer)),
      averaged_(context.mixer.layout().size_bytes()) {}

void GlobalAverage::combine(const algorithm::RoundInfo& info, Publisher& publisher) {
  const Payload own = worker_.exchange.published();
  const std::byte* average = average_of_weights(own.data);
  {
    const PhaseTimer timer(worker_, Phase::mix, worker_.progress.stats.mix_s);
    worker_.mixer.combine_with_pull(own, {average, nullptr, 0}, info);
  }
  publisher.publish({.round = info.round + 1, .learning_rate = info.learning_rate});
  worker_.exchange.complete(info.round + 1);
}

/// Neighbors read what a rule publishes before the step in the next round.
void GlobalAverage::average(const algorithm::RoundInfo& info, Publisher& publisher) {
  const std::byte* average = average_of_weights(nullptr);
  {
    const PhaseTimer timer(worker_, Phase::mix, worker_.progress.stats.mix_s);
    worker_.mixer.memory().copy_weights_from(average);
  }
  if (worker_.setting.before_step()) {
    publisher.publish({.round = info.round + 1, .learning_rate = info.learning_rate});
  } else {
    publisher.publish_weights();
  }
  worker_.exchange.complete(info.round + 1);
}

/// The average over all workers of the weights minus `base` (packed), if there is one. Valid until
/// the next call.
const std::byte* GlobalAverage::average_of_weights(const std::byte* base) {
  WorkerStats& stats = worker_.progress.stats;
  {
    const PhaseTimer timer(worker_, Phase::publish, worker_.progress.stats.publish_s);
    worker_.mixer.memory().copy_weights_to(averaged_.data());
    const ParameterLayout& layout = worker_.mixer.layout();
    require_finite(worker_, combine::is_finite(layout, averaged_.data()));
  }
  const PhaseTimer timer(worker_, Phase::wait, worker_.progress.stats.wait_s);
  for (const Segment& segment : worker_.mixer.layout().segments()) average(segment, base);
  const int workers = worker_.setting.group.size();
  stats.bytes_sent += 2.0 * static_cast<double>(averaged_.size_bytes()) * (workers - 1) / workers;
  return averaged_.data();
}

void GlobalAverage::average(const Segment& segment, const std::byte* base) {
  const auto average_as = [&]<class T>(T) {
    const std::span<T> values(reinterpret_cast<T*>(averaged_.data() + segment.offset_bytes),
                              segment.element_count);
    if (base != nullptr) {
      const T* from = reinterpret_cast<const T*>(base + segment.offset_bytes);
      for (std::size_t e = 0; e < values.size(); ++e) values[e] -= from[e];
    }
    reducer_->average(values);
  };
  if (segment.dtype == DType::f64) {
    average_as(double{});
  } else {
    require(segment.dtype == DType::f32, ErrorKind::argument,
            "Worker: an average over all workers of element type {}; f32 and f64 are supported",
            name(segment.dtype));
    average_as(float{});
  }
}

}  // namespace fast::worker
