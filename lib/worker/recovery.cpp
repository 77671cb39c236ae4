#include "worker/recovery.hpp"

#include <algorithm>
#include <fast/core/deadline.hpp>
#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <numeric>
#include <set>
#include <thread>

#include "combine/model_memory.hpp"
#include "worker/participation.hpp"

namespace fast::worker {
namespace {

constexpr std::int64_t most_rounds = 64;  ///< looked at, of schedules without a short period
constexpr double epochs_per_version = 1e6;
constexpr Seconds longest_search{10};
constexpr auto search_again = std::chrono::milliseconds(50);

}  // namespace

Recovery::Recovery(const Context& context, const Peers& peers, RoundPlan& plan,
                   const ModelReader& reader)
    : worker_(context), peers_(peers), plan_(plan), reader_(reader) {}

/// The weights become the average of the round's neighbors that have made at least so many rounds,
/// or else of other rounds' neighbors. False when none could be read.
bool Recovery::adopt_neighbors(std::int64_t least_progress) {
  const std::shared_ptr<const RoundPlan::Round> round = plan_.at(worker_.progress.combinations);
  for (const auto& workers : {round->edges.sources, neighbors()}) {
    std::vector<int> sources;
    for (const int neighbor : workers) {
      const PeerState peer = peers_.peer(neighbor);
      const bool counts = peer.sequence > 0 && peer.status != WorkerStatus::left;
      if (counts && peer.progress >= least_progress) sources.push_back(neighbor);
    }
    if (adopt(sources)) return true;
  }
  return false;
}

/// Tries for a while. A neighbor that was left behind, too, has no weights until it has adopted
/// some.
bool Recovery::search(const std::function<bool()>& adopts) const {
  const Deadline patience(std::min(longest_search, worker_.options().deadline));
  while (!adopts()) {
    if (patience.expired()) return false;
    check_wait();
    std::this_thread::sleep_for(search_again);
  }
  return true;
}

/// The weights become the average of theirs. False when none could be read.
bool Recovery::adopt(const std::vector<int>& sources) {
  const ParameterLayout& layout = worker_.mixer.layout();
  const AlignedBuffer packed(layout.size_bytes());
  try {
    reader_.mean_of(sources, {packed.data(), packed.size_bytes()});
  } catch (const Error&) {
    return false;
  }
  if (!combine::is_finite(layout, packed.data())) return false;
  worker_.mixer.memory().copy_weights_from(packed.data());
  return true;
}

void Recovery::rejoin(Publisher& publisher, std::int64_t furthest, const ComeTo& come_to) {
  Progress& progress = worker_.progress;
  const auto behind = std::max<std::int64_t>(1, furthest - progress.combinations);
  require(search([&] { return adopt_neighbors(progress.combinations); }), ErrorKind::deadline,
          "Worker: worker {} was left behind in round {} and finds no neighbor whose weights it "
          "could adopt; resume from a checkpoint",
          worker_.rank(), progress.combinations);
  // The others may be between two combinations of a round, the rest of which this worker makes.
  const std::int64_t times = worker_.options().mix_times;
  const std::int64_t from = progress.combinations - progress.republished, to = from + behind;
  const std::int64_t rounds = (to / times - from / times) * worker_.setting.steps();
  progress.combinations += behind;
  const std::int64_t made = progress.stats.rounds + rounds - (to % times == 0 ? 1 : 0);
  come_to(made);
  publisher.restart(progress.combinations);
  worker_.exchange.complete(progress.combinations);
  --progress.combinations;
  progress.stats.rounds = made;
  ++progress.stats.rejoined;
  worker_.report_own_event(PeerEvent::Kind::rejoined);
  worker_.warn(fmt::format(
      "worker {}: was {} {} behind its neighbors and has taken over their average", worker_.rank(),
      rounds > 0 ? rounds : behind, rounds > 0 ? "rounds" : "averages"));
}

/// Of every round, of schedules with a short period.
std::vector<int> Recovery::neighbors() const {
  const std::int64_t rounds = std::min(plan_.schedule().period_or(most_rounds), most_rounds);
  std::set<int> all;
  for (std::int64_t round = 0; round < rounds; ++round) {
    const std::shared_ptr<const RoundPlan::Round> planned = plan_.at(round);
    all.insert(planned->edges.sources.begin(), planned->edges.sources.end());
  }
  return {all.begin(), all.end()};
}

/// Those that train or have finished: they have published. What other hosts' workers have published
/// is not known before they are read.
std::vector<int> Recovery::living_among(const std::vector<int>& workers, int seat) const {
  std::vector<int> living;
  for (const int worker : workers) {
    if (worker == seat) continue;
    const WorkerStatus status = peers_.peer(worker).status;
    const bool trained = status == WorkerStatus::running || status == WorkerStatus::finished;
    if (trained && !peers_.is_suspect(worker)) living.push_back(worker);
  }
  return living;
}

/// The weights become the average of workers that live: of that seat's neighbors, or else of all.
/// Returns them; none when none could be read for a while.
std::vector<int> Recovery::adopt_for(int seat) {
  std::vector<int> all(static_cast<std::size_t>(plan_.schedule().workers()));
  std::iota(all.begin(), all.end(), 0);
  std::vector<int> sources;
  const bool found = search([&] {
    for (const auto& workers : {neighbors(), all}) {
      sources = living_among(workers, seat);
      if (!sources.empty() && adopt(sources)) return true;
    }
    return false;
  });
  return found ? sources : std::vector<int>{};
}

void Recovery::adopt_round(const membership::SeatOffer& offer) {
  const std::vector<int> sources = adopt_for(offer.seat);
  require(!sources.empty(), ErrorKind::deadline,
          "Worker: a spare was to take the seat of worker {} and finds no worker whose weights it "
          "could adopt; resume from a checkpoint",
          offer.seat);
  Progress& progress = worker_.progress;
  for (const int source : sources)
    progress.combinations = std::max(progress.combinations, peers_.peer(source).progress);
}

/// Where this worker has come to, it is a new one.
void Recovery::count_from_here() {
  Progress& progress = worker_.progress;
  progress.stats.rounds = worker_.setting.rounds_of(progress.combinations - progress.republished);
  progress.stats.joined_at = progress.stats.rounds;
}

void Recovery::publish_first(Publisher& publisher, double epoch) {
  publisher.restart(worker_.progress.combinations, epoch);
  worker_.exchange.complete(worker_.progress.combinations);
  worker_.exchange.flush();
}

/// The epoch is newer than any that workers have reached by counting departures, unless spares have
/// taken other seats before. In any case its neighbors begin an epoch when they meet another rank.
void Recovery::take_seat(Publisher& publisher, const membership::SeatOffer& offer,
                         const ComeTo& come_to) {
  adopt_round(offer);
  count_from_here();
  WorkerStats& stats = worker_.progress.stats;
  const int growths = come_to(stats.rounds);
  publish_first(publisher,
                epoch_of_growth(growths) + epochs_per_version * static_cast<double>(offer.version));
  stats.predecessor_rounds = offer.is_unused() ? stats.joined_at : offer.rounds;
}

/// At staleness 0, the neighbors read it from the growth's round on, and keep their publications of
/// that round for it.
void Recovery::join(Publisher& publisher, const membership::SeatOffer& offer, std::int64_t round,
                    const ComeTo& come_to) {
  adopt_round(offer);
  Progress& progress = worker_.progress;
  const std::int64_t steps = worker_.setting.steps();
  const std::int64_t first =
      worker_.setting.combinations_of(round + steps - 1) + progress.republished;
  const bool keeps_pace = round >= 0 && worker_.setting.exact();
  progress.combinations = keeps_pace ? first : std::max(progress.combinations, first);
  count_from_here();
  publish_first(publisher, epoch_of_growth(come_to(progress.stats.rounds)));
  progress.stats.predecessor_rounds = round < 0 ? progress.stats.joined_at : round;
}

void Recovery::report_healed() {
  ++worker_.progress.stats.healed;
  worker_.report_own_event(PeerEvent::Kind::healed);
  if (worker_.options().on_healed) worker_.options().on_healed();
}

bool Recovery::note_restored() {
  const std::uint32_t bad = worker_.mixer.bad_looks();
  const bool any = bad != restored_;
  while (restored_ != bad) {
    ++restored_;
    report_healed();
  }
  return any;
}

/// False: the host has to look, also if a device has taken back its publication and may have to
/// again.
bool Recovery::is_left_to_device() {
  const Progress& progress = worker_.progress;
  if (note_restored() || !worker_.setting.combines_in(progress.stats.rounds)) return false;
  if (!reads_neighbors(worker_.setting.traits, progress.combinations)) return false;
  return worker_.mixer.guard(worker_.exchange.published());
}

void Recovery::heal() {
  const bool bad_loss = std::exchange(bad_loss_, false);
  if (!bad_loss && (is_left_to_device() || worker_.mixer.has_finite_weights())) return;
  const ParameterLayout& layout = worker_.mixer.layout();
  const AlignedBuffer packed(layout.size_bytes());
  const bool has_own =
      reader_.read(worker_.rank(), packed) && combine::is_finite(layout, packed.data());
  if (has_own) worker_.mixer.memory().copy_weights_from(packed.data());
  require(has_own || adopt_neighbors(0), ErrorKind::numeric,
          "Worker: the weights of worker {} in round {} are not finite, nor are its neighbors'; "
          "try a smaller learning rate",
          worker_.rank(), worker_.progress.stats.rounds);
  report_healed();
}

}  // namespace fast::worker
