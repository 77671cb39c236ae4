// Sites of one rank: equal to workers of one job, in bad weather; joins, deaths, refusals.
#include <fast/topology/graphs.hpp>
#include <fast/topology/load.hpp>

#include <atomic>
#include <cmath>
#include <latch>
#include <random>

#include "running_sites.hpp"
#include "sites/wire.hpp"
#include "support/catch.hpp"
#include "worker/rules/outer_run.hpp"

using namespace fast;
using namespace fast::testing;

namespace {

/// As outer_ends() with `starts_equal` has it, but each worker is a site.
/// `warnings` get those of all sites. Site `slow` takes longer for each step; -1: none does.
OuterEnds site_ends(const std::shared_ptr<MemoryHub>& hub, const OuterRun& run,
                    std::string& warnings, int slow) {
  std::mutex mutex;
  std::latch trained(run.workers);
  OuterEnds ends(static_cast<std::size_t>(run.workers));
  run_sites(run.workers, [&](int me) {
    std::vector<double>& x = ends[static_cast<std::size_t>(me)];
    Rng rng(mix_seed(9, 0));
    for (std::size_t e = 0; e < run.elements; ++e) x.push_back(rng.normal());
    sites::SiteOptions options = options_of(me, run.workers);
    options.rule = run.options.algorithm;
    options.topology = run.topology;
    WorkerOptions inside = none_inside();
    inside.log = [&](LogLevel level, std::string_view text) {
      const std::lock_guard lock(mutex);
      if (level == LogLevel::warning) warnings += std::string(text) + '\n';
    };
    Worker worker =
        site_worker({view_of("x", std::span(x))}, site_on(hub, options), std::move(inside));
    for (int t = 0; t < run.rounds; ++t) {
      worker.step([&] {
        if (me == slow) std::this_thread::sleep_for(std::chrono::milliseconds(30));
        for (double& value : x) value -= run.rate * (value - goal_of(me));
      });
    }
    trained.arrive_and_wait();  // a busy machine may hold one for longer than the others wait
    worker.finish();
  });
  return ends;
}

struct Case {
  const char* name;
  algorithm::Rule rule;
  TopologyRule topology;
  int slow = -1;  ///< a site
};

std::vector<Case> cases() {
  return {
      {"gasloc", algorithm::gasloc({.period = steps_between}), stencil::ring()},
      {"gasloc, accelerated",
       algorithm::gasloc(
           {.period = steps_between, .rate = 0.8, .consensus_step = 0.7, .acceleration = 0.3}),
       stencil::complete()},
      {"gasloc, one peer", algorithm::gasloc({.period = steps_between}),
       schedule::random_matchings(7)},
      {"noloco", algorithm::noloco({.period = steps_between}), schedule::random_matchings(7)},
      {"diloco", algorithm::diloco({.period = steps_between}), stencil::complete()},
      {"gasloc, delayed", algorithm::gasloc({.period = steps_between, .delay = 1}),
       stencil::ring()},
      {"gasloc, delayed, accelerated and blended",
       algorithm::gasloc(
           {.period = steps_between, .rate = 0.8, .acceleration = 0.3, .delay = 2, .blend = 0.3}),
       stencil::complete()},
      {"noloco, delayed", algorithm::noloco({.period = steps_between, .delay = 2}),
       schedule::random_matchings(7)},
      {"diloco, delayed", algorithm::diloco({.period = steps_between, .delay = 1}),
       stencil::complete()},
      {"gasloc, one peer, a slow site", algorithm::gasloc({.period = steps_between}),
       schedule::random_matchings(7), 1},
      {"noloco, delayed, a slow site", algorithm::noloco({.period = steps_between, .delay = 2}),
       schedule::random_matchings(7), 1},
  };
}

std::uint64_t drawn_seed() { return std::random_device{}(); }

}  // namespace

TEST_CASE("sites of one rank are equal to workers of one job") {
  const Case now = cases()[static_cast<std::size_t>(GENERATE(range(0, 11)))];
  const int count = 5;
  const auto seed = drawn_seed();
  INFO(now.name << " on " << count << " sites, seed " << seed);
  OuterRun run{.workers = count, .topology = now.topology, .options = outer_options(now.rule)};
  run.rounds = 8 * steps_between + 1;
  run.starts_equal = true;
  run.elements = 20'000;  // three chunks
  const OuterEnds in_one_job = outer_ends(run);
  const auto hub =
      std::make_shared<MemoryHub>(Weather{.lost = 0.003, .delay = Seconds(0.01), .seed = seed});
  std::string warnings;
  const OuterEnds ends = site_ends(hub, run, warnings, now.slow);
  INFO(warnings);
  CHECK(largest_difference(ends, in_one_job) < 1e-12);
}

namespace {

/// A site whose model is one number, which nobody trains.
struct Still {
  std::vector<double> x;
  std::shared_ptr<SiteExchange> site;
  Worker worker;
  Still(const std::shared_ptr<MemoryHub>& hub, const sites::SiteOptions& options, double value,
        WorkerOptions inside = none_inside())
      : x{value},
        site(site_on(hub, options)),
        worker(site_worker({view_of("x", std::span(x))}, site, std::move(inside))) {}
  void idle(std::int64_t rounds) {
    for (std::int64_t t = 0; t < rounds; ++t) worker.step([] {});
  }
};

/// Of the error that join and the Worker's constructor throw; empty: none.
std::string error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

}  // namespace

namespace {
/// Of any thread.
void expect_said(const std::string& said, const std::string& part) {
  expect(said.find(part) != said.npos, fmt::format("\"{}\" has \"{}\"", said, part));
}
}  // namespace

TEST_CASE("sites come to the mean of their weights, by samples") {
  const auto hub = std::make_shared<MemoryHub>();
  const double values[] = {1, -2, 7}, samples[] = {1, 4, 2};
  double mean = 0;
  for (int i = 0; i < 3; ++i) mean += values[i] * samples[i] / 7;
  std::vector<double> ends(3);
  run_sites(3, [&](int me) {
    sites::SiteOptions options = options_of(me, 3);
    options.samples = samples[me];
    options.topology = stencil::complete();
    Still still(hub, options, 0);
    still.x[0] = values[me];  // sites begin with equal weights, and this is their first step
    still.idle(60 * steps_between);
    still.worker.finish();
    ends[static_cast<std::size_t>(me)] = still.x[0];
  });
  for (const double end : ends) CHECK(end == Approx(mean).epsilon(1e-12));
}

TEST_CASE("coded messages keep the mean of the sites, and bring them together") {
  struct Coded {
    const char* codec;
    double consensus_step;
    double apart;  ///< root mean square
    double bytes;  ///< an element
  };
  const Coded now =
      GENERATE(Coded{"bf16", 1, 0.01, 2}, Coded{"fp16", 1, 0.001, 2},
               Coded{"int8", 1, 0.02, 1 + 1.0 / 64}, Coded{"int4", 0.7, 1e-5, 0.5 + 1.0 / 64},
               Coded{"int2", 0.3, 0.05, 0.25 + 1.0 / 32}, Coded{"sparse", 0.2, 0.3, 0.1 * 8});
  const auto seed = drawn_seed();
  INFO(now.codec << ", seed " << seed);
  const std::size_t elements = 20'000;
  const int count = 3, exchanges = 40;
  const auto hub = std::make_shared<MemoryHub>(Weather{.lost = 0.002, .seed = seed});
  std::vector<std::vector<float>> ends(count, std::vector<float>(elements));
  std::vector<double> mean(elements);
  Rng rng(seed);
  std::vector<std::vector<float>> starts = ends;
  for (std::size_t e = 0; e < elements; ++e) {
    for (auto& start : starts) {
      start[e] = static_cast<float>(rng.normal());
      mean[e] += start[e] / static_cast<double>(count);
    }
  }
  run_sites(count, [&](int me) {
    sites::SiteOptions options = options_of(me, count);
    options.rule =
        algorithm::gasloc({.period = steps_between, .consensus_step = now.consensus_step});
    options.fraction = 0.1;
    options.codec = std::string_view(now.codec) == "sparse"
                        ? codec::Options{.kind = codec::Kind::sparse}
                        : codec::by_name(now.codec);
    auto& x = ends[static_cast<std::size_t>(me)];
    const auto site = site_on(hub, options);
    Worker worker = site_worker({view_of("x", std::span(x))}, site);
    x = starts[static_cast<std::size_t>(me)];
    for (int t = 0; t < exchanges * steps_between; ++t) worker.step([] {});
    worker.finish();
    const sites::SiteStats stats = sites::stats_of(*site);
    expect(stats.left_out == 0, "nothing is left out");
    // Of two neighbors; the first two messages may be whole. A state has the weights and φ.
    const double most =
        2 * static_cast<double>(elements) * (exchanges * now.bytes + 4) + 8.1 * elements;
    expect(stats.bytes_received <= most,
           fmt::format("{} of at most {} bytes were received", stats.bytes_received, most));
  });
  double drift = 0, squares = 0;
  for (std::size_t e = 0; e < elements; ++e) {
    double sum = 0;
    for (const auto& x : ends) sum += static_cast<double>(x[e]) / count;
    drift = std::max(drift, std::abs(sum - mean[e]));
    for (const auto& x : ends) squares += (x[e] - mean[e]) * (x[e] - mean[e]);
  }
  CHECK(drift < 1e-5);
  CHECK(std::sqrt(squares / count / elements) < now.apart);
}

TEST_CASE("a site that joins reads whole messages first, and differences afterwards") {
  const auto hub = std::make_shared<MemoryHub>();
  std::atomic<int> joined = 0;
  std::vector<double> ends(3);
  run_sites(3, [&](int me) {
    sites::SiteOptions options = options_of(me, 2);
    options.codec = codec::by_name("int4");
    options.topology = stencil::complete();
    while (me == 2 && joined < 2) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::atomic<int> lacking = 0;
    WorkerOptions inside = none_inside();
    inside.log = [&](LogLevel, std::string_view text) {
      lacking += text.find("is a difference to one") != text.npos ? 1 : 0;
    };
    Still still(hub, options, 1, inside);
    still.x[0] = 1 + me;
    still.idle(5 * steps_between);
    ++joined;
    const auto until = Clock::now() + std::chrono::seconds(30);
    while (joined < 3 && Clock::now() < until) still.idle(steps_between);
    still.idle(5 * steps_between);
    const int before = lacking;
    still.idle(20 * steps_between);
    expect(lacking == before, fmt::format("{} messages lack their base", lacking - before));
    ends[static_cast<std::size_t>(me)] = still.x[0];
    still.worker.finish();
  });
  for (const double end : ends) CHECK(end == Approx(ends[0]).epsilon(1e-3));
}

TEST_CASE("neighbors that are new to each other as a site leaves read whole messages") {
  const auto hub = std::make_shared<MemoryHub>();
  std::vector<double> ends(4);
  std::atomic<int> lacking = 0, behind = 0;
  run_sites(4, [&](int me) {
    sites::SiteOptions options = options_of(me, 4);
    options.codec = codec::by_name("int4");
    WorkerOptions inside = none_inside();
    inside.log = [&](LogLevel, std::string_view text) {
      lacking += text.find("is a difference to one") != text.npos ? 1 : 0;
    };
    Still still(hub, options, 1, inside);
    still.x[0] = me;
    still.idle(10 * steps_between);
    if (me == 1) return still.worker.finish();
    still.idle(10 * steps_between);
    behind = lacking.load();
    still.idle(20 * steps_between);
    ends[static_cast<std::size_t>(me)] = still.x[0];
    still.worker.finish();
  });
  CHECK(behind == lacking);
  CHECK(lacking <= 2);  // where one has noticed an exchange before the other
  for (const int i : {2, 3})
    CHECK(ends[static_cast<std::size_t>(i)] == Approx(ends[0]).margin(1e-3));
}

TEST_CASE("codecs that do not fit a site are refused") {
  const auto hub = std::make_shared<MemoryHub>();
  const auto with = [&](const std::function<void(sites::SiteOptions&)>& change) {
    sites::SiteOptions options = options_of(0, 1);
    change(options);
    return error_of([&] { Still(hub, options, 1); });
  };
  CHECK_THAT(with([](auto& o) {
               o.codec = codec::by_name("int4");
               o.staleness = 1;
             }),
             ContainsSubstring("it sends differences"));
  CHECK_THAT(with([](auto& o) {
               o.codec = codec::by_name("int2");
               o.topology = schedule::random_matchings(1);
             }),
             ContainsSubstring("it sends differences"));
  CHECK_THAT(with([](auto& o) { o.codec = codec::by_name("int8_stochastic"); }),
             ContainsSubstring("take int8"));
  CHECK_THAT(with([](auto& o) {
               o.codec = {.kind = codec::Kind::sparse};
               o.staleness = 1;
             }),
             ContainsSubstring("codec sparse=0.01 with topology ring and staleness 1; it sends"));
  CHECK_THAT(with([](auto& o) {
               o.codec = {.kind = codec::Kind::sparse};
               o.fraction = 0.0123456789;
               o.staleness = 1;
             }),
             ContainsSubstring("codec sparse=0.0123456789 with"));
  CHECK_THAT(with([](auto& o) {
               o.codec = {.kind = codec::Kind::sparse};
               o.fraction = 0.5;
             }),
             ContainsSubstring("take a smaller part"));
  for (const double fraction : {0.0, 1.0, -0.5, 3.0, std::nan("")}) {
    CHECK_THAT(with([&](auto& o) {
                 o.codec = {.kind = codec::Kind::sparse};
                 o.fraction = fraction;
               }),
               ContainsSubstring("its part must be above 0 and below 1"));
  }
}

TEST_CASE("what sites compare has the bytes of a sparse difference, which versions may count") {
  const auto hub = std::make_shared<MemoryHub>();
  MemoryBus foreign(hub, "m");
  std::mutex mutex;
  std::string about;
  foreign.listen("run.beat.a", [&](std::string_view, std::string_view text) {
    const auto heard = sites::decode_status(text);
    const std::lock_guard lock(mutex);
    if (heard) about = heard->about;
  });
  sites::SiteOptions options = options_of(0, 1);
  options.codec = {.kind = codec::Kind::sparse};
  options.fraction = 0.0106;
  std::vector<float> x(1000);
  Worker worker = site_worker({view_of("x", std::span(x))}, site_on(hub, options));
  const Deadline longest(Seconds(30));
  const auto has_heard = [&] {
    const std::lock_guard lock(mutex);
    return !about.empty();
  };
  while (!has_heard() && !longest.expired())
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  worker.finish();
  foreign.end();
  // 10 entries of 8 bytes and their number; rounded, they would be 11.
  CHECK_THAT(about, ContainsSubstring("codec sparse=0.0106 of 88 bytes"));
}

TEST_CASE("sites that never wait take each publication once, and agree") {
  const auto seed = drawn_seed();
  INFO("seed " << seed);
  const auto hub =
      std::make_shared<MemoryHub>(Weather{.lost = 0, .delay = Seconds(0.002), .seed = seed});
  std::vector<double> ends(3);
  std::vector<sites::SiteStats> stats(3);
  std::atomic<int> have_read = 0;
  run_sites(3, [&](int me) {
    sites::SiteOptions options = options_of(me, 3);
    options.staleness = 1;
    Still still(hub, options, 0);
    still.x[0] = me;
    const auto reads = [&] { return sites::stats_of(*still.site).reads; };
    bool has_read = false;
    const Deadline longest(Seconds(60));
    for (int t = 0; t < 40 || (have_read < 3 && !longest.expired()); ++t) {
      still.idle(steps_between);
      std::this_thread::sleep_for(std::chrono::milliseconds(20 + 5 * me));
      if (!has_read && t >= 39 && reads() > 10) {
        has_read = true;
        ++have_read;
      }
    }
    still.worker.finish();
    ends[static_cast<std::size_t>(me)] = still.x[0];
    stats[static_cast<std::size_t>(me)] = sites::stats_of(*still.site);
  });
  for (int i = 0; i < 3; ++i) {
    const auto& now = stats[static_cast<std::size_t>(i)];
    CHECK(now.exchanges >= 40);
    CHECK(now.reads > 10);
    CHECK(now.reads <= 2 * std::max({stats[0].exchanges, stats[1].exchanges, stats[2].exchanges}));
    CHECK(now.waited_s == 0);
    CHECK((ends[static_cast<std::size_t>(i)] >= 0 && ends[static_cast<std::size_t>(i)] <= 2));
  }
  CHECK(std::abs(ends[0] - ends[1]) < 0.2);
  CHECK(std::abs(ends[1] - ends[2]) < 0.2);
}

TEST_CASE(
    "a site that is lost holds the others for no longer than its silence, or less if it died") {
  const bool dies = GENERATE(false, true);
  CAPTURE(dies);
  const auto hub = std::make_shared<MemoryHub>();
  std::vector<sites::SiteStats> stats(3);
  std::latch others(2);
  run_sites(3, [&](int me) {
    sites::SiteOptions options = options_of(me, 3);
    if (!dies) options.silence = Seconds(6);
    Still still(hub, options, 1);
    still.idle(2 * steps_between);
    if (me == 1) {
      if (!dies) hub->cut("b");
      const Deadline longest(Seconds(60));
      while (!dies && !others.try_wait() && !longest.expired())
        std::this_thread::sleep_for(std::chrono::milliseconds(10));
      return still.site->abandon();
    }
    still.idle(8 * steps_between);
    others.count_down();
    still.worker.finish();
    stats[static_cast<std::size_t>(me)] = sites::stats_of(*still.site);
    expect(still.x[0] == 1, "still.x[0] == 1");
  });
  for (const int i : {0, 2}) {
    CHECK(stats[static_cast<std::size_t>(i)].exchanges == 10);
    CHECK(stats[static_cast<std::size_t>(i)].left_out <= 1);
    CHECK(stats[static_cast<std::size_t>(i)].waited_s < 18);  // patience is 30 s
  }
}

TEST_CASE("a site that resumes has its own weights if it is further than the others, else theirs") {
  const auto hub = std::make_shared<MemoryHub>();
  const auto run = [&](int me, const std::vector<TensorView>* saved, double value,
                       double expected) {
    Still still(hub, options_of(me, 1), value);
    still.x[0] = 5;  // as the checkpoint has it
    still.worker.restore(*saved);
    expect(still.x[0] == expected, "the weights that it begins with");
    still.idle(2 * steps_between);
    expect(still.x[0] == expected, "the weights after two exchanges");
    return still.worker.round();
  };
  std::vector<std::vector<std::byte>> bytes;
  std::vector<TensorView> saved;
  {
    Still before(hub, options_of(0, 1), 5);
    before.idle(4 * steps_between + 1);
    saved = before.worker.state();
    for (TensorView& view : saved) {
      const auto* data = static_cast<const std::byte*>(view.data);
      bytes.emplace_back(data, data + view.size_bytes());
    }
    for (std::size_t i = 0; i < saved.size(); ++i) saved[i].data = bytes[i].data();
  }
  hub->drop();  // its last words: on a busy machine, they would come when the next one listens
  CHECK(run(0, &saved, 1, 5) == 6 * steps_between + 1);
  // Another one is further now: 12 against 9 exchanges.
  std::atomic<bool> ahead = false, ended = false;
  run_sites(2, [&](int me) {
    if (me == 1) {
      Still other(hub, options_of(1, 1), 8);
      other.idle(12 * steps_between);
      ahead = true;
      while (!ended) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        other.idle(1);
      }
      expect(other.x[0] == 8, "other.x[0] == 8");
      return;
    }
    while (!ahead) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    run(0, &saved, 1, 8);
    ended = true;
  });
}

TEST_CASE("a site that resumes alone goes on with the memory of its outer rule") {
  const auto rule = GENERATE(
      algorithm::noloco({.period = steps_between}),
      algorithm::gasloc({.period = steps_between, .rate = 0.7, .acceleration = 0.4}),
      algorithm::diloco({.period = steps_between, .rate = 0.6, .momentum = 0.8, .delay = 1}));
  INFO(rule.traits().name);
  const auto hub = std::make_shared<MemoryHub>();
  sites::SiteOptions options = options_of(0, 1);
  options.rule = rule;
  options.topology = rule.traits().name == "noloco" ? schedule::random_matchings(3)
                                                    : TopologyRule(stencil::complete());
  const auto train = [](Still& still, int rounds) {
    for (int t = 0; t < rounds; ++t) still.worker.step([&] { still.x[0] += 1 / still.x[0]; });
  };
  const int before = 4 * steps_between + 1, after = 5 * steps_between;
  Still undisturbed(hub, options, 1);
  train(undisturbed, before + after);
  const double expected = undisturbed.x[0];
  undisturbed.worker.abandon();
  std::vector<std::vector<std::byte>> bytes;
  std::vector<TensorView> saved;
  double weights = 0;
  options.name = "b";
  {
    Still first(hub, options, 1);
    train(first, before);
    weights = first.x[0];
    saved = first.worker.state();
    for (TensorView& view : saved) {
      const auto* data = static_cast<const std::byte*>(view.data);
      bytes.emplace_back(data, data + view.size_bytes());
    }
    for (std::size_t i = 0; i < saved.size(); ++i) saved[i].data = bytes[i].data();
    first.worker.abandon();
  }
  options.name = "c";
  Still second(hub, options, 1);
  second.x[0] = weights;
  second.worker.restore(saved);
  train(second, after);
  CHECK(second.x[0] == expected);
}

TEST_CASE("a site that has fallen far behind while it was apart takes over the others' weights") {
  const auto hub = std::make_shared<MemoryHub>();
  const std::int64_t staleness = GENERATE(0, 1);
  INFO("staleness " << staleness);
  std::atomic<int> stage = 0;
  std::vector<sites::SiteStats> stats(2);
  std::vector<double> ends(2);
  run_sites(2, [&](int me) {
    sites::SiteOptions options = options_of(me, 2);
    options.silence = short_silence;
    options.staleness = staleness;
    Still still(hub, options, 1);
    const auto step = [&](const std::function<bool()>& is_over) {
      const auto until = Clock::now() + std::chrono::seconds(100);
      while (!is_over() && Clock::now() < until) {
        still.idle(1);
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
      }
    };
    const auto await = [&](int wanted) {
      const auto until = Clock::now() + std::chrono::seconds(100);
      while (stage < wanted && Clock::now() < until)
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
    };
    step([&] { return sites::stats_of(*still.site).reads > 0; });
    ++stage;
    step([&] { return stage >= 2; });
    if (me == 0) {
      hub->cut("b");
      std::this_thread::sleep_for(std::chrono::milliseconds(1200));
      still.x[0] = 9;
      still.idle(40 * steps_between);
      stage = 3;
      step([&] { return stage == 4; });
    } else {
      await(3);
      still.idle(steps_between);  // alone
      hub->mend("b");
      std::this_thread::sleep_for(std::chrono::milliseconds(600));
      still.x[0] = -9;
      const auto reads = sites::stats_of(*still.site).reads;
      step([&] { return sites::stats_of(*still.site).reads > reads + 3; });
      expect(still.x[0] == 9, fmt::format("its weights are those of the other: {}", still.x[0]));
      expect(still.worker.round() < 2000, "its own rounds go on");
      stage = 4;
    }
    still.worker.finish();
    stats[static_cast<std::size_t>(me)] = sites::stats_of(*still.site);
    ends[static_cast<std::size_t>(me)] = still.x[0];
  });
  CHECK(ends == std::vector<double>{9, 9});
  CHECK(stats[0].waited_s < 15);
}

TEST_CASE("a slow site is read again after it was not heard of for a while") {
  const auto hub = std::make_shared<MemoryHub>();
  std::atomic<int> stage = 0;
  run_sites(2, [&](int me) {
    sites::SiteOptions options = options_of(me, 2);
    options.silence = short_silence;
    options.staleness = 1;
    Still still(hub, options, 1);
    const auto reads = [&] { return sites::stats_of(*still.site).reads; };
    const auto train = [&](const std::function<bool()>& is_over) {
      const auto until = Clock::now() + std::chrono::seconds(100);
      while (!is_over() && Clock::now() < until) {
        still.idle(1);
        std::this_thread::sleep_for(std::chrono::milliseconds(me == 0 ? 1 : 30));
      }
      return is_over();
    };
    expect(train([&] { return reads() > 1; }), "both are read");
    ++stage;
    if (me == 0) {
      train([&] { return stage == 2; });
      train([&, from = still.worker.round()] { return still.worker.round() > from + 300; });
      hub->cut("b");
      train([until = Clock::now() + std::chrono::milliseconds(1300)] {
        return Clock::now() > until;
      });
      hub->mend("b");
      const auto before = reads();
      expect(train([&] { return reads() > before + 5; }), "the slow one is read");
      stage = 3;
    } else {
      expect(train([&] { return stage == 3; }), "the other one ends");
    }
    still.worker.finish();
  });
}

TEST_CASE("a site that resumes far ahead of one that begins with it gives it its weights") {
  const auto hub = std::make_shared<MemoryHub>();
  std::vector<std::vector<std::byte>> bytes;
  std::vector<TensorView> saved;
  {
    Still before(hub, options_of(2, 1), 5);
    before.idle(60 * steps_between);
    saved = before.worker.state();
    for (TensorView& view : saved) {
      const auto* data = static_cast<const std::byte*>(view.data);
      bytes.emplace_back(data, data + view.size_bytes());
    }
    for (std::size_t i = 0; i < saved.size(); ++i) saved[i].data = bytes[i].data();
  }
  hub->drop();  // its last words: it would count as one of the two sites
  std::atomic<bool> done = false;
  run_sites(2, [&](int me) {
    Still still(hub, options_of(me, 2), 1);
    if (me == 1) {
      still.x[0] = 5;  // as the checkpoint has it
      still.worker.restore(saved);
    }
    const auto until = Clock::now() + std::chrono::seconds(100);
    while (!done && Clock::now() < until) {
      still.idle(1);
      if (me == 0 && still.x[0] == 5) done = true;
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    expect(still.x[0] == 5, "its weights are those of the checkpoint");
    still.worker.finish();
  });
}

TEST_CASE("a site whose connection is lost goes on alone, and takes part again afterwards") {
  const auto hub = std::make_shared<MemoryHub>();
  std::vector<sites::SiteStats> alone(2), stats(2);
  std::vector<double> apart(2), ends(2);
  std::atomic<int> there = 0, back = 0;
  std::atomic<bool> is_cut = false;
  run_sites(2, [&](int me) {
    const auto place = static_cast<std::size_t>(me);
    sites::SiteOptions options = options_of(me, 2);
    options.silence = short_silence;
    options.staleness = 1;
    Still still(hub, options, 0);
    const auto train = [&](double seconds) {
      const auto until =
          Clock::now() + std::chrono::duration_cast<Clock::duration>(Seconds(seconds));
      while (Clock::now() < until) {
        still.idle(1);
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
    };
    train(0.5);
    ++there;
    while (there < 2) still.idle(1);
    if (me == 0) {
      hub->cut("b");
      is_cut = true;
    }
    while (!is_cut) still.idle(1);
    train(0.3);
    still.x[0] = me;
    train(1.5);
    alone[place] = sites::stats_of(*still.site);
    apart[place] = still.x[0];
    ++there;
    while (there < 4) still.idle(1);
    if (me == 0) hub->mend("b");
    bool is_back = false;
    for (const Deadline longest(Seconds(60)); back < 2 && !longest.expired();) {
      train(0.02);
      if (!is_back && sites::stats_of(*still.site).reads > alone[place].reads + 60) {
        is_back = true;
        ++back;
      }
    }
    still.worker.finish();
    stats[place] = sites::stats_of(*still.site);
    ends[place] = still.x[0];
  });
  CHECK((apart[0] == 0 && apart[1] == 1));
  for (const std::size_t i : {0U, 1U}) CHECK(stats[i].reads > alone[i].reads + 5);
  CHECK(std::abs(ends[0] - ends[1]) < 1e-3);
}

TEST_CASE(
    "a process with the name of a silent site takes its place, and that one ends when it wakes") {
  const auto hub = std::make_shared<MemoryHub>();
  sites::SiteOptions options = options_of(0, 1);
  options.silence = short_silence;
  Still first(hub, options, 1);
  first.idle(1);
  hub->cut("a");
  std::string said;
  {
    // The hub knows sites by their names: the second process has a line of its own.
    const auto second = std::make_shared<sites::JobSite>(
        options, [&](const LogSink&) { return std::make_unique<MemoryBus>(hub, "a, again"); });
    std::vector<double> x{2};
    std::this_thread::sleep_for(std::chrono::milliseconds(1100));
    Worker worker = site_worker({view_of("x", std::span(x))}, second);
    worker.step([] {});
    hub->mend("a");
    const auto until = Clock::now() + std::chrono::seconds(60);
    while (said.empty() && Clock::now() < until) {
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
      said = error_of([&] { first.idle(1); });
    }
    worker.step([] {});
    CHECK(x[0] == 2);
    worker.finish();
  }
  CHECK_THAT(said, ContainsSubstring("another process with this name takes part"));
}

TEST_CASE(
    "a site joins those that train, with their weights and rounds, and the outer rule's memory") {
  const auto hub = std::make_shared<MemoryHub>();
  std::atomic<bool> trained = false, joined = false;
  const auto options = [](int me) {
    sites::SiteOptions options = options_of(me, 1);
    options.rule = algorithm::noloco({.period = steps_between});
    options.topology = schedule::random_matchings(3);
    options.staleness = 1;
    return options;
  };
  run_sites(2, [&](int me) {
    if (me == 0) {
      Still still(hub, options(0), 1);
      for (int t = 0; t < 5; ++t) {  // outer steps with momentum
        still.x[0] += 1;
        still.idle(steps_between);
      }
      trained = true;
      while (!joined) {
        std::this_thread::sleep_for(std::chrono::milliseconds(2));
        still.idle(steps_between);
      }
      still.worker.finish();
      return;
    }
    while (!trained) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    Still still(hub, options(1), -100);
    expect(still.x[0] > 0, "still.x[0] > 0");
    expect(still.worker.round() >= 5 * steps_between, "still.worker.round() >= 5 * steps_between");
    expect(still.worker.stats().joined_at == still.worker.round(),
           "still.worker.stats().joined_at == still.worker.round()");
    joined = true;
    still.idle(steps_between);
    expect(still.x[0] > 0, "still.x[0] > 0");
    still.worker.finish();
  });
}

TEST_CASE("names, models and options that do not fit are refused, and disturb nobody") {
  const auto hub = std::make_shared<MemoryHub>();
  std::atomic<bool> ended = false;
  std::atomic<bool> begun = false;
  run_sites(2, [&](int me) {
    if (me == 0) {
      Still still(hub, options_of(0, 1), 3);
      begun = true;
      while (!ended) {
        still.idle(1);
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
      expect(still.x[0] == 3, "still.x[0] == 3");
      still.worker.finish();
      expect(sites::stats_of(*still.site).left_out == 0,
             "sites::stats_of(*still.site).left_out == 0");
      return;
    }
    while (!begun) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    expect_said(error_of([&] { Still(hub, options_of(0, 1), 1); }),
                "site a: a site of this name takes part");
    sites::SiteOptions other = options_of(1, 1);
    other.every = 4;
    expect_said(error_of([&] { Still(hub, other, 1); }), "every 4");
    std::vector<float> small(3);
    expect_said(error_of([&] {
                  site_worker({view_of("x", std::span(small))}, site_on(hub, options_of(1, 1)));
                }),
                "has another model");
    ended = true;
  });
}

TEST_CASE("of sites that begin together, one with other options ends with one line") {
  const auto hub = std::make_shared<MemoryHub>();
  MemoryBus foreign(hub, "m");
  std::atomic<bool> appeared = false, ended = false;
  foreign.listen("run.beat.c", [&](std::string_view, std::string_view) { appeared = true; });
  run_sites(3, [&](int me) {
    sites::SiteOptions options = options_of(me, me == 2 ? 3 : 2);
    if (me < 2) {
      // Each hears of the third one before it hears of the other.
      wait_until([&] { return appeared.load(); });
      Still still(hub, options, 3);
      while (!ended) {
        still.idle(1);
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
      }
      still.worker.finish();
      return;
    }
    options.every = 5;
    expect_said(error_of([&] { Still(hub, options, 1); }), "has another model or other options");
    ended = true;
  });
  foreign.end();
}

TEST_CASE("a site that waits for another one stays when one with other options comes") {
  const auto hub = std::make_shared<MemoryHub>();
  MemoryBus foreign(hub, "m");
  std::atomic<bool> appeared = false, refused = false;
  foreign.listen("run.beat.b", [&](std::string_view, std::string_view) { appeared = true; });
  run_sites(3, [&](int me) {
    sites::SiteOptions options = options_of(me, 2);
    if (me == 0) {  // its name comes first, and it comes last
      wait_until([&] { return appeared.load(); });
      options.every = 5;
      expect_said(error_of([&] { Still(hub, options, 1); }), "has another model or other options");
      refused = true;
      return;
    }
    if (me == 2) wait_until([&] { return refused.load(); });
    Still still(hub, options, me);
    still.idle(4 * steps_between);
    still.worker.finish();
    expect(sites::stats_of(*still.site).left_out == 0, "nothing is left out");
  });
  foreign.end();
}

TEST_CASE("a site that finds one with other options alone ends, also if that one does not train") {
  const auto hub = std::make_shared<MemoryHub>();
  sites::Node other(std::make_unique<MemoryBus>(hub, "b"), {.site = "b", .about = "other"});
  other.appear();
  const bool trains = GENERATE(false, true);
  if (trains) other.begin(0, 0);
  CHECK_THAT(error_of([&] { Still(hub, options_of(0, 1), 1); }),
             ContainsSubstring("has another model or other options: other;"));
}

TEST_CASE("foreign messages change nothing: false names, a second process, huge requests") {
  const auto hub = std::make_shared<MemoryHub>();
  MemoryBus foreign(hub, "m");
  std::atomic<int> chunks = 0;
  foreign.listen("run.data.a.m", [&](std::string_view, std::string_view) { ++chunks; });
  std::atomic<std::uint64_t> incarnation = 0;
  foreign.listen("run.new.a", [&](std::string_view, std::string_view text) {
    if (const auto status = sites::decode_status(text)) incarnation = status->incarnation;
  });
  run_sites(2, [&](int me) {
    std::vector<double> x(400'000, me);  // 49 chunks
    const auto site = site_on(hub, options_of(me, 2));
    Worker worker = site_worker({view_of("x", std::span(x))}, site);
    for (int t = 0; t < 5 * steps_between; ++t) worker.step([] {});
    if (me == 0) {
      wait_until([&] { return incarnation != 0; });
      sites::Status status;
      status.run = "run";
      status.site = "a";
      status.incarnation = ~0ULL;  // as if another process had this name
      foreign.send("run.beat.m", sites::encode(status));
      status.site = "b";
      foreign.send("run.new.m", sites::encode(status));
      foreign.send("run.get.a.m", sites::encode(sites::ChunkRequest{
                                      "m", incarnation, sites::Content::message, 4, 0, 1'000'000}));
      foreign.send("run.get.a.m", "{}\n");
      foreign.send("run.get.a.m", sites::encode(sites::ChunkRequest{
                                      "m", incarnation + 1, sites::Content::message, 4, 0, 1}));
      wait_until([&] { return chunks >= 16; });
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      expect(chunks == 16, "chunks == 16");
    }
    for (int t = 0; t < 5 * steps_between; ++t) worker.step([] {});
    worker.finish();
    expect(sites::stats_of(*site).left_out == 0, "sites::stats_of(*site).left_out == 0");
    expect(x[0] == 0, "x[0] == 0");  // b began with the weights of a
  });
  foreign.end();
}

TEST_CASE(
    "a site far ahead that does not give its weights keeps the others apart only for a while") {
  const auto hub = std::make_shared<MemoryHub>();
  MemoryBus foreign(hub, "m");
  std::atomic<bool> ended = false;
  std::jthread silent;  // its training hangs; its signs of life go on
  std::mutex mutex;
  foreign.listen("run.new.a", [&](std::string_view, std::string_view text) {
    const auto heard = sites::decode_status(text);
    const std::lock_guard lock(mutex);
    if (!heard || silent.joinable()) return;
    sites::Status status;
    status.run = "run";
    status.site = "m";
    status.incarnation = 5;
    status.about = heard->about;
    status.begun = true;
    status.first = status.next = 1'000'000;
    status.round = status.next * steps_between;
    silent = std::jthread([&, status](const std::stop_token& stop) {
      while (!stop.stop_requested()) {
        foreign.send("run.beat.m", sites::encode(status));
        std::this_thread::sleep_for(std::chrono::milliseconds(100));
      }
    });
  });
  run_sites(2, [&](int me) {
    sites::SiteOptions options = options_of(me, 2);
    options.patience = Seconds(1);
    Still still(hub, options, 1);
    const auto until = Clock::now() + std::chrono::seconds(100);
    while (!ended && Clock::now() < until) {
      still.idle(steps_between);
      std::this_thread::sleep_for(std::chrono::milliseconds(50));
      if (me == 0 && sites::stats_of(*still.site).reads > 5 && still.worker.round() > 200)
        ended = true;
    }
    expect(ended, "they read each other");
    still.worker.finish();
  });
  silent = {};
  foreign.end();
}

TEST_CASE("a site that is alive but stands still is waited for once") {
  const auto hub = std::make_shared<MemoryHub>();
  std::atomic<bool> ended = false;
  run_sites(2, [&](int me) {
    sites::SiteOptions options = options_of(me, 2);
    options.patience = Seconds(2);
    Still still(hub, options, 1);
    still.idle(2 * steps_between);
    if (me == 1) {
      while (!ended) std::this_thread::sleep_for(std::chrono::milliseconds(10));
    } else {
      still.idle(10 * steps_between);
      expect(sites::stats_of(*still.site).exchanges == 12,
             "sites::stats_of(*still.site).exchanges == 12");
      expect(sites::stats_of(*still.site).waited_s < 15,
             "sites::stats_of(*still.site).waited_s < 15");
      ended = true;
    }
    still.worker.finish();
  });
}

TEST_CASE(
    "weights that are not finite end their site, and hold nobody for longer than its silence") {
  const auto hub = std::make_shared<MemoryHub>();
  run_sites(2, [&](int me) {
    sites::SiteOptions options = options_of(me, 2);
    options.silence = short_silence;
    Still still(hub, options, 1);
    still.idle(steps_between);
    if (me == 1) {
      still.x[0] = NAN;
      expect_said(error_of([&] { still.idle(steps_between); }), "not finite");
      still.worker.abandon();
      return;
    }
    still.idle(4 * steps_between);
    expect(still.x[0] == 1, "still.x[0] == 1");
    expect(sites::stats_of(*still.site).waited_s < 15,
           "sites::stats_of(*still.site).waited_s < 15");
    still.worker.finish();
  });
}

TEST_CASE("a second newcomer gets the weights of its own time") {
  const auto hub = std::make_shared<MemoryHub>();
  std::atomic<int> joined = 0;
  run_sites(3, [&](int me) {
    sites::SiteOptions options = options_of(me, 1);
    options.staleness = 1;
    if (me == 0) {
      Still still(hub, options, 0);
      while (joined < 2) {
        std::this_thread::sleep_for(std::chrono::milliseconds(5));
        still.worker.step([&] { still.x[0] = static_cast<double>(still.worker.round()); });
      }
      still.worker.finish();
      return;
    }
    while (joined < me - 1) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    if (me == 2) std::this_thread::sleep_for(std::chrono::milliseconds(1500));
    Still still(hub, options, -1);
    const double rounds = static_cast<double>(still.worker.round());
    expect(still.x[0] > rounds - 20 * steps_between, "still.x[0] > rounds - 20 * steps_between");
    still.worker.finish();
    ++joined;
  });
}

TEST_CASE("options out of range are refused before anything is sent") {
  const auto with = [](const std::function<void(sites::SiteOptions&)>& change) {
    sites::SiteOptions options;
    options.name = "a";
    options.url = "nats://127.0.0.1:1/run";
    change(options);
    return error_of([&] { sites::join(options); });
  };
  CHECK(with([](auto&) {}).empty());
  for (const char* name : {"", "a b", "a.b", "*", "a>", "\xc3\xa4", "a/b"})
    CHECK_THAT(with([&](auto& o) { o.name = name; }), ContainsSubstring("is no name"));
  CHECK_THAT(with([](auto& o) { o.name = std::string(41, 'x'); }), ContainsSubstring("is no name"));
  CHECK_THAT(with([](auto& o) { o.every = 0; }), ContainsSubstring("every 0"));
  for (const double samples : {std::nan(""), 0.0, -1.0, 2e12, 1 / 0.0})
    CHECK_THAT(with([&](auto& o) { o.samples = samples; }), ContainsSubstring("samples"));
  CHECK_THAT(with([](auto& o) { o.expect = 0; }), ContainsSubstring("expect 0"));
  CHECK_THAT(with([](auto& o) { o.silence = Seconds(0.1); }), ContainsSubstring("silence"));
  CHECK_THAT(with([](auto& o) { o.staleness = -1; }), ContainsSubstring("staleness -1"));
  CHECK_THAT(with([](auto& o) { o.rule = algorithm::gasloc({.period = 90, .delay = 50}); }),
             ContainsSubstring("must be below every"));
  CHECK_THAT(with([](auto& o) { o.topology = stencil::hypercube(); }),
             ContainsSubstring("sites come and go"));
  CHECK_THAT(with([](auto& o) {
               o.rule = algorithm::diloco();
               o.topology = stencil::complete();
               o.staleness = 1;
             }),
             ContainsSubstring("needs staleness 0"));
}

TEST_CASE("rules that cannot exchange between sites are refused") {
  const auto hub = std::make_shared<MemoryHub>();
  for (const auto& rule :
       {algorithm::awc(), algorithm::push_sum(), algorithm::choco(),
        algorithm::gasloc({.changes = true}), algorithm::diloco({.fragments = 2})}) {
    sites::SiteOptions options = options_of(0, 1);
    options.rule = rule;
    options.topology = stencil::complete();
    CHECK_THAT(error_of([&] { Still(hub, options, 1); }), ContainsSubstring("sites"));
  }
}

TEST_CASE("what ranks of a site cannot do together is refused on all of them") {
  const auto hub = std::make_shared<MemoryHub>();
  const auto with = [&](const std::function<void(WorkerOptions&, int)>& change) {
    return error_of([&] {
      local::run(2, [&](const Group& group) {
        std::vector<double> x{1};
        WorkerOptions options;
        options.site = site_on(hub, options_of(0, 1));
        change(options, group.rank());
        Worker worker(group, stencil::complete(), {view_of("x", std::span(x))}, options);
      });
    });
  };
  CHECK_THAT(with([](auto& o, int) { o.staleness = 1; }), ContainsSubstring("take staleness 0"));
  CHECK_THAT(with([](auto& o, int) { o.algorithm = algorithm::decentlam({}); }),
             ContainsSubstring("algorithm decentlam in a site: it would take"));
  const std::string alone = error_of([&] {
    local::run(1, [&](const Group& group) {
      std::vector<double> x{1};
      WorkerOptions options;
      options.site = site_on(hub, options_of(0, 1));
      options.algorithm = algorithm::averaged_momentum({});
      Worker worker(group, stencil::complete(), {view_of("x", std::span(x))}, options);
    });
  });
  CHECK_THAT(alone, ContainsSubstring("algorithm averaged_momentum in a site: it would take"));
  const std::string differ = with([](auto& o, int rank) {
    if (rank == 1) o.site = nullptr;
  });
  CHECK_THAT(differ, ContainsSubstring("site a, every 3"));
}
