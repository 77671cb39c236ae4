// A site of any number of ranks: their mean is what the site exchanges with others.
#pragma once

#include <fast/core/error.hpp>
#include <fast/exchange/group.hpp>

#include <algorithm>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "sites/site.hpp"
#include "sites/site_figures.hpp"
#include "sites/site_ranks.hpp"
#include "worker/site_exchange.hpp"

#include <fmt/format.h>

namespace fast::sites {

/// One rank's part. The rank that leads is the gateway: it has the site. After every H steps the
/// ranks reduce the mean of their weights. The gateway makes the exchange with it, and all ranks
/// add the same change to their own parameters. Buffers become the site's. All ranks wait for that.
/// They begin with the gateway's weights. make_ranks() says what a lost rank does.
class JobSite final : public SiteExchange {
 public:
  /// Throws as Site() does.
  JobSite(const SiteOptions& options, Site::MakeBus make_bus)
      : name_(options.name),
        description_(fmt::format("site {}, every {}", options.name, options.every)),
        longest_(Seconds(900) + 3 * options.patience),
        site_(std::make_unique<Site>(options, std::move(make_bus))) {}

  std::string describe() const override { return description_; }

  std::int64_t begin(const Group& group, const ParameterLayout& layout,
                     const LogSink& log) override {
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

  void rebind(const ParameterLayout& layout) override {
    if (is_alone()) return site_->rebind(layout);
    ranks_->rebind(layout);
  }

  void restored(std::int64_t rounds, const std::vector<TensorView>& saved) override {
    if (is_alone()) return site_->restored(rounds, saved);
    ranks_->meet(Given::mean, Take::nothing, [&](const ParameterLayout&) {
      gateway().restored(rounds, saved);
      leave();
      return 0;
    });
  }

  void put_back() override {
    if (is_alone()) return site_->put_back();
    ranks_->meet(Given::own, Take::weights, [&](const ParameterLayout&) {
      gateway().put_back();
      leave();
      return 0;
    });
  }

  std::vector<TensorView> state() override {
    return is_gateway_ ? site_->state() : std::vector<TensorView>();
  }

  void end_step(std::int64_t rounds) override {
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

  void finish() override {
    if (is_gateway_) site_->finish();
  }

  void abandon() noexcept override {
    site_->abandon();
    ranks_.reset();
  }

  void tell(Observer& observer, int worker, std::int64_t round) override {
    const auto now = Clock::now();
    const auto tell_event = [&](SiteEvent event) {
      event.worker = worker;
      event.round = round;
      observer.on_site(event);
    };
    if (!std::exchange(has_told_, true)) tell_event({.site = name_, .at = now});
    std::ranges::for_each(site_->events(), tell_event);
    const std::int64_t exchanges = site_->exchanges();
    const bool is_news = std::exchange(told_exchanges_, exchanges) != exchanges;
    if (exchanges == 0 || (!is_news && now - told_at_ < tell_again)) return;
    told_at_ = now;
    tell_figures(stats(), told_sites_, observer, worker, round);
  }

  SiteStats stats() const { return site_->stats(); }

 private:
  static constexpr Seconds tell_again{1};

  bool is_alone() const { return ranks_ == nullptr; }

  void begin_handovers() {
    const auto size = [&](const ParameterLayout&) {
      return static_cast<std::int64_t>(gateway().handover()->size_bytes());
    };
    ranks_->open_handover(static_cast<std::size_t>(ranks_->meet(Given::own, Take::nothing, size)));
    ranks_->meet(Given::own, Take::nothing, [&](const ParameterLayout&) {
      leave();
      return 0;
    });
  }

  /// Ranks that are lost before training begins end the job.
  Site& gateway() const {
    require(is_gateway_, ErrorKind::deadline,
            "site: the rank that has the connection was lost before training began; start the job "
            "again");
    return *site_;
  }

  /// The gateway's site turns the mean into the site's next weights, if an exchange is due.
  void lead(std::int64_t rounds) {
    if (!std::exchange(is_gateway_, true))
      site_->succeed(ranks_->weights(), log_, ranks_->handover(), rounds, ahead_);
    site_->end_step(rounds);
  }

  void leave() {
    const auto handover = gateway().handover();
    ranks_->leave_handover({handover->data(), handover->size_bytes()});
  }

  std::string name_, description_;
  Seconds longest_;  ///< of a call of the gateway, which has deadlines of its own
  std::unique_ptr<Site> site_;
  bool is_gateway_ = false;
  LogSink log_;
  std::unique_ptr<SiteRanks> ranks_;  ///< null: this rank is alone
  std::int64_t ahead_ = 0;            ///< of the site, after the latest exchange
  // By tell():
  bool has_told_ = false;
  std::int64_t told_exchanges_ = 0;
  Clock::time_point told_at_{};
  std::set<std::string> told_sites_;
};

}  // namespace fast::sites
