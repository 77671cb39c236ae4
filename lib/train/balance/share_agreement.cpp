#include "train/balance/share_agreement.hpp"

#include <algorithm>
#include <utility>
#include <vector>

namespace fast::train {

ShareAgreement::ShareAgreement(ShareRecords records, Shares first, std::size_t batch_size,
                               double silent_after_s)
    : records_(std::move(records)),
      first_(std::move(first)),
      batch_size_(batch_size),
      signs_(records_.size(), records_.rank(), silent_after_s) {}

void ShareAgreement::measured(int epoch, double seconds_per_sample) {
  said_ = {taken_ + 1, epoch, seconds_per_sample};
  records_.measure(said_);
}

bool ShareAgreement::may_begin(int epoch) const {
  const ShareRecords::Settled settled = records_.newest_settled();
  const bool comes_into_force = settled.number > taken_ && epoch >= settled.epoch;
  if (comes_into_force && !records_.newest_shares()) return false;  // they are being written
  return epoch <= said_.epoch || said_.number <= settled.number || records_.any_is_done();
}

std::optional<Shares> ShareAgreement::take(int epoch) {
  const ShareRecords::Settled settled = records_.newest_settled();
  if (settled.number <= taken_ || epoch < settled.epoch) return std::nullopt;
  std::optional<Shares> shares = records_.newest_shares();
  if (shares) taken_ = settled.number;
  return shares;
}

void ShareAgreement::tick(double elapsed_s) {
  records_.beat();
  signs_.look(elapsed_s, [this](std::size_t worker) { return records_.beat_of(worker); });
  if (!records_.any_is_done()) settle();
}

/// Empty: it is awaited.
std::optional<Speed> ShareAgreement::speed_of(std::size_t worker, std::uint64_t number) const {
  const bool is_running = records_.stage_of(worker) == ShareRecords::Stage::running;
  if (!is_running || signs_.is_silent(worker)) return Speed{.is_away = true};
  const ShareRecords::Measured measured = records_.measured_of(worker);
  // It trains in an epoch that the others have left long ago: they do not wait for it.
  if (measured.number + 1 < number) return Speed{.is_away = true};
  if (measured.number < number) return std::nullopt;
  return Speed{.seconds_per_sample = measured.seconds_per_sample};
}

void ShareAgreement::settle() {
  const std::uint64_t number = records_.newest_settled().number + 1;
  std::vector<Speed> speeds;
  int last_epoch = 0;
  for (std::size_t worker = 0; worker < records_.size(); ++worker) {
    const std::optional<Speed> speed = speed_of(worker, number);
    const bool is_away = speed && speed->is_away;
    const bool settles = worker == records_.rank();
    if (!speed || (settles && is_away)) return;
    if (!is_away && worker < records_.rank()) return;  // it settles
    speeds.push_back(*speed);
    if (!is_away) last_epoch = std::max(last_epoch, records_.measured_of(worker).epoch);
  }
  const std::optional<Shares> now = number == 1 ? first_ : records_.newest_shares();
  if (now) records_.settle({number, last_epoch + 1}, rebalanced(*now, speeds, batch_size_));
}

}  // namespace fast::train
