#include "sites/site_ranks.hpp"

#include <fast/core/error.hpp>
#include <fast/exchange/reducer.hpp>

#include <algorithm>
#include <cstring>
#include <set>
#include <vector>

#include "exchange/collective/host_broadcast.hpp"
#include "exchange/group_impl.hpp"
#include "sites/packed_model.hpp"
#include "sites/shared_ranks.hpp"

namespace fast::sites {

namespace {

constexpr std::size_t reduced_at_once = std::size_t{1} << 17;  ///< elements

/// The ranks of a site on several hosts: all-reduces and broadcasts, which need every rank.
class ReducedRanks final : public SiteRanks {
 public:
  ReducedRanks(const Group& group, const ParameterLayout& model, Seconds longest)
      : group_(group),
        model_(model),
        longest_(longest),
        broadcast_(group, {.deadline = longest, .purpose = "site: sending its weights"}) {
    agree(group, Deadline(longest), "site: its memory", [&] {
      for (AlignedBuffer* buffer : {&own_, &mean_, &before_})
        *buffer = AlignedBuffer(model.size_bytes());
    });
    of_mean_ = packed_layout(model, mean_.data());
    ExchangeOptions options;
    options.deadline = longest;
    reducer_ = group.open_reducer(reduced_at_once * sizeof(double), options);
  }

  std::int64_t meet(Given given, Take take, const Lead& lead) override {
    model_.gather(own_.data());
    if (given == Given::mean)
      reduce_mean();
    else
      std::memcpy(mean_.data(), own_.data(), own_.size_bytes());
    std::memcpy(before_.data(), mean_.data(), mean_.size_bytes());
    std::int64_t number = 0;
    agree(group_, Deadline(longest_), "site: an exchange", [&] {
      if (leads()) number = lead(of_mean_);
    });
    broadcast_.to_all({reinterpret_cast<std::byte*>(&number), sizeof number});
    if (take == Take::nothing) return number;
    broadcast_.to_all({mean_.data(), mean_.size_bytes()});
    if (take == Take::weights) {
      model_.scatter(mean_.data());
      return number;
    }
    write_change(of_mean_, before_.data(), mean_.data(), mean_.data());
    add_change(of_mean_, mean_.data(), own_.data());
    model_.scatter(own_.data());
    return number;
  }

  bool leads() const override { return group_.rank() == 0; }
  ParameterLayout weights() override { return of_mean_; }
  void open_handover(std::size_t) override {}
  void leave_handover(std::span<const std::byte>) override {}
  std::span<const std::byte> handover() const override { return {}; }
  void rebind(const ParameterLayout& model) override { model_ = model; }

 private:
  /// All ranks get the mean of their weights, in sums of 64 bits.
  void reduce_mean() {
    std::vector<double> values;
    for_tensors(of_mean_, [&]<class T>(const Segment& place, T) {
      const std::span<T> own = elements<T>(place, own_.data());
      const std::span<T> mean = elements<T>(place, mean_.data());
      for (std::size_t at = 0; at < own.size(); at += reduced_at_once) {
        const auto part = own.subspan(at, std::min(reduced_at_once, own.size() - at));
        values.assign(part.begin(), part.end());
        reducer_->average(std::span(values));
        std::ranges::transform(values, mean.begin() + static_cast<std::ptrdiff_t>(at),
                               [](double value) { return static_cast<T>(value); });
      }
    });
  }

  Group group_;
  ParameterLayout model_;
  Seconds longest_;
  AlignedBuffer own_, mean_, before_;  ///< packed
  ParameterLayout of_mean_;
  std::unique_ptr<Reducer> reducer_;
  exchange::HostBroadcast broadcast_;
};

}  // namespace

std::unique_ptr<SiteRanks> make_ranks(const Group& group, const ParameterLayout& model,
                                      Seconds longest) {
  const std::vector<int> hosts = group.hosts();
  const bool on_one_host = std::set<int>(hosts.begin(), hosts.end()).size() == 1;
  if (!on_one_host) return std::make_unique<ReducedRanks>(group, model, longest);
  const auto allocate = [group, longest](std::size_t bytes) {
    return group.allocate(bytes, Deadline(longest));
  };
  exchange::ExitReports lost = exchange::exit_reports(group);
  if (lost.all) lost.all = [group] { return group.died(); };
  GroupImpl::of(group).skip_prefault();  // most of it is that of the leading rank
  return std::make_unique<SharedRanks>(
      SharedRanks::Place{group.rank(), allocate(SharedRanks::part_bytes(model)), std::move(lost),
                         allocate},
      model, longest);
}

}  // namespace fast::sites
