// A site among others that sends what is not so: weights that are no numbers, and nonsense of its
// progress and its samples.
#include <fast/algorithm/rules.hpp>
#include <fast/topology/graphs.hpp>
#include <fast/topology/load.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <functional>
#include <limits>
#include <map>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "running_sites.hpp"
#include "sites/outer_step.hpp"
#include "sites/wire.hpp"
#include "support/catch.hpp"
#include "support/golden.hpp"

namespace fast::testing {
namespace {

using sites::Content;

/// Site "m". Its subclass says what it says when others have said something, and gives what it has
/// announced. Models have one number.
class Impostor {
 public:
  explicit Impostor(std::shared_ptr<MemoryHub> hub) : bus_(std::move(hub), "m") {}
  virtual ~Impostor() = default;

  void begin() {
    const auto hear = [this](std::string_view, std::string_view text) {
      const auto heard = sites::decode_status(text);
      if (!heard || heard->site == "m") return;
      const std::lock_guard lock(mutex_);
      others_[heard->site] = *heard;
      answer(*heard);
    };
    bus_.listen("run.new.*", hear);
    bus_.listen("run.beat.*", hear);
    bus_.listen("run.get.m.*", [this](std::string_view, std::string_view text) {
      const auto request = sites::decode_request(text);
      const std::lock_guard lock(mutex_);
      if (request) give(*request);
    });
  }
  void end() { bus_.end(); }

  std::int64_t next_of(const std::string& site) {
    const std::lock_guard lock(mutex_);
    return others_[site].next;
  }

 protected:
  /// With the lock held.
  virtual void answer(const sites::Status& heard) = 0;

  /// As an honest site would say it that makes exchange `next`.
  sites::Status status(std::int64_t next) const {
    sites::Status status;
    status.run = "run";
    status.site = "m";
    status.incarnation = 5;
    status.about = others_.begin()->second.about;
    status.next = next;
    status.round = next * steps_between;
    return status;
  }
  sites::Publication hold(Content content, std::int64_t number, std::vector<std::byte> bytes) {
    sites::Publication what;
    what.content = content;
    what.number = number;
    what.round = number * steps_between;
    what.bytes = bytes.size();
    what.sha256 = sites::hash_of_chunks(sites::chunk_hashes(bytes));
    held_[{content, number}] = std::move(bytes);
    return what;
  }
  sites::Publication hold(std::int64_t number, double value) {
    const auto bytes = std::as_bytes(std::span(&value, 1));
    return hold(Content::message, number, {bytes.begin(), bytes.end()});
  }
  void say(std::string text) { bus_.send("run.new.m", std::move(text)); }
  void read(const sites::Status& from, const sites::Publication& what) {
    bus_.send("run.get." + from.site + ".m",
              sites::encode(sites::ChunkRequest{"m", from.incarnation, what.content, what.number, 0,
                                                what.chunks()}));
  }
  const std::map<std::string, sites::Status>& others() const { return others_; }
  bool have_begun(std::ptrdiff_t count) const {
    return std::ranges::count_if(others_, [](const auto& one) { return one.second.begun; }) >=
           count;
  }

 private:
  void give(const sites::ChunkRequest& request) {
    const auto found = held_.find({request.content, request.number});
    if (found == held_.end()) return;
    const std::span<const std::byte> all = found->second;
    bus_.send("run.data.m." + request.reader,
              sites::encode(sites::Chunk{"m", request.incarnation, request.content, request.number,
                                         0, false, sites::sha256_of(all), all}));
  }

  std::mutex mutex_;
  MemoryBus bus_;
  std::map<std::string, sites::Status> others_;
  std::map<std::pair<Content, std::int64_t>, std::vector<std::byte>> held_;
};

/// Takes part in exchanges. From one on, its weights are no number.
class Broken final : public Impostor {
 public:
  static constexpr int from = 4;
  static constexpr double value = 5;
  using Impostor::Impostor;

 private:
  void answer(const sites::Status& heard) override {
    next_ = std::max(next_, heard.next);
    sites::Status now = status(next_);
    now.begun = have_begun(2);
    for (const std::int64_t number : {next_ - 1, next_})
      if (number >= 0) now.newest.push_back(hold(number, number < from ? value : NAN));
    const bool is_news = std::exchange(said_, std::pair(now.begun, next_)) != said_;
    if (is_news || heard.site == "a") say(sites::encode(now));
  }
  std::int64_t next_ = 0;
  std::pair<bool, std::int64_t> said_{false, -1};
};

TEST_CASE("diloco without the site that is left out is one job of the others") {
  const auto hub = std::make_shared<MemoryHub>();
  const double goals[] = {-1, 2}, rate = 0.1, outer_rate = 0.7, momentum = 0.9;
  const int exchanges = 9;
  Broken broken(hub);
  broken.begin();
  double ends[2];
  run_sites(2, [&](int me) {
    sites::SiteOptions options = options_of(me, 3);
    options.rule = algorithm::diloco({.period = steps_between});
    options.topology = stencil::complete();
    std::vector<double> x{1};
    Worker worker = site_worker({view_of("x", std::span(x))}, site_on(hub, options));
    for (int t = 0; t < exchanges * steps_between; ++t)
      worker.step([&] { x[0] -= rate * (x[0] - goals[me]); });
    ends[me] = x[0];
    worker.finish();
  });
  broken.end();
  double phi = 1, m = 0;  // algorithm 1 of the paper, with Nesterov's momentum
  for (int k = 0; k < exchanges; ++k) {
    double sum = k < Broken::from ? Broken::value : 0;
    for (const double goal : goals) sum += goal + (phi - goal) * std::pow(1 - rate, steps_between);
    const double change = phi - sum / (k < Broken::from ? 3 : 2);
    m = momentum * m + change;
    phi -= outer_rate * (change + momentum * m);
  }
  for (const double end : ends) CHECK(end == Approx(phi).epsilon(1e-12));
}

/// Reads what a site holds, again and again, and says that it needs it.
class EndlessReader final : public Impostor {
 public:
  static constexpr int most = 150;  ///< reads of one that ends
  std::atomic<int> reads = 0;
  using Impostor::Impostor;

 private:
  void answer(const sites::Status& heard) override {
    if (!heard.begun || reads >= most) return;
    sites::Status now = status(std::max<std::int64_t>(0, heard.next - 1));
    now.begun = true;
    say(sites::encode(now));
    for (const sites::Publication& what : heard.newest) read(heard, what);
    reads += heard.leaving ? 1 : 0;
  }
};

TEST_CASE("a reader that never ends holds a site that ends for no longer than its patience") {
  const auto hub = std::make_shared<MemoryHub>();
  EndlessReader reader(hub);
  reader.begin();
  sites::SiteOptions options = options_of(0, 1);
  options.patience = Seconds(0.5);
  std::vector<double> x{1};
  const auto site = site_on(hub, options);
  Worker worker = site_worker({view_of("x", std::span(x))}, site);
  const Deadline longest(Seconds(60));
  while (sites::stats_of(*site).bytes_sent == 0 && !longest.expired()) {
    worker.step([] {});
    std::this_thread::sleep_for(std::chrono::milliseconds(5));  // it reads what is still held
  }
  worker.finish();
  reader.end();
  CHECK(sites::stats_of(*site).bytes_sent > 0);
  CHECK(reader.reads > 0);
  CHECK(reader.reads < EndlessReader::most);
}

/// Trains another model, as it says.
class Stranger final : public Impostor {
  using Impostor::Impostor;
  void answer(const sites::Status& heard) override {
    if (!have_begun(2)) return;
    sites::Status now = status(heard.next);
    now.about = "another model";
    now.begun = true;
    say(sites::encode(now));
  }
};

TEST_CASE("one site with another model does not keep a newcomer from several that have its own") {
  const auto hub = std::make_shared<MemoryHub>();
  Stranger stranger(hub);
  stranger.begin();
  std::atomic<int> begun = 0, said = 0;
  std::atomic<bool> joined = false;
  run_sites(3, [&](int me) {
    while (me == 2 && begun < 2) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    sites::SiteOptions options = options_of(me, 2);
    std::vector<double> x{1.0 + me};
    WorkerOptions inside = none_inside();
    inside.log = [&](LogLevel level, std::string_view text) {
      const bool tells =
          level == LogLevel::warning && text.find("site m has another model") != text.npos;
      said += me == 2 && tells ? 1 : 0;
    };
    const auto site = site_on(hub, options);
    Worker worker = site_worker({view_of("x", std::span(x))}, site, std::move(inside));
    for (int t = 0; t < 2 * steps_between; ++t) worker.step([] {});
    ++begun;
    if (me == 2) {
      for (int t = 0; t < 5 * steps_between; ++t) worker.step([] {});
      expect(sites::stats_of(*site).reads > 0, "it reads the others");
      joined = true;
    }
    const Deadline longest(Seconds(60));
    while (!joined && !longest.expired()) {
      worker.step([] {});
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    expect(joined, "the third one has joined");
    worker.finish();
  });
  stranger.end();
  CHECK(said == 1);
}

/// Says nonsense, drawn from a seed. Its messages are 2 to 3 or no number. It says that it has
/// states, none of which a site could have made.
class Liar final : public Impostor {
 public:
  Liar(std::shared_ptr<MemoryHub> hub, std::uint64_t seed, std::vector<std::byte> state,
       std::size_t weights)
      : Impostor(std::move(hub)), random_(seed), state_(std::move(state)), weights_(weights) {}
  int said = 0;

 private:
  static constexpr std::int64_t many = std::int64_t{1} << 53;

  template <class T>
  T one_of(std::initializer_list<T> values) {
    return values.begin()[random_() % values.size()];
  }
  double unit() { return std::uniform_real_distribution<double>(0, 1)(random_); }
  std::int64_t number_near(std::int64_t next) {
    const auto far = static_cast<std::int64_t>(unit() * 1e15);
    return one_of<std::int64_t>({next, next, next, next + 1, next - 1, next + 9, next + 1000, 0,
                                 many / 3, many / 2, many, many + 1, -1, far});
  }

  sites::Publication message(std::int64_t next) {
    sites::Publication what =
        hold(number_near(next), one_of({2.0, 3.0, 2 + unit(), static_cast<double>(NAN)}));
    what.samples = one_of({1e-300, 1e-6, 1.0, 1e6, 1e12, 1e13, 0.0, -1.0, 1e308, unit()});
    what.round = one_of({what.round, number_near(0), number_near(next)});
    what.base = one_of<std::int64_t>({-1, -1, -1, what.number - 1, what.number, -7});
    if (unit() < 0.1) what.bytes = static_cast<std::uint64_t>(number_near(8));
    return what;
  }

  sites::Publication state(std::int64_t number) {
    std::vector<std::byte> bytes = state_;
    const double none = one_of({static_cast<double>(NAN), 1 / 0.0, -1 / 0.0});
    const bool is_bad = random_() % 2 == 0;
    const std::size_t at = one_of<std::size_t>({0, weights_ + 8});  // weights; φ
    if (is_bad) std::memcpy(bytes.data() + at, &none, sizeof none);
    sites::Publication what = hold(Content::state, number, std::move(bytes));
    if (!is_bad && unit() < 0.5)
      what.sha256[0] = what.sha256[0] == '0' ? '1' : '0';
    else if (!is_bad)
      what.round += 1 + static_cast<std::int64_t>(unit() * 1e9);
    return what;
  }

  void answer(const sites::Status& heard) override {
    if (!have_begun(2) || ++said % 3 != 0) return;
    sites::Status now = status(number_near(heard.next));
    if (unit() < 0.3) now.round = number_near(heard.round);
    now.begun = unit() < 0.9;
    now.leaving = unit() < 0.05;
    now.first = one_of<std::int64_t>({0, 0, 0, heard.next, now.next, number_near(heard.next)});
    incarnation_ += unit() < 0.05 ? 1 : 0;
    now.incarnation = incarnation_ - (unit() < 0.05 ? 1 : 0);
    now.newest = {message(heard.next), message(heard.next), state(now.next)};
    for (const auto& [site, other] : others()) now.known.emplace_back(site, ~0ULL);
    std::string text = sites::encode(now);
    if (unit() < 0.1) {  // what numbers in JSON can be besides
      const char* const key = one_of({"\"round\":", "\"next\":", "\"samples\":", "\"number\":"});
      const std::size_t from = text.find(key) + std::strlen(key);
      text.replace(from, text.find_first_of(",}", from) - from,
                   one_of({"1e999", "-1e999", "null", "NaN", "\"7\"", "18446744073709551615", "2.5",
                           "[]", "-9223372036854775808"}));
    }
    say(text);
  }

  std::mt19937_64 random_;
  std::uint64_t incarnation_ = 5;
  std::vector<std::byte> state_;
  std::size_t weights_;  ///< bytes
};

TEST_CASE("a site that lies about its progress neither gives others its weights nor leads them") {
  const auto seed = std::random_device{}();
  INFO("seed " << seed);
  const auto hub = std::make_shared<MemoryHub>();
  std::vector<double> example{2.5};
  const ParameterLayout layout({view_of("x", std::span(example))});
  const auto options = [&](int me) {
    sites::SiteOptions options = options_of(me, 2);
    options.rule = algorithm::gasloc({.period = steps_between, .acceleration = 0});
    options.topology = stencil::complete();
    options.patience = Seconds(0.4);
    return options;
  };
  sites::OuterStep outer(layout, options(0).rule);
  outer.start(layout);
  const auto state = outer.state();
  const auto bytes = state->as<std::byte>();
  Liar liar(hub, seed, {bytes.begin(), bytes.end()}, layout.size_bytes());
  liar.begin();
  const int exchanges = 60;
  std::atomic<int> made = 0, ended = 0;
  const auto check = [&](double x, std::int64_t reads, std::int64_t least) {
    expect(x >= 0 && x <= 3, fmt::format("{} is between the weights of all", x));
    expect(reads >= least, fmt::format("{} publications were read", reads));
  };
  run_sites(3, [&](int me) {
    while (me == 2 && made < 2) std::this_thread::sleep_for(std::chrono::milliseconds(5));
    std::vector<double> x{0};
    const auto site = site_on(hub, options(me));
    Worker worker = site_worker({view_of("x", std::span(x))}, site);
    const std::int64_t most = me == 2 ? 1'000'000 : 0;
    expect(worker.round() <= most, fmt::format("it begins in round {}", worker.round()));
    if (me == 1) x[0] = 1;
    const auto step = [&] {
      worker.step([] {});
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    };
    const auto reads = [&] { return sites::stats_of(*site).reads; };
    const Deadline reading(Seconds(60));
    std::int64_t steps = 0;
    for (; steps < exchanges * steps_between || (reads() < exchanges / 4 && !reading.expired());
         ++steps)
      step();
    check(x[0], reads(), exchanges / 4);
    if (me < 2) {
      const std::int64_t next = liar.next_of(site_name(me)), most_made = steps / steps_between;
      expect(next <= most_made, fmt::format("it has made exchange {} of {}", next, most_made));
    }
    ++made;
    const Deadline longest(Seconds(100));
    while (made < 3 && !longest.expired()) step();
    expect(made == 3, "a third one has joined");
    check(x[0], 0, 0);
    ++ended;
    worker.finish();
  });
  CHECK(ended == 3);
  CHECK(liar.said > 100);
  liar.end();
}

}  // namespace
}  // namespace fast::testing
