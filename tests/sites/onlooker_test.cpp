// An onlooker and sites that train, on a bus inside this process.
#include "sites/onlooker.hpp"

#include <algorithm>
#include <atomic>
#include <map>
#include <optional>

#include "running_sites.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::testing;
using sites::Onlooker;

namespace {

constexpr std::size_t elements = 20'000;  // three chunks

/// A site that trains on a thread until it is told to end.
class TrainingSite {
 public:
  TrainingSite(std::shared_ptr<MemoryHub> hub, int place, int count)
      : options_(options_of(place, count)) {
    options_.staleness = 1;
    thread_ = std::jthread([this, hub = std::move(hub)] {
      try {
        train(hub);
      } catch (const std::exception& error) {
        said_ = error.what();
      }
    });
  }
  /// It leaves, or dies.
  void end(bool dies = false) {
    dies_ = dies;
    ends_ = true;
  }
  /// Waits for its end. What it has said when it failed.
  std::string join() {
    if (thread_.joinable()) thread_.join();
    return said_;
  }
  /// After its end: the hash of its weights after the exchange at the end of that round.
  std::string hash_at(std::int64_t round) const {
    const auto found = hashes_.find(round);
    return found == hashes_.end() ? "none" : found->second;
  }
  ~TrainingSite() { end(); }

 private:
  void train(const std::shared_ptr<MemoryHub>& hub) {
    std::vector<double> weight(elements, options_.name[0]);
    std::vector<float> bias{1, 2, 3};
    const auto site = site_on(hub, options_);
    Worker worker = site_worker(
        {view_of("layer.weight", std::span(weight)), view_of("layer.bias", std::span(bias))}, site);
    while (!ends_) {
      worker.step([&] {
        for (double& value : weight) value = 0.9 * value + 1;
      });
      if (worker.round() % steps_between == 0)
        hashes_[worker.round()] = sites::sha256_of(std::as_bytes(std::span(weight)));
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
    }
    dies_ ? site->abandon() : worker.finish();
  }

  sites::SiteOptions options_;
  std::atomic<bool> ends_ = false, dies_ = false;
  std::map<std::int64_t, std::string> hashes_;
  std::string said_;
  std::jthread thread_;
};

/// Asks before each message whether it is to be sent.
class WatchedBus final : public sites::Bus {
 public:
  using OnSend = std::function<bool(const std::string& subject)>;
  WatchedBus(std::unique_ptr<sites::Bus> bus, OnSend on_send)
      : bus_(std::move(bus)), on_send_(std::move(on_send)) {}
  ~WatchedBus() override { bus_->end(); }
  bool send(const std::string& subject, const std::string& text) override {
    return on_send_(subject) && bus_->send(subject, text);
  }
  void probe(const std::string& subject, const std::string& reply) override {
    bus_->probe(subject, reply);
  }
  void listen(const std::string& subject, Handler handler) override {
    bus_->listen(subject, std::move(handler));
  }
  void require_usable() const override { bus_->require_usable(); }
  void end() override { bus_->end(); }
  const std::string& run() const override { return bus_->run(); }

 private:
  std::unique_ptr<sites::Bus> bus_;
  OnSend on_send_;
};

constexpr sites::Patience quick{
    .listening = Seconds(0.8), .silence = Seconds(6), .answer = Seconds(2)};
/// For one whose first look is to see all that are there.
constexpr sites::Patience thorough{
    .listening = Seconds(3), .silence = Seconds(6), .answer = Seconds(2)};
bool send_all(const std::string&) { return true; }
constexpr std::uint64_t most_bytes = std::uint64_t{1} << 30;

Deadline in(double seconds) { return Deadline(Seconds(seconds)); }

Onlooker onlooker_on(const std::shared_ptr<MemoryHub>& hub, WatchedBus::OnSend on_send = send_all,
                     const sites::Patience& patience = quick) {
  const std::string name = sites::new_onlooker_name();
  return {std::make_unique<WatchedBus>(std::make_unique<MemoryBus>(hub, name), std::move(on_send)),
          name,
          {},
          patience,
          most_bytes};
}

std::vector<std::string> names_in(const std::vector<sites::Sight>& sights) {
  std::vector<std::string> names;
  for (const sites::Sight& sight : sights) names.push_back(sight.status.site);
  return names;
}

std::string error_when(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

std::string hash_of(const sites::SiteModel& model) {
  const TensorView& weight = *std::ranges::find(model.tensors, "layer.weight", &TensorView::name);
  return sites::sha256_of({static_cast<const std::byte*>(weight.data), weight.size_bytes()});
}

/// The name of a site in "run.look.NAME"; empty: it is another subject.
std::string asked_for_chunks(const std::string& subject) {
  const std::string begin = "run.look.";
  return subject.starts_with(begin) ? subject.substr(begin.size()) : "";
}

using Names = std::vector<std::string>;

}  // namespace

TEST_CASE("an onlooker sees who is there, and sites do not hear of it") {
  const auto hub = std::make_shared<MemoryHub>();
  TrainingSite a(hub, 0, 3), b(hub, 1, 3), c(hub, 2, 3);
  std::mutex mutex;
  Names sent;
  Onlooker onlooker = onlooker_on(hub, [&](const std::string& subject) {
    const std::lock_guard lock(mutex);
    sent.push_back(subject);
    return true;
  });
  REQUIRE(onlooker.await(3, 0, in(60)));
  CHECK(names_in(onlooker.look()) == Names{"a", "b", "c"});
  Onlooker patient =
      onlooker_on(hub, send_all, {.listening = Seconds(2.5), .silence = Seconds(60)});
  REQUIRE(patient.await(3, 0, in(60)));
  b.end(true);
  CHECK(b.join().empty());
  const auto all = patient.look();
  CHECK(names_in(all) == Names{"a", "b", "c"});
  CHECK(all[1].silent_s > all[0].silent_s);
  CHECK(all[1].silent_s > 1);
  auto left = onlooker.look();
  for (const Deadline longest = in(60); left.size() > 2 && !longest.expired();)
    left = onlooker.look();
  CHECK(names_in(left) == Names{"a", "c"});
  CHECK(onlooker.fetch("c", in(60)).site == "c");
  for (const sites::Sight& sight : onlooker.look()) {
    CHECK(sight.status.begun);
    CHECK(sight.status.round > 0);
    CHECK(sight.status.about == left.front().status.about);
    for (const auto& [site, incarnation] : sight.status.known)
      CHECK((site == "a" || site == "b" || site == "c"));
  }
  const std::lock_guard lock(mutex);
  CHECK_FALSE(sent.empty());
  for (const std::string& subject : sent)
    CHECK((subject.starts_with("run.look.c") || subject.starts_with("run.ask.c")));
}

TEST_CASE("an onlooker waits for sites and for their rounds") {
  const auto hub = std::make_shared<MemoryHub>();
  Onlooker onlooker = onlooker_on(hub);
  CHECK_FALSE(onlooker.await(1, 0, in(0.3)));
  CHECK(onlooker.counted() == 0);
  TrainingSite a(hub, 0, 1);
  CHECK(onlooker.await(1, 0, in(60)));
  CHECK_FALSE(onlooker.await(2, 0, in(0.3)));
  CHECK(onlooker.counted() == 1);
  TrainingSite b(hub, 1, 1);
  CHECK(onlooker.await(2, 30, in(60)));
  for (const sites::Sight& sight : onlooker.look()) CHECK(sight.status.round >= 30);
  a.end();
  CHECK(a.join().empty());
  CHECK(onlooker.await(1, 0, in(60)));
  CHECK_FALSE(onlooker.await(1, std::int64_t{1} << 40, in(0.3)));
}

TEST_CASE("a model that is fetched has the site's weights bit by bit, also if messages are lost") {
  const double lost = GENERATE(0, 0.15);
  const auto seed = std::random_device{}();
  INFO("lost " << lost << ", seed " << seed);
  const auto hub =
      std::make_shared<MemoryHub>(Weather{.lost = lost, .delay = Seconds(0.01), .seed = seed});
  TrainingSite a(hub, 0, 2), b(hub, 1, 2);
  std::optional<sites::SiteModel> of_b, of_any;
  {
    Onlooker onlooker = onlooker_on(hub);
    REQUIRE(onlooker.await(2, 4 * steps_between, in(60)));
    of_b = onlooker.fetch("b", in(60));
    of_any = onlooker_on(hub, send_all, thorough).fetch("", in(60));
  }
  a.end();
  b.end();
  CHECK((a.join() + b.join()).empty());
  CHECK(of_b->site == "b");
  CHECK(of_b->round % steps_between == 0);
  CHECK(of_b->round >= 4 * steps_between);
  REQUIRE(of_b->tensors.size() == 2);
  CHECK(describe(of_b->tensors[0]) == "\"layer.bias\" [3] f32");
  CHECK(describe(of_b->tensors[1]) == "\"layer.weight\" [20000] f64");
  CHECK(hash_of(*of_b) == b.hash_at(of_b->round));
  CHECK(hash_of(*of_any) == (of_any->site == "a" ? a : b).hash_at(of_any->round));
}

TEST_CASE("a site that goes while its model is read: another one is read, or there is one error") {
  const bool leaves = GENERATE(false, true), has_other = GENERATE(false, true);
  INFO("leaves " << leaves << ", has another " << has_other);
  const auto hub = std::make_shared<MemoryHub>();
  const int count = has_other ? 2 : 1;
  std::map<std::string, TrainingSite> running;
  for (int place = 0; place < count; ++place)
    running.try_emplace(site_name(place), hub, place, count);
  std::mutex mutex;
  std::string gone;
  Onlooker onlooker = onlooker_on(hub, [&](const std::string& subject) {
    const std::lock_guard lock(mutex);
    const std::string site = asked_for_chunks(subject);
    if (site.empty()) return true;
    if (gone.empty()) {
      gone = site;
      if (!leaves) hub->cut(site);
      running.at(site).end(!leaves);
    }
    return site != gone;  // chunks would be there before the site ends
  });
  REQUIRE(onlooker.await(count, 3, in(60)));
  if (has_other) {
    const sites::SiteModel model = onlooker.fetch("", in(60));
    CHECK(model.site != gone);
    running.at(model.site).end();
    CHECK(running.at(model.site).join().empty());
    CHECK(hash_of(model) == running.at(model.site).hash_at(model.round));
  } else {
    const std::string said = error_when([&] { onlooker.fetch("", in(60)); });
    INFO(said);
    const bool is_gone = said.find("no site of the run \"run\" is there") != said.npos;
    CHECK((is_gone || (leaves && said.find("a: it leaves") != said.npos)));
  }
}

TEST_CASE("what cannot be fetched has one error that says why") {
  const auto hub = std::make_shared<MemoryHub>();
  CHECK_THAT(error_when([&] { onlooker_on(hub).fetch("", in(60)); }),
             ContainsSubstring("no site of the run \"run\" is there"));
  TrainingSite a(hub, 0, 1);
  Onlooker onlooker = onlooker_on(hub);
  REQUIRE(onlooker.await(1, 1, in(60)));
  CHECK_THAT(error_when([&] { onlooker.fetch("rome", in(60)); }),
             ContainsSubstring("site rome is not there; there are: a"));
  CHECK_THAT(error_when([&] { onlooker.fetch("a", in(0)); }),
             ContainsSubstring("no site has given its whole model within 0 s"));
}

TEST_CASE("states of a foreign site that are not what they should be are not read") {
  const auto hub = std::make_shared<MemoryHub>();
  sites::Node foreign(std::make_unique<MemoryBus>(hub, "m"), {.site = "m", .about = "a model"});
  foreign.appear();
  foreign.begin(5, 20);
  const auto publish = [&](std::size_t bytes, std::uint64_t announced, const std::string& hash = {},
                           double longest_s = 60) {
    const auto buffer = std::make_shared<AlignedBuffer>(bytes);
    sites::Publication what;
    what.content = sites::Content::state;
    what.number = 5;
    what.bytes = announced;
    what.sha256 = hash;
    foreign.publish(what, buffer);
    return error_when([&] { onlooker_on(hub, send_all, thorough).fetch("m", in(longest_s)); });
  };
  CHECK_THAT(publish(100, std::uint64_t{1} << 50),
             ContainsSubstring("has 1125899906842624 bytes, more than"));
  CHECK_THAT(publish(4, 4), ContainsSubstring("it has no length"));
  CHECK_THAT(publish(8, 8), ContainsSubstring("cannot be read"));
  CHECK_THAT(publish(100, 100, "another hash", 4), ContainsSubstring("whole model within 4 s"));
  CHECK_THAT(publish(0, 0, "", 4), ContainsSubstring("whole model within 4 s"));
}
