// A worker's parts among scripted neighbors: what these show and publish is in the test's hand.
#pragma once

#include <fast/worker/worker.hpp>

#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "combine/host_mixer.hpp"
#include "exchange/group_impl.hpp"
#include "worker/context.hpp"
#include "worker/round_plan.hpp"

namespace fast::testing {

/// The workers of a run by number alone.
class FakeGroup final : public GroupImpl {
 public:
  FakeGroup(int rank, int size) : rank_(rank), size_(size) {}
  int rank() const override { return rank_; }
  int size() const override { return size_; }
  std::string name() const override { return "fake"; }
  std::vector<std::string> all_gather(std::string_view bytes, const Deadline&,
                                      std::string_view) override {
    return std::vector<std::string>(static_cast<std::size_t>(size_), std::string(bytes));
  }
  Region allocate(std::size_t, const Deadline&) override { return {}; }

 private:
  int rank_, size_;
};

/// Own slots are real; what neighbors publish is `arrivals`, and each call of fetch() takes the
/// first of them off while there are more.
class FakeExchange : public Exchange {
 public:
  struct Slot {
    std::vector<double> values, weights;
    std::vector<double> scalars;
    int vectors = 1;
    std::size_t stride_bytes() const {
      return vectors == 1 ? 0 : values.size() / static_cast<std::size_t>(vectors) * sizeof(double);
    }
    Payload payload() const {
      return {reinterpret_cast<const std::byte*>(values.data()), scalars.data(), stride_bytes(),
              weights.empty() ? nullptr : reinterpret_cast<const std::byte*>(weights.data())};
    }
  };
  FakeExchange(std::size_t count, bool with_weights, int vectors = 1) {
    for (Slot& slot : slots_) {
      slot.vectors = vectors;
      slot.values.resize(count * static_cast<std::size_t>(vectors));
      slot.scalars.resize(4);
      if (with_weights) slot.weights.resize(count);
    }
  }

  MutablePayload acquire() override {
    acquired = true;
    Slot& next = slots_[1 - newest_];
    return {reinterpret_cast<std::byte*>(next.values.data()), next.scalars.data(),
            next.stride_bytes(),
            next.weights.empty() ? nullptr : reinterpret_cast<std::byte*>(next.weights.data())};
  }
  void publish(std::int64_t round, bool with_weights) override {
    if (std::exchange(acquired, false)) {
      newest_ = 1 - newest_;
      ++sequence_;
    }
    rounds.push_back(round);
    weights_too.push_back(with_weights);
  }
  Payload published() const override { return newest().payload(); }
  std::uint64_t sequence() const override { return sequence_; }
  std::vector<Arrival> fetch(std::int64_t) override {
    ++fetched;
    std::vector<Arrival> given = arrivals.front();
    if (arrivals.size() > 1) arrivals.pop_front();
    return given;
  }
  bool await(Arrival& arrival, std::size_t bytes) override {
    if (bytes > comes_bytes) return false;
    arrival.arriving = 0;
    return true;
  }
  Arrival::State look(int neighbor, std::int64_t) override {
    return std::count(gone.begin(), gone.end(), neighbor) > 0 ? Arrival::State::suspect
                                                              : Arrival::State::present;
  }
  bool is_intact(const Arrival& arrival) const override {
    return std::count(torn.begin(), torn.end(), arrival.worker) == 0;
  }
  void complete(std::int64_t rounds) override { completed = rounds; }

  const Slot& newest() const { return slots_[newest_]; }
  Slot& newest() { return slots_[newest_]; }

  std::deque<std::vector<Arrival>> arrivals{{}};
  std::vector<int> torn;  ///< workers that write to what is being read
  std::vector<int> gone;
  std::size_t comes_bytes = whole_payload;  ///< how much of an arriving payload comes
  std::vector<std::int64_t> rounds;         ///< of the publications
  std::vector<bool> weights_too;
  std::int64_t completed = -1;
  int fetched = 0;
  bool acquired = false;

 private:
  std::array<Slot, 2> slots_;
  std::size_t newest_ = 0;
  std::uint64_t sequence_ = 0;
};

class FakePeers : public Peers {
 public:
  explicit FakePeers(int workers)
      : states(static_cast<std::size_t>(workers)), weights(static_cast<std::size_t>(workers)) {
    for (PeerState& state : states) state.status = WorkerStatus::running;
  }
  PeerState peer(int worker) const override { return states[static_cast<std::size_t>(worker)]; }
  bool is_suspect(int worker) const override {
    return std::count(suspects.begin(), suspects.end(), worker) > 0;
  }
  Seconds suspect_after(int) const override { return patience; }
  void note_progress() override {}
  bool announce(WorkerStatus status) override {
    announced.push_back(status);
    return fails_first;
  }
  using Peers::snapshot;
  Snapshot snapshot(int worker, std::span<std::byte> room, Piece& piece) const override {
    const auto& there = weights[static_cast<std::size_t>(worker)];
    if (!there || (piece.sequence != 0 && replaced)) return Snapshot::none;
    const auto bytes = std::as_bytes(std::span(*there)).subspan(piece.offset);
    std::memcpy(room.data(), bytes.data(), std::min(bytes.size(), room.size()));
    piece.sequence = 1;
    return found;
  }
  /// Odd workers are of this process.
  const std::byte* in_place(int worker, Snapshot, const Piece& piece) const override {
    const auto& there = weights[static_cast<std::size_t>(worker)];
    return worker % 2 == 0 ? nullptr : std::as_bytes(std::span(*there)).data() + piece.offset;
  }
  bool is_intact(int, const Piece&) const override { return !replaced; }

  std::vector<PeerState> states;
  std::vector<int> suspects;
  std::vector<WorkerStatus> announced;                      ///< by this worker
  bool fails_first = true;                                  ///< no other worker has failed before
  Seconds patience{5};                                      ///< with all workers
  std::vector<std::optional<std::vector<double>>> weights;  ///< published
  Snapshot found = Snapshot::message;                       ///< what these are
  bool replaced = false;                                    ///< as soon as a part was read
};

/// Worker `rank` of `size` workers on a schedule, with a model of `count` doubles.
struct Scene {
  static constexpr std::size_t count = 5;

  Scene(int rank, int size, const TopologyRule& rule, WorkerOptions options = {})
      : x(count, rank),
        mixer(ParameterLayout({view_of("x", std::span(x))}), options.algorithm.make(),
              options.codec, worker::sends_sums(options.algorithm.traits(), options)),
        exchange(count, options.algorithm.traits().messages.weights_apart,
                 options.algorithm.traits().messages.vectors),
        peers(std::make_shared<FakePeers>(size)),
        setting{GroupImpl::group(std::make_shared<FakeGroup>(rank, size)),
                with_log(std::move(options)),
                mixer_rule(),
                {}},
        plan(rule.make(size), rank, setting.options.weights, setting.options.lazy_weights,
             setting.traits.topology.divides()),
        context{setting, progress, exchange, mixer} {
    setting.shape = {mixer.coded().size_bytes(), setting.traits.messages.vectors,
                     mixer.scalars().count(), 0};
  }
  Scene(const Scene&) = delete;
  Scene& operator=(const Scene&) = delete;

  /// A neighbor's publication full of `value`, which stays as long as the scene.
  Arrival arrival(int worker, double value, double scalar = 0) {
    auto& slot = kept.emplace_back();
    slot.vectors = setting.traits.messages.vectors;
    slot.values.assign(count * static_cast<std::size_t>(slot.vectors), value);
    slot.scalars.assign(4, scalar);
    Arrival made;
    made.worker = worker;
    made.round = made.first = progress.combinations;
    made.payload = slot.payload();
    return made;
  }
  static Arrival absent(int worker, Arrival::State state = Arrival::State::suspect) {
    Arrival made;
    made.worker = worker;
    made.state = state;
    return made;
  }
  WorkerOptions with_log(WorkerOptions options) {
    options.log = [this](LogLevel, std::string_view text) { said.emplace_back(text); };
    traits_ = options.algorithm.traits();
    return options;
  }
  algorithm::RuleTraits mixer_rule() const { return traits_; }

  algorithm::RuleTraits traits_;
  std::vector<std::string> said;
  std::vector<double> x;
  combine::HostMixer mixer;
  FakeExchange exchange;
  std::shared_ptr<FakePeers> peers;
  worker::WorkerConfig setting;
  worker::RoundPlan plan;
  worker::Progress progress;
  worker::Context context;
  std::deque<FakeExchange::Slot> kept;
};

}  // namespace fast::testing
