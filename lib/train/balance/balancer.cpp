#include "train/balance/balancer.hpp"

#include <algorithm>
#include <utility>

#include "core/contains.hpp"
#include "membership/peer_state.hpp"
#include "train/run/training_cursor.hpp"

namespace fast::train {

void SpeedMeter::add(double seconds, std::size_t samples) {
  if (samples > 0 && seconds > 0 && !is_full())
    of_rounds_.push_back(seconds / static_cast<double>(samples));
}

double SpeedMeter::seconds_per_sample() const {
  if (of_rounds_.empty()) return 0;
  std::vector<double> sorted = of_rounds_;
  std::ranges::sort(sorted);
  const std::size_t middle = sorted.size() / 2;
  return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
}

namespace {

constexpr std::size_t most_measured_rounds = 20;  ///< that are measured for a division
constexpr auto batches_key = "fast.batches";
constexpr auto epoch_key = "fast.epoch";

/// Of an epoch: all, if it has few.
std::size_t measured_rounds(std::size_t epoch_rounds) {
  return std::min(epoch_rounds, most_measured_rounds);
}

}  // namespace

Balancer::Balancer(const RunPlan& plan, TrainingBatches& batches, Replica& replica)
    : plan_(plan),
      batches_(batches),
      replica_(replica),
      shares_(plan.shares),
      meter_(measured_rounds(batches.rounds())) {
  replica_.step().set_share(shares_.scale(plan_.group.rank()));
}

void Balancer::apply(Shares shares) {
  if (shares == shares_) return;
  shares_ = std::move(shares);
  batches_.divide(plan_, shares_);
  replica_.step().set_share(shares_.scale(plan_.group.rank()));
}

/// Epochs are counted from 1 on, as in the progress and in metrics.
void Balancer::say(const Shares& shares, int epoch, const char* why) const {
  if (plan_.group.rank() != 0) return;
  const auto& batches = shares.batches();
  const bool all_are_there = !contains(batches, 0);
  plan_.log(LogLevel::info,
            fmt::format("batches of {} samples from epoch {} on, {}{}", shares.text(), epoch + 1,
                        why, all_are_there ? "" : " (0: a worker that is away)"));
}

void Balancer::start() {
  if (!measures()) return;
  take_newest_saved();
  const WorkerOptions& worker = plan_.options.worker;
  agreement_.emplace(
      plan_.coordinator, shares_,
      ShareAgreement::Options{.batch_size = plan_.options.batch_size,
                              .silent_after = worker.suspect_after.value_or(suspect_after_at_first),
                              .deadline = worker.deadline});
}

/// Above staleness 0, a resumed worker may be an epoch ahead of others, and wait there for their
/// weights. They must not wait for its speed before that epoch: whoever was resumed in the midst of
/// an epoch goes on measuring in the next one. A worker without samples has nothing to measure.
void Balancer::begin_epoch(int epoch, bool in_midst) {
  if (!agreement_) return;
  const bool is_first = !std::exchange(has_begun_, true);
  const bool has_samples = shares_.batches()[static_cast<std::size_t>(plan_.group.rank())] > 0;
  const bool goes_on = std::exchange(resumed_in_midst_, is_first && in_midst) && has_samples;
  if (!is_first && !goes_on && !agreement_->has_measured())
    agreement_->measured(epoch - 1, meter_.seconds_per_sample());
  std::optional<Shares> shares = agreement_->begin_epoch(epoch);
  if (!shares) return;
  meter_.restart();
  if (*shares == shares_) return;
  say(*shares, epoch, "by measured speed");
  apply(std::move(*shares));
}

void Balancer::note_round(int epoch, double load_s, std::size_t samples) {
  if (!agreement_) return;
  agreement_->count_round();
  if (agreement_->has_measured()) return;
  meter_.add(load_s + replica_.step().compute_s(), samples);
  if (meter_.is_full()) agreement_->measured(epoch, meter_.seconds_per_sample());
}

Metadata Balancer::to_metadata() const {
  if (plan_.options.balance.is_even()) return {};
  return {{batches_key, shares_.text()}};
}

void Balancer::take_shares(const Metadata& metadata) {
  const auto found = metadata.find(batches_key);
  if (!measures() || found == metadata.end()) return;
  // With the epoch in 20 digits, the largest text is that of the last epoch.
  saved_ = fmt::format("{:020} {}", metadata_number(metadata, epoch_key), found->second);
}

/// Files may be of different epochs. All workers take the shares of the last one.
void Balancer::take_newest_saved() {
  const auto all = plan_.group.all_gather(saved_, plan_.deadline(), "Trainer: saved batches");
  const std::string& newest = *std::ranges::max_element(all);
  const std::size_t space = newest.find(' ');
  if (space == std::string::npos) return;
  auto shares =
      Shares::from_text(newest.substr(space + 1), plan_.group.size(), plan_.options.batch_size);
  if (!shares) return;
  if (*shares != shares_) say(*shares, std::stoi(newest), "as before");
  apply(std::move(*shares));
}

}  // namespace fast::train
