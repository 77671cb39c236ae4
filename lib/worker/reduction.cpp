#include "worker/reduction.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fast/core/error.hpp>
#include <thread>

#include "exchange/group_impl.hpp"
#include "membership/liveness.hpp"

namespace fast::worker {
namespace {

/// Smaller models are read directly: a part would be less than what an access costs.
constexpr std::size_t least_bytes = 4096;
constexpr auto look_again = std::chrono::milliseconds(1);

bool contains(const std::vector<int>& sorted, int worker) {
  return std::binary_search(sorted.begin(), sorted.end(), worker);
}

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
  Reduced::Figures figures;
  const auto add = [&](auto block, const ReplicaSums& sums) {
    if (block.front().offset_bytes == blocks.front().offset_bytes) figures.mean_square = 0;
    figures.mean_square += sums.mean_square();
    sums.store_mean(room_.data() + block.front().offset_bytes);
  };
  figures.workers = reader_.visit(workers_, blocks, {.mean = true, .distance = true}, add);
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
        std::all_of(missing.begin(), missing.end(), [&](int part) { return fetch(part, other); });
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
         std::find(died.begin(), died.end(), worker) != died.end();
}

/// Nothing if the worker is gone.
std::optional<Reduced> Reduction::await(int worker, Stage stage) {
  if (!contains(workers_, worker)) return std::nullopt;
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

}  // namespace fast::worker
