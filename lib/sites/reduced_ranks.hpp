// The ranks of a site on several hosts: all-reduces and broadcasts, which need every rank.
#pragma once

#include <fast/core/memory.hpp>
#include <fast/exchange/reducer.hpp>

#include <memory>

#include "exchange/collective/host_broadcast.hpp"
#include "sites/site_ranks.hpp"

namespace fast::sites {

class ReducedRanks final : public SiteRanks {
 public:
  ReducedRanks(const Group& group, const ParameterLayout& model, Seconds longest);

  std::int64_t meet(Given given, Take take, const Lead& lead) override;
  bool leads() const override { return group_.rank() == 0; }
  ParameterLayout weights() override { return of_mean_; }
  void open_handover(std::size_t) override {}
  void leave_handover(std::span<const std::byte>) override {}
  std::span<const std::byte> handover() const override { return {}; }
  void rebind(const ParameterLayout& model) override { model_ = model; }

 private:
  void reduce_mean();

  Group group_;
  ParameterLayout model_;
  Seconds longest_;
  AlignedBuffer own_, mean_, before_;  ///< packed
  ParameterLayout of_mean_;
  std::unique_ptr<Reducer> reducer_;
  exchange::HostBroadcast broadcast_;
};

}  // namespace fast::sites
