// A site of any number of ranks: their mean is what the site exchanges with others.
#pragma once

#include <fast/exchange/group.hpp>

#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "sites/site.hpp"
#include "sites/site_ranks.hpp"
#include "worker/site_exchange.hpp"

namespace fast::sites {

/// One rank's part. The rank that leads is the gateway: it has the site. After every H steps the
/// ranks reduce the mean of their weights. The gateway makes the exchange with it, and all ranks
/// add the same change to their own parameters. Buffers become the site's. All ranks wait for that.
/// They begin with the gateway's weights. make_ranks() says what a lost rank does.
class JobSite final : public SiteExchange {
 public:
  /// Throws as Site() does.
  JobSite(const SiteOptions& options, Site::MakeBus make_bus);

  std::string describe() const override;
  std::int64_t begin(const Group& group, const ParameterLayout& layout,
                     const LogSink& log) override;
  void rebind(const ParameterLayout& layout) override;
  void restored(std::int64_t rounds, const std::vector<TensorView>& saved) override;
  void put_back() override;
  std::vector<TensorView> state() override;
  void end_step(std::int64_t rounds) override;
  void finish() override;
  void abandon() noexcept override;
  std::vector<std::pair<std::string_view, double>> new_scalars() override;
  SiteStats stats() const { return site_->stats(); }

 private:
  bool is_alone() const { return ranks_ == nullptr; }
  void begin_handovers();
  Site& gateway() const;
  void lead(std::int64_t rounds);
  void leave();

  std::string description_;
  Seconds longest_;  ///< of a call of the gateway, which has deadlines of its own
  std::unique_ptr<Site> site_;
  bool is_gateway_ = false;
  LogSink log_;
  std::unique_ptr<SiteRanks> ranks_;  ///< null: this rank is alone
  std::int64_t ahead_ = 0;            ///< of the site, after the latest exchange
  std::int64_t told_exchanges_ = 0;   ///< by new_scalars()
};

}  // namespace fast::sites
