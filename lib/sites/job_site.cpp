#include "sites/job_site.hpp"

#include <fmt/format.h>
#include <fast/core/error.hpp>

#include "sites/site_figures.hpp"

namespace fast::sites {

JobSite::JobSite(const SiteOptions& options, Site::MakeBus make_bus)
    : description_(fmt::format("site {}, every {}", options.name, options.every)),
      longest_(Seconds(900) + 3 * options.patience),
      site_(std::make_unique<Site>(options, std::move(make_bus))) {}

std::string JobSite::describe() const { return description_; }

std::int64_t JobSite::begin(const Group& group, const ParameterLayout& layout, const LogSink& log) {
  log_ = log;
  const auto begin_as_gateway = [&](const ParameterLayout& weights) {
    is_gateway_ = true;
    return site_->begin(weights, log);
  };
  if (group.size() == 1) return begin_as_gateway(layout);
  ranks_ = make_ranks(group, layout, longest_);
  const std::int64_t rounds = ranks_->meet(Given::own, Take::weights, begin_as_gateway);
  begin_handovers();
  return rounds;
}

/// Ranks that are lost before training begins end the job.
Site& JobSite::gateway() const {
  require(is_gateway_, ErrorKind::deadline,
          "site: the rank that has the connection was lost before training began; start the job "
          "again");
  return *site_;
}

void JobSite::begin_handovers() {
  const auto size = [&](const ParameterLayout&) {
    return static_cast<std::int64_t>(gateway().handover()->size_bytes());
  };
  ranks_->open_handover(static_cast<std::size_t>(ranks_->meet(Given::own, Take::nothing, size)));
  ranks_->meet(Given::own, Take::nothing, [&](const ParameterLayout&) {
    leave();
    return 0;
  });
}

void JobSite::leave() {
  const auto handover = gateway().handover();
  ranks_->leave_handover({handover->data(), handover->size_bytes()});
}

void JobSite::end_step(std::int64_t rounds) {
  if (is_alone()) return site_->end_step(rounds);
  if (!site_->acts_after(rounds)) {
    if (ranks_->leads()) lead(rounds);
    return;
  }
  ahead_ = ranks_->meet(Given::mean, Take::change, [&](const ParameterLayout&) {
    lead(rounds);
    leave();
    return site_->ahead();
  });
}

/// The gateway's site turns the mean into the site's next weights, if an exchange is due.
void JobSite::lead(std::int64_t rounds) {
  if (!std::exchange(is_gateway_, true))
    site_->succeed(ranks_->weights(), log_, ranks_->handover(), rounds, ahead_);
  site_->end_step(rounds);
}

void JobSite::rebind(const ParameterLayout& layout) {
  if (is_alone()) return site_->rebind(layout);
  ranks_->rebind(layout);
}

void JobSite::restored(std::int64_t rounds, const std::vector<TensorView>& saved) {
  if (is_alone()) return site_->restored(rounds, saved);
  ranks_->meet(Given::mean, Take::nothing, [&](const ParameterLayout&) {
    gateway().restored(rounds, saved);
    leave();
    return 0;
  });
}

void JobSite::put_back() {
  if (is_alone()) return site_->put_back();
  ranks_->meet(Given::own, Take::weights, [&](const ParameterLayout&) {
    gateway().put_back();
    leave();
    return 0;
  });
}

std::vector<TensorView> JobSite::state() {
  return is_gateway_ ? site_->state() : std::vector<TensorView>();
}

void JobSite::finish() {
  if (is_gateway_) site_->finish();
}

std::vector<std::pair<std::string_view, double>> JobSite::new_scalars() {
  const std::int64_t exchanges = site_->exchanges();
  if (std::exchange(told_exchanges_, exchanges) == exchanges) return {};
  return scalars_of(stats());
}

void JobSite::abandon() noexcept {
  site_->abandon();
  ranks_.reset();
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
