// The slot protocol (lib/exchange/shared/slot_protocol.hpp, the same code) and the block loop of
// plain averages (lib/combine/block_sources.hpp) under a weak memory model. Each memory order and
// fence is weakened in turn: those that matter must be missed.
#include <algorithm>
#include <array>
#include <map>

#include "combine/block_sources.hpp"
#include "exchange/model/weak_memory.hpp"
#include "exchange/shared/slot_protocol.hpp"
#include "support/catch.hpp"

using namespace fast::testing::weak;
namespace exchange = fast::exchange;
using exchange::FoundPublication;

namespace {

constexpr auto by_machine = std::memory_order_relaxed;  // the bytes of payloads have no order

std::string numbered(const std::string& name, std::size_t n) {
  return name + "[" + std::to_string(n) + "]";
}

template <class T, std::size_t n>
std::vector<Atomic<T>> array_of(const std::string& name) {
  std::vector<Atomic<T>> words;
  for (std::size_t k = 0; k < n; ++k) words.emplace_back(numbered(name, k));
  return words;
}

/// A worker's header and its slots, of two words each.
struct Part {
  Memory memory;
  struct {
    Atomic<std::uint64_t> sequence{"sequence"};
    std::vector<Atomic<Value>> rounds = array_of<Value, exchange::slot_count>("rounds"),
                               until = array_of<Value, exchange::slot_count>("until");
  } publication;
  std::vector<Atomic<Value>> low = array_of<Value, exchange::slot_count>("payload"),
                             high = array_of<Value, exchange::slot_count>("payload");
  std::vector<Atomic<Value>> consumed = array_of<Value, 2>("consumed");  ///< of two readers

  Thread writer;
};

struct Rounds {
  Value first, last;
};

/// What is published: the words of publication q are q. The first one is for two rounds.
const std::vector<Rounds> published{{0, 1}, {2, 2}, {3, 3}, {4, 4}, {5, 5}};

Value publication_of(Value round) { return std::max<Value>(round, 1); }

Thread::Stage publishes(Part& part, std::size_t number, std::size_t waits_for) {
  return [&part, number, waits_for](const Values&) {
    const std::uint64_t sequence = number + 1, slot = sequence % exchange::slot_count;
    if (number >= exchange::slot_count) {
      const Rounds old = published[number - exchange::slot_count];
      for (std::size_t k = 0; k < waits_for; ++k)
        wait_until(exchange::has_consumed(part.consumed[k], old.last));
    }
    exchange::begin_writing<Fences>(part.publication.rounds[slot]);
    part.low[slot].store(static_cast<Value>(sequence), by_machine);
    part.high[slot].store(static_cast<Value>(sequence), by_machine);
    const Rounds rounds = published[number];
    exchange::store_publication(part.publication, sequence, rounds.first, rounds.first);
    if (rounds.last > rounds.first)
      exchange::extend_publication(part.publication, sequence, rounds.last);
    return Values{};
  };
}

struct Read {
  Later low, high;
};
Read begin_read(const Part& part, std::uint64_t sequence) {
  const std::uint64_t slot = sequence % exchange::slot_count;
  return {part.low[slot].load_later(), part.high[slot].load_later()};
}
void demand_publication(const Read& read, Value publication) {
  const Value low = read.low.get(), high = read.high.get();
  demand(low == high, "a torn read was accepted");
  demand(low == publication, "another publication than the one of the round was accepted");
}

/// At staleness above 0. Keeps the newest round that was read, and how many reads were rejected.
Values reads_newest(const Part& part, const Values& kept, Value oldest) {
  const Value newest_read = kept[0];
  const auto found = exchange::find_publication(part.publication, false,
                                                [=](Value, Value last) { return last >= oldest; });
  if (!found) return {newest_read, kept[1] + 1};
  const Read read = begin_read(part, found->sequence);
  const bool holds =
      exchange::still_holds_unwaited<Fences>(part.publication, found->sequence, found->first);
  if (!holds) return {newest_read, kept[1] + 1};
  demand_publication(read, publication_of(found->last));
  demand(found->last >= oldest, "the publication is too old");
  demand(found->last >= newest_read, "a reader saw an older round than before");
  return {found->last, kept[1]};
}

std::optional<FoundPublication> find_exactly(const Part& part, Value round) {
  return exchange::find_publication(part.publication, true, [=](Value first, Value last) {
    return first <= round && round <= last;
  });
}

/// At staleness 0, of a writer that waits for its readers: no read is rejected.
Thread::Stage acknowledges(Part& part, std::size_t reader, Value round) {
  return [&part, reader, round](const Values&) {
    const auto found = find_exactly(part, round);
    wait_until(found.has_value());
    const Read read = begin_read(part, found->sequence);
    const bool holds =
        exchange::still_holds<Fences>(part.publication, found->sequence, found->first);
    demand(holds, "a read was rejected though its writer waits");
    exchange::acknowledge(part.consumed[reader], round + 1);
    demand_publication(read, publication_of(round));
    return Values{};
  };
}

/// At staleness 0, of a writer that suspects this reader and does not wait.
Values reads_round(const Part& part, const Values& kept, Value round) {
  const auto found = find_exactly(part, round);
  if (!found) return {kept[0], kept[1] + 1};
  const Read read = begin_read(part, found->sequence);
  if (!exchange::still_holds<Fences>(part.publication, found->sequence, found->first))
    return {kept[0], kept[1] + 1};
  demand_publication(read, publication_of(round));
  demand(static_cast<Value>(found->sequence) == publication_of(round), "the number is wrong");
  return {round, kept[1]};
}

void add_writer(Part& part, std::size_t publications, std::size_t waits_for) {
  part.writer.runs_first = waits_for == 0;
  for (std::size_t number = 0; number < publications; ++number)
    part.writer.stages.push_back(publishes(part, number, waits_for));
}

/// What the block loop uses of an exchange, as SlotExchange does it. A payload's address stands for
/// its publication.
class ModelExchange final : public fast::Exchange {
 public:
  ModelExchange(const Part& part, bool exact) : part_(part), exact_(exact) {}

  std::vector<fast::Arrival> fetch(std::int64_t round) override {
    const auto found =
        exchange::find_publication(part_.publication, exact_, [&](Value first, Value last) {
          return exact_ ? first <= round && round <= last : last >= round;
        });
    wait_until(found.has_value());
    fast::Arrival arrival;
    arrival.round = exact_ ? round : found->last;
    arrival.first = found->first;
    arrival.sequence = found->sequence;
    arrival.payload.data = &addresses[found->sequence];
    return {arrival};
  }
  bool is_intact(const fast::Arrival& arrival) const override {
    const auto holds = exact_ ? exchange::still_holds<Fences, decltype(part_.publication)>
                              : exchange::still_holds_unwaited<Fences, decltype(part_.publication)>;
    return holds(part_.publication, arrival.sequence, arrival.first);
  }
  fast::Payload published() const override { return {}; }
  static std::uint64_t sequence_at(const std::byte* address) {
    return static_cast<std::uint64_t>(address - addresses.data());
  }

  fast::MutablePayload acquire() override { return {}; }
  void publish(std::int64_t, bool) override {}
  std::uint64_t sequence() const override { return 0; }
  void complete(std::int64_t) override {}

 private:
  static inline const std::array<std::byte, 8> addresses{};
  const Part& part_;
  bool exact_;
};

/// Averages one round in two blocks, of a word each. Keeps the publications that the blocks are of,
/// 0 where the neighbor was left out.
Values averages_blocks(const Part& part, Value round, bool exact) {
  ModelExchange neighbor(part, exact);
  const fast::MixingRow row{0.5, {0}, {0.5}};
  std::vector<fast::Arrival> arrivals = neighbor.fetch(round);
  fast::combine::BlockSources sources(neighbor, arrivals, row, round, exact);
  Values used;
  for (const auto* words : {&part.low, &part.high}) {
    std::vector<Later> value;
    std::uint64_t sequence = 0;
    sources.read(1, [&] {
      value.clear();
      sequence = 0;
      if (sources.neighborhood().payloads.empty()) return;
      sequence = ModelExchange::sequence_at(sources.neighborhood().payloads.front().data);
      value.push_back((*words)[sequence % exchange::slot_count].load_later());
    });
    const Value read = value.empty() ? 0 : value.front().get();
    demand(read == static_cast<Value>(sequence),
           "another publication than the one of the round was accepted");
    used.push_back(read);
  }
  sources.rethrow();
  demand(sources.are_whole(), "a read was rejected though its writer waits");
  const bool present = is_present(arrivals.front());
  demand(present == (used[1] != 0), "the state of the neighbor is wrong");
  demand(!present || used[0] <= used[1], "a block is older than the one before");
  demand(!present || publication_of(arrivals.front().round) == used[0],
         "the round that is reported is not the oldest");
  return used;
}

using Weakened = std::set<Site>;

Outcomes newest(const Weakened& weakened) {
  Part part;
  add_writer(part, 4, 0);
  Thread reader{.stages = {}, .runs_first = false, .begin = {-1, 0}};
  for (const Value oldest : {0, 1, 2})
    reader.stages.emplace_back(
        [&part, oldest](const Values& kept) { return reads_newest(part, kept, oldest); });
  return explore({part.writer, reader}, weakened);
}

/// One list of rounds for each reader.
Outcomes waited_for(const Weakened& weakened, std::size_t publications,
                    const std::vector<Values>& rounds) {
  Part part;
  add_writer(part, publications, rounds.size());
  std::vector<Thread> threads{part.writer};
  for (std::size_t k = 0; k < rounds.size(); ++k) {
    Thread& reader = threads.emplace_back();
    for (const Value round : rounds[k]) reader.stages.push_back(acknowledges(part, k, round));
  }
  return explore(threads, weakened);
}
Outcomes exact(const Weakened& weakened) { return waited_for(weakened, 4, {{0, 1, 2, 3, 4}}); }
Outcomes longer(const Weakened& weakened) { return waited_for(weakened, 5, {{0, 1, 2, 3, 4, 5}}); }

Outcomes overtaken(const Weakened& weakened) {
  Part part;
  add_writer(part, 4, 0);
  Thread reader{.stages = {}, .runs_first = false, .begin = {-1, 0}};
  for (const Value round : {0, 1, 2, 4})
    reader.stages.emplace_back(
        [&part, round](const Values& kept) { return reads_round(part, kept, round); });
  return explore({part.writer, reader}, weakened);
}

/// The block loop, of a writer that does not wait.
Outcomes blocks(const Weakened& weakened) {
  Part part;
  add_writer(part, 4, 0);
  Thread reader;
  reader.stages.emplace_back([&part](const Values&) { return averages_blocks(part, 0, false); });
  return explore({part.writer, reader}, weakened);
}

/// The block loop, of a writer that waits.
Outcomes exact_blocks(const Weakened& weakened) {
  Part part;
  add_writer(part, 4, 1);
  Thread reader;
  for (const Value round : {0, 1, 2}) {
    reader.stages.emplace_back([&part, round](const Values&) {
      Values used = averages_blocks(part, round, true);
      exchange::acknowledge(part.consumed[0], round + 1);
      return used;
    });
  }
  return explore({part.writer, reader}, weakened);
}

using Model = Outcomes (*)(const Weakened&);
const std::vector<Model> models{newest, exact, overtaken};

std::map<std::string, Site> all_sites() {
  std::set<Site> all;
  for (const Model model : models) all.merge(model({}).sites);
  return named(all);
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

/// What goes wrong in a model when the sites of these names are weakened.
std::string fault_of(Model model, const std::vector<std::string>& names) {
  static const auto sites = all_sites();
  Weakened weakened;
  for (const std::string& name : names) weakened.insert(sites.at(name));
  return first_line(model(weakened).violation);
}

const std::string torn = "a torn read was accepted",
                  another = "another publication than the one of the round was accepted",
                  rejected = "a read was rejected though its writer waits";

}  // namespace

TEST_CASE("no run of the slot protocol breaks a rule") {
  for (const Model model : models) {
    const Outcomes all = model({});
    INFO(all.states << " states");
    CHECK(all.violation == "");
    CHECK_FALSE(all.ends.empty());
  }
}

TEST_CASE("two readers that a writer waits for break no rule") {
  const Outcomes all = waited_for({}, 4, {{1, 4}, {1}});
  INFO(all.states << " states");
  CHECK(all.violation == "");
  CHECK(all.ends.size() == 1);
}

TEST_CASE("a reader that is overtaken is told so, one that is not reads its round") {
  const Outcomes all = overtaken({});
  const auto ends_with = [&](const Values& reader) {
    return std::any_of(all.ends.begin(), all.ends.end(),
                       [&](const std::vector<Values>& end) { return end[1] == reader; });
  };
  CHECK(ends_with({4, 0}));   // reads all rounds
  CHECK(ends_with({4, 2}));   // comes late for rounds 0 and 1
  CHECK(ends_with({-1, 4}));  // sees nothing
}

TEST_CASE("the block loop uses whole blocks alone, at any staleness") {
  const Outcomes all = blocks({});
  INFO(all.states << " states");
  CHECK(all.violation == "");
  const auto ends_with = [&](const Values& reader) {
    return std::any_of(all.ends.begin(), all.ends.end(),
                       [&](const std::vector<Values>& end) { return end[1] == reader; });
  };
  CHECK(ends_with({1, 1}));
  CHECK(ends_with({1, 3}));  // two publications in one round
  CHECK(ends_with({2, 4}));
  const Outcomes waited = exact_blocks({});
  INFO(waited.states << " states of a writer that waits");
  CHECK(waited.violation == "");
  CHECK(waited.ends == std::set<std::vector<Values>>{{{}, {2, 2}}});
}

TEST_CASE("the block loop needs the fence of the writer and that of its check") {
  CHECK(fault_of(blocks, {"begin_writing: fence"}) == another);
  CHECK(fault_of(blocks, {"still_holds: fence"}) == another);
  CHECK(fault_of(blocks, {"find_publication: load sequence"}) == another);
}

TEST_CASE("each of these orders is needed alone") {
  CHECK(fault_of(newest, {"begin_writing: fence"}) == another);
  CHECK(fault_of(exact, {"begin_writing: fence"}) == another);
  CHECK(fault_of(overtaken, {"begin_writing: fence"}) == another);
  CHECK(fault_of(newest, {"still_holds: fence"}) == torn);
  CHECK(fault_of(overtaken, {"still_holds: fence"}) == torn);
  CHECK(fault_of(newest, {"find_publication: load sequence"}) == another);
  CHECK(fault_of(exact, {"find_publication: load sequence"}) == rejected);
  CHECK(fault_of(longer, {"find_publication: load rounds"}) == rejected);
  CHECK(fault_of(exact, {"find_publication: load until"}) == rejected);
}

TEST_CASE("of each of these pairs, one order is needed") {
  const std::vector<std::string> stores{"store_publication: store rounds",
                                        "store_publication: store sequence"};
  for (const Model model : models) CHECK(fault_of(model, stores) == another);
  CHECK(fault_of(exact, {"acknowledge: store consumed", "still_holds: fence"}) == torn);
  CHECK(fault_of(overtaken, {"find_publication: load sequence",
                             "find_publication: load sequence 2"}) == another);
}

// The page says why they are there.
TEST_CASE("no run shows that these orders are needed") {
  const std::vector<std::string> names{
      "begin_writing: exchange rounds", "extend_publication: store until",
      "find_publication: load rounds 2", "is_published: load sequence", "still_holds: load rounds"};
  for (const std::string& name : names) {
    INFO(name);
    for (const Model model : {newest, overtaken}) CHECK(fault_of(model, {name}) == "");
  }
  CHECK(fault_of(exact, {"has_consumed: load consumed"}) == "");
}

TEST_CASE("the tests above name every order of the protocol") {
  std::set<std::string> names;
  for (const auto& [name, site] : all_sites()) names.insert(name);
  CHECK(names == std::set<std::string>{
                     "acknowledge: store consumed", "begin_writing: exchange rounds",
                     "begin_writing: fence", "extend_publication: store until",
                     "find_publication: load rounds", "find_publication: load rounds 2",
                     "find_publication: load sequence", "find_publication: load sequence 2",
                     "find_publication: load until", "has_consumed: load consumed",
                     "is_published: load sequence", "store_publication: store rounds",
                     "store_publication: store sequence", "still_holds: fence",
                     "still_holds: load rounds"});
}
