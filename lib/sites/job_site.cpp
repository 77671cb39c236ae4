#include "sites/job_site.hpp"

#include <fmt/format.h>
#include <fast/core/error.hpp>

#include <algorithm>
#include <cstring>
#include <span>
#include <utility>
#include <vector>

#include "sites/site_figures.hpp"

namespace fast::sites {
namespace {

constexpr std::size_t reduced_at_once = std::size_t{1} << 17;  ///< elements

template <class T>
std::span<T> elements(const Segment& place, const AlignedBuffer& packed) {
  return {reinterpret_cast<T*>(packed.data() + place.offset_bytes), place.element_count};
}

/// Calls part(place, T{}) for each tensor of a packed model.
template <class Part>
void for_tensors(const ParameterLayout& layout, const Part& part) {
  for (const Segment& place : layout.tensors())
    place.dtype == DType::f64 ? part(place, double{}) : part(place, float{});
}

}  // namespace

JobSite::JobSite(const SiteOptions& options, Site::MakeBus make_bus)
    : description_(fmt::format("site {}, every {}", options.name, options.every)),
      longest_(Seconds(900) + 3 * options.patience),
      gateway_(std::make_unique<Site>(options, std::move(make_bus))) {}

std::string JobSite::describe() const { return description_; }

std::int64_t JobSite::begin(const Group& group, const ParameterLayout& layout, const LogSink& log) {
  group_ = group;
  model_ = layout;
  if (is_alone()) return gateway_->begin(layout, log);
  agree(group, Deadline(longest_), "site: its memory", [&] {
    for (AlignedBuffer* buffer : {&own_, &mean_, &before_})
      *buffer = AlignedBuffer(layout.size_bytes());
  });
  of_mean_ = packed_layout(layout, mean_.data());
  layout.gather(mean_.data());
  ExchangeOptions options;
  options.deadline = longest_;
  reducer_ = group.open_reducer(reduced_at_once * sizeof(double), options);
  broadcast_.emplace(group, exchange::BroadcastOptions{.deadline = longest_,
                                                       .purpose = "site: sending its weights"});
  std::int64_t rounds = 0;
  on_gateway("site: beginning", [&] { rounds = gateway_->begin(of_mean_, log); });
  broadcast_->to_all({reinterpret_cast<std::byte*>(&rounds), sizeof rounds});
  send_mean();
  model_.scatter(mean_.data());
  return rounds;
}

/// What fails there fails on all ranks.
void JobSite::on_gateway(std::string_view purpose, const std::function<void()>& part) const {
  agree(*group_, Deadline(longest_), purpose, [&] {
    if (is_gateway()) part();
  });
}

/// All ranks get the mean of their weights.
void JobSite::reduce_mean() {
  model_.gather(own_.data());
  std::vector<double> values;
  for_tensors(of_mean_, [&]<class T>(const Segment& place, T) {
    const std::span<const T> own = elements<T>(place, own_);
    const std::span<T> mean = elements<T>(place, mean_);
    for (std::size_t at = 0; at < own.size(); at += reduced_at_once) {
      const auto part = own.subspan(at, std::min(reduced_at_once, own.size() - at));
      values.assign(part.begin(), part.end());
      reducer_->average(std::span(values));
      std::ranges::transform(values, mean.begin() + static_cast<std::ptrdiff_t>(at),
                             [](double value) { return static_cast<T>(value); });
    }
  });
}

/// All ranks get the mean as the gateway has it.
void JobSite::send_mean() { broadcast_->to_all({mean_.data(), mean_.size_bytes()}); }

void JobSite::end_step(std::int64_t rounds) {
  if (!is_alone() && gateway_->acts_after(rounds))
    exchange(rounds);
  else if (is_gateway())
    gateway_->end_step(rounds);
}

/// The gateway's site turns the mean into the site's next weights.
void JobSite::exchange(std::int64_t rounds) {
  reduce_mean();
  std::memcpy(before_.data(), mean_.data(), mean_.size_bytes());
  on_gateway("site: an exchange", [&] { gateway_->end_step(rounds); });
  send_mean();
  for_tensors(of_mean_, [&]<class T>(const Segment& place, T) {
    const std::span<T> own = elements<T>(place, own_), now = elements<T>(place, mean_);
    const std::span<T> before = elements<T>(place, before_);
    const bool adds = place.role == Role::parameter;
    for (std::size_t e = 0; e < own.size(); ++e)
      own[e] = adds ? own[e] + (now[e] - before[e]) : now[e];
  });
  model_.scatter(own_.data());
}

void JobSite::rebind(const ParameterLayout& layout) {
  model_ = layout;
  if (is_alone()) gateway_->rebind(layout);
}

void JobSite::restored(std::int64_t rounds, const std::vector<TensorView>& saved) {
  if (is_alone()) return gateway_->restored(rounds, saved);
  reduce_mean();
  on_gateway("site: resuming", [&] { gateway_->restored(rounds, saved); });
}

std::vector<TensorView> JobSite::state() {
  return is_gateway() ? gateway_->state() : std::vector<TensorView>();
}

void JobSite::put_back() {
  if (is_alone()) return gateway_->put_back();
  on_gateway("site: resuming", [&] { gateway_->put_back(); });
  send_mean();
  model_.scatter(mean_.data());
}

void JobSite::finish() {
  if (is_gateway()) gateway_->finish();
}

std::vector<std::pair<std::string_view, double>> JobSite::new_scalars() {
  const SiteStats now = stats();
  if (std::exchange(told_exchanges_, now.exchanges) == now.exchanges) return {};
  return scalars_of(now);
}

void JobSite::abandon() noexcept {
  gateway_->abandon();
  broadcast_.reset();
  reducer_.reset();
}

std::shared_ptr<SiteExchange> join(const SiteOptions& options) {
  return std::make_shared<JobSite>(
      options, [options](const LogSink& log) { return connect_bus(options, log); });
}

SiteStats stats_of(const SiteExchange& site) {
  const auto* own = dynamic_cast<const JobSite*>(&site);
  require(own != nullptr, ErrorKind::argument, "stats_of: this is no site of sites::join()");
  return own->stats();
}

}  // namespace fast::sites
