#include "train/balance/share_agreement.hpp"

#include <bit>
#include <fast/core/error.hpp>
#include <utility>
#include <vector>

namespace fast::train {
namespace {

using membership::NumberedRound;
using membership::RoundAgreement;
using membership::Stage;
namespace word = membership::word;

/// The upper half is the number of a division, so that words grow.
constexpr int number_shift = 32;
constexpr std::uint64_t value_mask = (std::uint64_t{1} << number_shift) - 1;

std::uint64_t pack_share(std::uint64_t number, std::uint64_t value) {
  return number << number_shift | (value & value_mask);
}
std::uint64_t number_in(std::uint64_t word) { return word >> number_shift; }
std::uint64_t value_in(std::uint64_t word) { return word & value_mask; }

std::uint64_t bits_of(double seconds) {
  return std::bit_cast<std::uint32_t>(static_cast<float>(seconds));
}
double seconds_in(std::uint64_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
}

std::size_t share_of(int worker) { return word::first_share + static_cast<std::size_t>(worker); }

}  // namespace

ShareAgreement::ShareAgreement(std::shared_ptr<membership::Coordinator> coordinator, Shares first,
                               const Options& options)
    : coordinator_(std::move(coordinator)),
      board_(coordinator_->board()),
      records_(board_),
      divisions_(board_, word::division),
      first_(std::move(first)),
      options_(options) {
  coordinator_->add(*this);
}

ShareAgreement::~ShareAgreement() { coordinator_->remove(*this); }

bool ShareAgreement::has_measured() const {
  const auto lock = coordinator_->lock();
  return divisions_.own_bound().number > taken_;
}

/// The speed is there before readers see the bound. This worker may be the last one.
void ShareAgreement::measured(int epoch, double seconds_per_sample) {
  const auto lock = coordinator_->lock();
  board_.raise(word::speed, pack_share(taken_ + 1, bits_of(seconds_per_sample)));
  divisions_.bind({taken_ + 1, epoch});
  settle();
}

void ShareAgreement::count_round() {
  const auto lock = coordinator_->lock();
  board_.count(word::trained);
}

std::uint64_t ShareAgreement::rounds() const {
  std::uint64_t all = 0;
  for (int worker = 0; worker < board_.size(); ++worker) all += board_.read(worker, word::trained);
  return all;
}

bool ShareAgreement::any_is_done() const {
  return records_.any_has_come_to(Stage::done) || records_.any_has_come_to(Stage::stopped);
}

bool ShareAgreement::can_begin(int epoch) const {
  const NumberedRound settled = divisions_.settled();
  const bool comes_into_force = settled.number > taken_ && epoch >= settled.round;
  if (comes_into_force && !newest()) return false;  // they are being written
  return !divisions_.holds(epoch) || any_is_done();
}

std::optional<Shares> ShareAgreement::come_into_force(int epoch) {
  const NumberedRound settled = divisions_.settled();
  if (settled.number <= taken_ || epoch < settled.round) return std::nullopt;
  std::optional<Shares> shares = newest();
  if (shares) taken_ = settled.number;
  return shares;
}

bool ShareAgreement::may_begin(int epoch) const {
  const auto lock = coordinator_->lock();
  return can_begin(epoch);
}

std::optional<Shares> ShareAgreement::take(int epoch) {
  const auto lock = coordinator_->lock();
  return come_into_force(epoch);
}

std::optional<Shares> ShareAgreement::begin_epoch(int epoch) {
  std::optional<Deadline> deadline(options_.deadline);
  auto lock = coordinator_->lock();
  std::uint64_t rounds = this->rounds();
  while (!can_begin(epoch)) {
    if (std::exchange(rounds, this->rounds()) != rounds) deadline.emplace(options_.deadline);
    require(!deadline->expired(), ErrorKind::deadline,
            "Trainer: worker {} waited {:.1f} s before epoch {} for the others to measure their "
            "speed, and none of them made a round; look for one that hangs",
            board_.rank(), deadline->elapsed_s(), epoch + 1);
    coordinator_->wait(lock);
  }
  return come_into_force(epoch);
}

/// Of the newest division. Empty: nothing is settled, or a newer one just now.
std::optional<Shares> ShareAgreement::newest() const {
  const NumberedRound newest = divisions_.settled();
  if (newest.number == 0) return std::nullopt;
  for (int worker = 0; worker < board_.size(); ++worker) {
    if (divisions_.settled_by(worker) != newest) continue;
    std::vector<std::size_t> batches;
    for (int w = 0; w < board_.size(); ++w) {
      const std::uint64_t share = board_.read(worker, share_of(w));
      if (number_in(share) != newest.number) return std::nullopt;
      batches.push_back(value_in(share));
    }
    return Shares(std::move(batches));
  }
  return std::nullopt;
}

/// A worker that is more than one division behind trains in an epoch that the others have left long
/// ago: they do not wait for it.
bool ShareAgreement::is_away(int worker, std::uint64_t number) const {
  const double after_s = (options_.silent_after + coordinator_->news()).count();
  return !records_.is_running(worker) || coordinator_->liveness().is_silent(worker, after_s) ||
         divisions_.bound_of(worker).number + 1 < number;
}

void ShareAgreement::settle() {
  if (any_is_done()) return;
  const std::uint64_t number = divisions_.settled().number + 1;
  using Voice = RoundAgreement::Voice;
  const auto last = divisions_.last_bound(
      number, [&](int worker) { return is_away(worker, number) ? Voice::none : Voice::settles; });
  if (!last) return;
  std::vector<Speed> speeds;
  for (int worker = 0; worker < board_.size(); ++worker) {
    Speed& speed = speeds.emplace_back(Speed{.is_away = is_away(worker, number)});
    if (speed.is_away) continue;
    const std::uint64_t said = board_.read(worker, word::speed);
    if (number_in(said) != number) return;  // on its way
    speed.seconds_per_sample = seconds_in(value_in(said));
  }
  const std::optional<Shares> now = number == 1 ? first_ : newest();
  if (now) settle_on({number, *last + 1}, rebalanced(*now, speeds, options_.batch_size));
}

/// The shares are there before readers see that they are settled.
void ShareAgreement::settle_on(NumberedRound settled, const Shares& shares) {
  for (int worker = 0; worker < board_.size(); ++worker) {
    const auto batch = shares.batches()[static_cast<std::size_t>(worker)];
    board_.raise(share_of(worker), pack_share(settled.number, batch));
  }
  divisions_.settle(settled);
}

}  // namespace fast::train
