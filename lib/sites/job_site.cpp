#include "sites/job_site.hpp"

#include <fast/core/error.hpp>

#include <algorithm>
#include <cstring>
#include <span>
#include <string_view>
#include <utility>

#include "core/floating.hpp"
#include "exchange/collective/host_broadcast.hpp"

namespace fast::sites {
namespace {

constexpr Seconds longest{900};  ///< of a call of the gateway, which has deadlines of its own
constexpr std::size_t reduced_at_once = std::size_t{1} << 17;  ///< elements

/// Calls part(elements of the first, of the second) with spans of equal tensors of two models that
/// are packed alike.
template <class Part>
void with_tensors(const ParameterLayout& layout, std::byte* first, std::byte* second,
                  const Part& part) {
  const std::vector<Segment> places = layout.tensors();
  for (std::size_t t = 0; t < places.size(); ++t) {
    const Segment& place = places[t];
    const auto of = [&]<class T>(T) {
      part(std::span(reinterpret_cast<T*>(first + place.offset_bytes), place.element_count),
           std::span(reinterpret_cast<T*>(second + place.offset_bytes), place.element_count));
    };
    place.dtype == DType::f64 ? of(double{}) : of(float{});
  }
}

}  // namespace

JobSite::JobSite(const SiteOptions& options, Site::MakeBus make_bus)
    : gateway_(std::make_unique<Site>(options, std::move(make_bus))), every_(options.every) {}

std::int64_t JobSite::begin(const Group& group, const ParameterLayout& layout, const LogSink& log) {
  group_ = group;
  model_ = layout;
  if (is_alone()) return gateway_->begin(layout, log);
  own_ = AlignedBuffer(layout.size_bytes());
  mean_ = AlignedBuffer(layout.size_bytes());
  of_mean_ = packed_layout(layout, mean_.data());
  layout.gather(mean_.data());
  ExchangeOptions options;
  options.deadline = longest;
  reducer_ = group.open_reducer(reduced_at_once * sizeof(double), options);
  on_gateway("site: beginning", [&] { rounds_ = gateway_->begin(of_mean_, log); });
  send_mean();
  model_.scatter(mean_.data());
  return rounds_;
}

/// What fails there fails on all ranks.
void JobSite::on_gateway(std::string_view purpose, const std::function<void()>& part) const {
  agree(*group_, Deadline(longest), purpose, [&] {
    if (is_gateway()) part();
  });
}

/// Of the ranks' weights.
void JobSite::reduce_mean() {
  model_.gather(own_.data());
  std::vector<double> values;
  with_tensors(of_mean_, own_.data(), mean_.data(), [&](auto own, auto mean) {
    for (std::size_t at = 0; at < own.size(); at += reduced_at_once) {
      const std::size_t count = std::min(reduced_at_once, own.size() - at);
      values.assign(own.begin() + static_cast<std::ptrdiff_t>(at),
                    own.begin() + static_cast<std::ptrdiff_t>(at + count));
      reducer_->average(std::span(values));
      for (std::size_t e = 0; e < count; ++e)
        mean[at + e] = static_cast<std::remove_reference_t<decltype(mean[0])>>(values[e]);
    }
  });
}

/// That of the gateway, and how many rounds it has made.
void JobSite::send_mean() {
  exchange::HostBroadcast broadcast(*group_, {.deadline = longest, .purpose = "site: its weights"});
  broadcast.to_all({reinterpret_cast<std::byte*>(&rounds_), sizeof rounds_});
  broadcast.to_all({mean_.data(), mean_.size_bytes()});
}

void JobSite::end_step() {
  ++rounds_;
  if (is_alone() || (rounds_ % every_ != 0 && is_gateway())) return gateway_->end_step();
  if (rounds_ % every_ == 0) exchange();
}

/// The gateway's site turns the mean into the site's next weights.
void JobSite::exchange() {
  reduce_mean();
  AlignedBuffer before(mean_.size_bytes());
  std::memcpy(before.data(), mean_.data(), mean_.size_bytes());
  on_gateway("site: an exchange", [&] { gateway_->end_step(); });
  send_mean();
  with_tensors(of_mean_, before.data(), mean_.data(), [&](auto was, auto now) {
    for (std::size_t e = 0; e < was.size(); ++e) was[e] = now[e] - was[e];
  });
  with_tensors(of_mean_, own_.data(), before.data(), [](auto own, auto change) {
    for (std::size_t e = 0; e < own.size(); ++e) own[e] += change[e];
  });
  model_.scatter(own_.data());
}

void JobSite::rebind(const ParameterLayout& layout) {
  model_ = layout;
  if (is_alone()) gateway_->rebind(layout);
}

void JobSite::restored(std::int64_t rounds) {
  rounds_ = rounds;
  if (is_alone()) return gateway_->restored(rounds);
  reduce_mean();
  on_gateway("site: resuming", [&] { gateway_->restored(rounds); });
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
