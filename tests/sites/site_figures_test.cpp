#include "sites/site_figures.hpp"

#include <map>

#include "running_sites.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::testing;

namespace {

/// The latest scalars, and how often each came.
struct Scalars final : Observer {
  std::map<std::string, double> latest;
  std::map<std::string, int> times;
  void on_scalar(const ScalarEvent& event) noexcept override {
    latest[std::string(event.name)] = event.value;
    ++times[std::string(event.name)];
  }
};

}  // namespace

TEST_CASE("observers get what a site has done and heard after each exchange") {
  const auto hub = std::make_shared<MemoryHub>();
  constexpr int exchanges = 4;
  std::vector<std::shared_ptr<Scalars>> heard(2);
  std::vector<sites::SiteStats> stats(2);
  run_sites(2, [&](int me) {
    const auto place = static_cast<std::size_t>(me);
    heard[place] = std::make_shared<Scalars>();
    std::vector<double> x{1, 2, 3};
    WorkerOptions options;
    options.algorithm = algorithm::none();
    options.site = site_on(hub, options_of(me, 2));
    options.observer = heard[place];
    Worker worker(local::make_groups(1)[0], stencil::ring(), {view_of("x", std::span(x))}, options);
    for (int t = 0; t < exchanges * steps_between + 1; ++t) worker.step([] {});
    worker.finish();
    stats[place] = sites::stats_of(*options.site);
  });
  for (const std::size_t i : {0U, 1U}) {
    const std::string other = i == 0 ? "site/of/b/" : "site/of/a/";
    for (const auto& [name, value] : sites::scalars_of(stats[i])) {
      CAPTURE(name);
      const bool is_of_other = name.starts_with(other);
      CHECK(heard[i]->times[name] >= (is_of_other ? 1 : exchanges));
    }
    CHECK(heard[i]->latest[other + "round"] >= exchanges * steps_between - 1);
    CHECK(heard[i]->latest[other + "age"] == 0);
    CHECK(heard[i]->latest[other + "delay_s"] > 0);
    CHECK(heard[i]->latest["site/exchanges"] == exchanges);
    CHECK(heard[i]->latest["site/reads"] == static_cast<double>(stats[i].reads));
    CHECK(heard[i]->latest["site/bytes_received"] > 0);
    CHECK(heard[i]->latest["site/left_out"] == 0);
  }
}

TEST_CASE("a site that is not told of any more is forgotten, once") {
  struct Told final : Observer {
    std::vector<std::string> heard;
    void on_site(const SiteEvent& event) noexcept override {
      CHECK(event.kind == SiteEvent::Kind::forgotten);
      CHECK((event.worker == 3 && event.round == 7));
      heard.push_back("forgotten " + event.site);
    }
    void on_scalar(const ScalarEvent& event) noexcept override {
      if (event.name.ends_with("/round")) heard.emplace_back(event.name);
    }
  };
  Told told;
  std::set<std::string> names;
  const auto tell = [&](const std::vector<std::string>& others) {
    sites::SiteStats stats;
    for (const std::string& name : others) stats.others.push_back({.name = name});
    told.heard.clear();
    sites::tell_figures(stats, names, told, 3, 7);
    return told.heard;
  };
  using Heard = std::vector<std::string>;
  CHECK(tell({"a", "b"}) == Heard{"site/of/a/round", "site/of/b/round"});
  CHECK(tell({"b"}) == Heard{"forgotten a", "site/of/b/round"});
  CHECK(tell({"b"}) == Heard{"site/of/b/round"});
  CHECK(tell({"a"}) == Heard{"forgotten b", "site/of/a/round"});
}

TEST_CASE("the rows of a site") {
  sites::SiteStats stats;
  stats.exchanges = 7;
  stats.reads = 13;
  stats.left_out = 1;
  stats.waited_s = 2.25;
  stats.bytes_sent = 1.25e6;
  const auto rows = sites::rows_of(stats);
  CHECK(rows.front().second == "7, 13 publications read, 1 left out");
  CHECK(rows.back().second == "2.2 s");
  CHECK(rows[2].second == "1.2 MB sent, 0.0 MB received");
}
