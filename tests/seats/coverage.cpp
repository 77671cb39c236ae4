#include "seats/coverage.hpp"

#include <fmt/format.h>

#include <fast/data/loader.hpp>
#include <fstream>
#include <utility>

#include "seats/training_work.hpp"

namespace seats {
namespace {

using Uses = std::unordered_map<std::uint64_t, std::uint64_t>;

/// The batches of those epochs, as dealt to so many workers.
void add_batches(const TrainingPlan& plan, const fast::data::Splits& data, int workers, int from,
                 int to, Uses& uses) {
  for (int seat = 0; seat < workers; ++seat) {
    fast::data::Loader loader(data.train, data.normalization, workers, seat,
                              TrainingPlan::batch_size, plan.seed);
    for (int epoch = from; epoch < to; ++epoch) {
      for (const fast::Batch& batch : loader.epoch(static_cast<std::size_t>(epoch)))
        uses.emplace(batch_id(batch), 0);
    }
  }
}

Coverage count(Uses uses, const std::vector<std::uint64_t>& used) {
  Coverage coverage;
  coverage.all = uses.size();
  for (const std::uint64_t id : used) {
    const auto found = uses.find(id);
    if (found == uses.end()) {
      ++coverage.unknown;
    } else {
      ++found->second;
    }
  }
  for (const auto& [id, count] : uses) {
    coverage.missing += count == 0 ? 1 : 0;
    coverage.again += count > 1 ? count - 1 : 0;
  }
  return coverage;
}

}  // namespace

Coverage count_batches(const TrainingPlan& plan, const fast::data::Splits& data,
                       const std::vector<std::uint64_t>& used) {
  Coverage best;
  const bool grows = plan.seats() > plan.workers;
  const int first = grows ? 1 : plan.epochs, last = grows ? plan.epochs - 1 : plan.epochs;
  for (int grown = first; grown <= last; ++grown) {
    Uses uses;
    add_batches(plan, data, plan.workers, 0, grown, uses);
    add_batches(plan, data, plan.seats(), grown, plan.epochs, uses);
    const Coverage coverage = count(std::move(uses), used);
    if (grown == first || coverage.missing + coverage.unknown < best.missing + best.unknown)
      best = coverage;
  }
  return best;
}

std::vector<std::uint64_t> used_batches(const std::string& directory, const TrainingPlan& plan) {
  std::vector<std::uint64_t> used;
  for (int rank = 0; rank < plan.workers + plan.spares; ++rank) {
    std::ifstream in(fmt::format("{}/used-{}", directory, rank));
    for (std::uint64_t id = 0; in >> std::hex >> id;) used.push_back(id);
  }
  return used;
}

}  // namespace seats
