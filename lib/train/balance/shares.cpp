#include "train/balance/shares.hpp"

#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "core/text.hpp"

namespace fast::train {
namespace {

/// A new division must shorten rounds to less than this part.
constexpr double worth_it = 0.95;

/// Shares of `samples` for the workers that have no batch yet. Speeds of others are 0.
class ShareDivision {
 public:
  ShareDivision(std::span<const double> speeds, std::size_t samples)
      : speeds_(speeds.begin(), speeds.end()), batches_(speeds.size()), left_(samples) {
    const double most = *std::ranges::max_element(speeds_);
    for (double& speed : speeds_) speed /= most;  // their sum is finite
  }

  std::vector<std::size_t> batches() {
    while (give_least()) continue;
    give_whole_parts();
    return batches_;
  }

 private:
  double quota(std::size_t worker) const {
    const double all = std::accumulate(speeds_.begin(), speeds_.end(), 0.0);
    return speeds_[worker] / all * static_cast<double>(left_);
  }

  /// One sample to the slowest worker whose part is smaller; false: there is none.
  bool give_least() {
    std::size_t slowest = speeds_.size();
    for (std::size_t w = 0; w < speeds_.size(); ++w) {
      if (speeds_[w] > 0 && (slowest == speeds_.size() || speeds_[w] < speeds_[slowest]))
        slowest = w;
    }
    if (slowest == speeds_.size() || quota(slowest) >= 1) return false;
    batches_[slowest] = 1;
    speeds_[slowest] = 0;
    --left_;
    return true;
  }

  void give_whole_parts() {
    std::vector<std::pair<double, std::size_t>>
        rests;  // sorted: the largest, then the lowest worker
    std::size_t given = 0;
    for (std::size_t w = 0; w < speeds_.size(); ++w) {
      if (speeds_[w] <= 0) continue;
      const double part = quota(w);
      batches_[w] = static_cast<std::size_t>(part);
      given += batches_[w];
      rests.emplace_back(std::floor(part) - part, w);
    }
    std::ranges::sort(rests);
    for (std::size_t i = 0; given < left_; ++i, ++given) ++batches_[rests[i % rests.size()].second];
  }

  std::vector<double> speeds_;
  std::vector<std::size_t> batches_;
  std::size_t left_;
};

double median_of(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// By worker; 0: away. Empty: no speed is known.
std::vector<double> seconds_of(const Shares& now, std::span<const Speed> speeds) {
  std::vector<double> seconds(speeds.size()), rounds;
  for (std::size_t w = 0; w < speeds.size(); ++w) {
    const auto batch = static_cast<double>(now.of(static_cast<int>(w)).batch_size);
    if (speeds[w].is_away || speeds[w].seconds_per_sample <= 0) continue;
    seconds[w] = speeds[w].seconds_per_sample;
    if (!now.is_away(static_cast<int>(w))) rounds.push_back(batch * seconds[w]);
  }
  if (rounds.empty()) return {};
  const double usual_s = median_of(rounds);
  for (std::size_t w = 0; w < speeds.size(); ++w) {
    const auto batch = static_cast<double>(now.of(static_cast<int>(w)).batch_size);
    if (!speeds[w].is_away && seconds[w] <= 0) seconds[w] = usual_s / batch;
  }
  return seconds;
}

}  // namespace

Shares Shares::even(int workers, std::size_t batch_size) {
  return Shares(std::vector<std::size_t>(static_cast<std::size_t>(workers), batch_size));
}

Shares Shares::in_proportion(std::span<const double> speeds, std::size_t batch_size) {
  const auto away = static_cast<std::size_t>(std::ranges::count(speeds, 0.0));
  return Shares(ShareDivision(speeds, speeds.size() * batch_size - away).batches());
}

std::optional<Shares> Shares::from_text(std::string_view text, int workers,
                                        std::size_t batch_size) {
  std::vector<std::size_t> batches;
  for (const std::string_view part : split_text(text, ',')) {
    if (!reads(part, batches.emplace_back())) return std::nullopt;
  }
  const std::size_t all = static_cast<std::size_t>(workers) * batch_size;
  std::size_t sum = 0;
  for (const std::size_t batch : batches) {
    if (batch > all) return std::nullopt;
    sum += std::max<std::size_t>(batch, 1);
  }
  if (batches.size() != static_cast<std::size_t>(workers) || sum != all) return std::nullopt;
  return Shares(std::move(batches));
}

std::string Shares::text() const { return fmt::format("{}", fmt::join(batches_, ",")); }

data::RoundShare Shares::of(int worker) const {
  data::RoundShare share;
  for (int w = 0; w <= worker; ++w) {
    share.before += share.batch_size;
    share.batch_size = std::max<std::size_t>(batches_[static_cast<std::size_t>(w)], 1);
  }
  return share;
}

double Shares::scale(int worker) const {
  std::size_t all = 0, there = 0;
  for (const std::size_t batch : batches_) {
    all += batch;
    if (batch > 0) ++there;
  }
  return static_cast<double>(of(worker).batch_size * there) / static_cast<double>(all);
}

double Shares::round_s(std::span<const double> seconds_per_sample) const {
  double longest = 0;
  for (std::size_t w = 0; w < batches_.size(); ++w)
    longest = std::max(longest, static_cast<double>(batches_[w]) * seconds_per_sample[w]);
  return longest;
}

Shares rebalanced(const Shares& now, std::span<const Speed> speeds, std::size_t batch_size) {
  const std::vector<double> seconds = seconds_of(now, speeds);
  if (seconds.empty()) return now;
  std::vector<double> rates;
  bool are_same = true;
  for (std::size_t w = 0; w < speeds.size(); ++w) {
    rates.push_back(seconds[w] > 0 ? 1 / seconds[w] : 0);
    are_same = are_same && speeds[w].is_away == now.is_away(static_cast<int>(w));
  }
  Shares next = Shares::in_proportion(rates, batch_size);
  const bool is_better = next.round_s(seconds) < worth_it * now.round_s(seconds);
  return is_better || !are_same ? next : now;
}

}  // namespace fast::train
