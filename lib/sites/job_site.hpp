// A site of several ranks: their mean is what the site exchanges with others.
#pragma once

#include <fast/core/memory.hpp>
#include <fast/exchange/group.hpp>
#include <fast/exchange/reducer.hpp>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "exchange/collective/host_broadcast.hpp"
#include "sites/site.hpp"
#include "worker/site_exchange.hpp"

namespace fast::sites {

/// One rank's part. Rank 0 is the gateway: it has the site. After every H steps the ranks reduce
/// the mean of their weights, in sums of 64 bits. The gateway makes the exchange with it, and all
/// ranks add the same difference to their own parameters. Buffers become the site's. All ranks wait
/// for that. They begin with the gateway's weights. Memory of a rank: three models.
///
/// A rank that is lost ends the site at its next exchange.
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
  SiteStats stats() const { return gateway_->stats(); }

 private:
  bool is_alone() const { return group_->size() == 1; }
  bool is_gateway() const { return group_->rank() == 0; }
  void on_gateway(std::string_view purpose, const std::function<void()>& part) const;
  void reduce_mean();
  void send_mean();
  void exchange(std::int64_t rounds);

  std::string description_;
  Seconds longest_;  ///< of a call of the gateway, which has deadlines of its own
  std::unique_ptr<Site> gateway_;
  std::optional<Group> group_;
  ParameterLayout model_;              ///< of this rank
  AlignedBuffer own_, mean_, before_;  ///< packed: of this rank, of all, and before an exchange
  ParameterLayout of_mean_;            ///< its tensors
  std::unique_ptr<Reducer> reducer_;
  std::optional<exchange::HostBroadcast> broadcast_;
  std::int64_t told_exchanges_ = 0;  ///< by new_scalars()
};

}  // namespace fast::sites
