#include "train/balance/share_records.hpp"

#include <algorithm>
#include <bit>

namespace fast::train {
namespace {

/// The upper half is the number of a division, so that words grow.
constexpr int number_shift = 32;
constexpr std::uint64_t value_mask = (std::uint64_t{1} << number_shift) - 1;

std::uint64_t pack_share(std::uint64_t number, std::uint64_t value) {
  return number << number_shift | (value & value_mask);
}
std::uint64_t number_in(std::uint64_t word) { return word >> number_shift; }
std::uint64_t value_in(std::uint64_t word) { return word & value_mask; }

void raise_share(ShareRecords::Word& word, std::uint64_t value) {
  if (word.load(std::memory_order_relaxed) < value) word.store(value, std::memory_order_release);
}

std::uint64_t bits_of(double seconds) {
  return std::bit_cast<std::uint32_t>(static_cast<float>(seconds));
}
double seconds_in(std::uint64_t bits) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(bits));
}

}  // namespace

std::uint64_t ShareRecords::read(std::size_t worker, std::size_t offset) const {
  return records_[worker][offset].load(std::memory_order_acquire);
}

std::uint64_t ShareRecords::beat_of(std::size_t worker) const { return read(worker, beat_at); }

std::uint64_t ShareRecords::rounds() const {
  std::uint64_t all = 0;
  for (std::size_t worker = 0; worker < size(); ++worker) all += read(worker, rounds_at);
  return all;
}

ShareRecords::Stage ShareRecords::stage_of(std::size_t worker) const {
  return static_cast<Stage>(read(worker, stage_at));
}

bool ShareRecords::any_is_done() const {
  for (std::size_t worker = 0; worker < size(); ++worker)
    if (stage_of(worker) == Stage::done) return true;
  return false;
}

/// Copies of the two words may be of different times.
ShareRecords::Measured ShareRecords::measured_of(std::size_t worker) const {
  const std::uint64_t measured = read(worker, measured_at), speed = read(worker, speed_at);
  if (number_in(measured) != number_in(speed)) return {};
  return {number_in(measured), static_cast<int>(value_in(measured)), seconds_in(value_in(speed))};
}

ShareRecords::Settled ShareRecords::newest_settled() const {
  std::uint64_t newest = 0;
  for (std::size_t worker = 0; worker < size(); ++worker)
    newest = std::max(newest, read(worker, settled_at));
  return {number_in(newest), static_cast<int>(value_in(newest))};
}

std::optional<Shares> ShareRecords::newest_shares() const {
  const Settled newest = newest_settled();
  if (newest.number == 0) return std::nullopt;
  const std::uint64_t word = pack_share(newest.number, static_cast<std::uint64_t>(newest.epoch));
  for (std::size_t worker = 0; worker < size(); ++worker) {
    if (read(worker, settled_at) != word) continue;
    std::vector<std::size_t> batches;
    for (std::size_t w = 0; w < size(); ++w) {
      const std::uint64_t share = read(worker, first_share + w);
      if (number_in(share) != newest.number) return std::nullopt;
      batches.push_back(value_in(share));
    }
    return Shares(std::move(batches));
  }
  return std::nullopt;
}

void ShareRecords::beat() { own(beat_at).fetch_add(1, std::memory_order_relaxed); }

void ShareRecords::count_round() { own(rounds_at).fetch_add(1, std::memory_order_relaxed); }

void ShareRecords::end(Stage stage) {
  raise_share(own(stage_at), static_cast<std::uint64_t>(stage));
}

void ShareRecords::measure(const Measured& measured) {
  raise_share(own(speed_at), pack_share(measured.number, bits_of(measured.seconds_per_sample)));
  raise_share(own(measured_at),
              pack_share(measured.number, static_cast<std::uint64_t>(measured.epoch)));
}

/// The shares are there before readers see that they are settled.
void ShareRecords::settle(Settled settled, const Shares& shares) {
  for (std::size_t w = 0; w < size(); ++w)
    raise_share(own(first_share + w), pack_share(settled.number, shares.batches()[w]));
  raise_share(own(settled_at),
              pack_share(settled.number, static_cast<std::uint64_t>(settled.epoch)));
}

/// Words are read in the order settled, shares: shares that are read later are as new or newer.
void ShareRecords::copy_to(std::span<std::uint64_t> words) const {
  const std::size_t each = ShareRecords::words(static_cast<int>(size()));
  for (std::size_t worker = 0; worker < size(); ++worker) {
    for (std::size_t offset = 0; offset < each; ++offset)
      words[worker * each + offset] = read(worker, offset);
  }
}

void ShareRecords::take_over(std::span<const std::uint64_t> words, const std::vector<bool>& here) {
  const std::size_t each = ShareRecords::words(static_cast<int>(size()));
  for (std::size_t worker = 0; worker < size(); ++worker) {
    for (std::size_t offset = each; offset-- > 0;) {
      if (!here[worker]) raise_share(records_[worker][offset], words[worker * each + offset]);
    }
  }
}

}  // namespace fast::train
