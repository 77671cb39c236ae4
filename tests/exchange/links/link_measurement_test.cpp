#include "exchange/links/link_measurement.hpp"

#include <fast/core/error.hpp>
#include <map>

#include "support/catch.hpp"

using namespace fast;
using namespace fast::exchange;

namespace {

// Hosts whose ranks share a link in each direction. The first message of a flow takes longer.
class FakeLinks : public LinkTrials {
 public:
  explicit FakeLinks(std::vector<int> hosts) : hosts_(std::move(hosts)) {}

  TrialTimes run(const std::vector<Flow>& flows, int count) override {
    ++trials;
    std::map<int, int> leaving, entering;
    for (const Flow& flow : flows) {
      ++leaving[host(flow.from)];
      ++entering[host(flow.to)];
      longest_bytes = std::max(longest_bytes, flow.size_bytes);
    }
    TrialTimes times;
    for (const Flow& flow : flows) {
      const int from = host(flow.from), to = host(flow.to);
      const bool near = from == to;
      const double shared = near ? 1 : std::max(leaving[from], entering[to]);
      const double rate = near ? memory : bandwidth_of(from, to) / shared;
      const double seconds =
          2 * (near ? 1e-6 : latency_s) + static_cast<double>(flow.size_bytes) / rate;
      auto& each = times.seconds.emplace_back(static_cast<std::size_t>(count), seconds);
      each.front() *= 3;
      for (std::size_t k = 1; k < each.size() && flow.size_bytes > 1; ++k)
        each[k] *= k % 2 == 0 ? 1 + noise : 1 - noise;
      double sum = 0;
      for (const double s : each) sum += s;
      times.total_s = std::max(times.total_s, sum);
    }
    return times;
  }

  double latency_s = 1e-4, bandwidth = 1.25e8, memory = 5e9, noise = 0;
  std::map<std::pair<int, int>, double> slow;  // other bandwidths
  int trials = 0;
  std::uint64_t longest_bytes = 0;

 private:
  int host(int rank) const { return hosts_[static_cast<std::size_t>(rank)]; }
  double bandwidth_of(int from, int to) const {
    const auto found = slow.find({std::min(from, to), std::max(from, to)});
    return found == slow.end() ? bandwidth : found->second;
  }
  std::vector<int> hosts_;
};

std::vector<int> hosts_of(int hosts, int ranks) {
  std::vector<int> list;
  for (int r = 0; r < hosts * ranks; ++r) list.push_back(r / ranks * ranks);
  return list;
}

std::vector<std::string> names_of(const std::vector<int>& hosts) {
  std::vector<std::string> names;
  for (const int host : hosts) names.push_back("h" + std::to_string(host));
  return names;
}

MeasuredLinks measured(FakeLinks& links, const std::vector<int>& hosts, double budget_s = 10) {
  LinkMeasureOptions options;
  options.budget = Seconds(budget_s);
  return LinkMeasurement(links, hosts, names_of(hosts), options).measure();
}

}  // namespace

TEST_CASE("the figures of links are found") {
  for (const auto& [hosts, ranks] : {std::pair(2, 1), {2, 4}, {3, 2}, {5, 3}, {20, 1}}) {
    for (const auto& [latency, bandwidth] :
         {std::pair(1e-4, 1.25e8), {0.02, 1.25e7}, {1e-6, 1.25e10}}) {
      INFO(hosts << " hosts, " << ranks << " ranks, " << bandwidth << " bytes/s");
      const std::vector<int> list = hosts_of(hosts, ranks);
      FakeLinks links(list);
      links.latency_s = latency;
      links.bandwidth = bandwidth;
      const MeasuredLinks found = measured(links, list);
      CHECK(found.latency_s == Approx(latency).epsilon(0.02));
      CHECK(found.bandwidth == Approx(bandwidth).epsilon(0.02));
      CHECK(found.lone_bandwidth == Approx(bandwidth).epsilon(0.02));
      CHECK(found.jitter == Approx(0).margin(1e-9));
      CHECK((ranks > 1 ? found.memory_bandwidth == Approx(5e9).epsilon(0.02)
                       : found.memory_bandwidth == 0));
    }
  }
}

TEST_CASE("a slow pair of hosts is found, and does not change the median") {
  const std::vector<int> list = hosts_of(5, 2);
  FakeLinks links(list);
  links.slow[{2, 6}] = 1e6;
  const MeasuredLinks found = measured(links, list);
  CHECK(found.bandwidth == Approx(1.25e8).epsilon(0.02));
  CHECK(found.pairs.size() == 10);
  for (const HostPairFigures& pair : found.pairs) {
    const bool is_slow = pair.first == "h2" && pair.second == "h6";
    CHECK(pair.bandwidth == Approx(is_slow ? 1e6 : 1.25e8).epsilon(0.05));
  }
}

TEST_CASE("jitter is the deviation of the logarithm of the time") {
  const std::vector<int> list = hosts_of(4, 1);
  FakeLinks links(list);
  links.noise = 0.1;  // of equally many longer and shorter messages: the median deviation is 0.1
  CHECK(measured(links, list).jitter == Approx(0.1 * 1.4826).epsilon(0.15));
}

TEST_CASE("one host has the figures of its ranks, and one rank a host has none of memory") {
  const std::vector<int> list = hosts_of(1, 3);
  FakeLinks links(list);
  const MeasuredLinks found = measured(links, list);
  CHECK(found.bandwidth == Approx(5e9).epsilon(0.02));
  CHECK(found.latency_s == Approx(1e-6).epsilon(0.02));
  CHECK(found.pairs.empty());
}

TEST_CASE("a measurement ends soon after its budget") {
  const std::vector<int> list = hosts_of(16, 4);
  FakeLinks links(list);
  links.latency_s = 0.05;
  links.bandwidth = 1e6;
  for (const double budget_s : {1.0, 5.0, 10.0}) {
    const MeasuredLinks found = measured(links, list, budget_s);
    INFO(budget_s << " s of budget, " << found.seconds << " s taken");
    CHECK(found.bandwidth == Approx(1e6).epsilon(0.05));
    CHECK(found.seconds < 2 * budget_s + 4);  // a trial that has begun is not cut short
  }
}

TEST_CASE("ranks that do not answer end the measurement") {
  class Silent : public LinkTrials {
    TrialTimes run(const std::vector<Flow>&, int) override {
      fail(ErrorKind::deadline, "host b has not answered");
    }
  };
  Silent silent;
  LinkMeasurement measurement(silent, {0, 1}, {"a", "b"}, {});
  CHECK_THROWS_WITH(measurement.measure(), "host b has not answered");
}
