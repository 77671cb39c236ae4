#include "exchange/seats/seated_link.hpp"

#include <utility>

#include "exchange/peers.hpp"

namespace fast::exchange {
namespace {

class SeatedExchange final : public Exchange {
 public:
  SeatedExchange(std::unique_ptr<Exchange> ranks, std::shared_ptr<membership::Members> members,
                 bool notes_progress)
      : ranks_(std::move(ranks)), members_(std::move(members)), notes_progress_(notes_progress) {}

  MutablePayload acquire() override { return ranks_->acquire(); }
  void publish(std::int64_t round, bool with_weights) override {
    ranks_->publish(round, with_weights);
  }
  void keep_weights() override { ranks_->keep_weights(); }
  void flush() override { ranks_->flush(); }
  Payload published() const override { return ranks_->published(); }
  std::uint64_t sequence() const override { return ranks_->sequence(); }

  void begin_fetch(std::int64_t round) override { ranks_->begin_fetch(round); }
  std::vector<Arrival> fetch(std::int64_t round) override { return by_seat(ranks_->fetch(round)); }
  std::vector<Arrival> fetch_early(std::int64_t round) override {
    return by_seat(ranks_->fetch_early(round));
  }
  bool await(Arrival& arrival, std::size_t bytes) override {
    const int seat = std::exchange(arrival.worker, arrival.rank);
    const bool comes = ranks_->await(arrival, bytes);
    arrival.worker = seat;
    return comes;
  }
  Arrival::State look(int neighbor, std::int64_t round) override {
    return ranks_->look(members_->map().holder(neighbor), round);
  }
  bool is_intact(const Arrival& arrival) const override {
    Arrival by_rank = arrival;
    by_rank.worker = arrival.rank;
    return ranks_->is_intact(by_rank);
  }
  void complete(std::int64_t rounds) override {
    ranks_->complete(rounds);
    if (notes_progress_) members_->map().records().set_progress(rounds);
  }

 private:
  std::vector<Arrival> by_seat(std::vector<Arrival> arrivals) const {
    for (Arrival& arrival : arrivals) {
      arrival.rank = arrival.worker;
      arrival.worker = members_->map().seat_of(arrival.rank).value_or(arrival.rank);
    }
    return arrivals;
  }

  std::unique_ptr<Exchange> ranks_;
  std::shared_ptr<membership::Members> members_;
  bool notes_progress_;
};

class SeatedPeers final : public Peers, public Results {
 public:
  SeatedPeers(std::shared_ptr<Peers> ranks, std::shared_ptr<membership::Members> members)
      : ranks_(std::move(ranks)), members_(std::move(members)) {}

  PeerState peer(int worker) const override { return ranks_->peer(rank_on(worker)); }
  /// A seat that a spare will take soon is not lost.
  bool is_suspect(int worker) const override {
    return ranks_->is_suspect(rank_on(worker)) && !members_->is_awaited(worker);
  }
  Seconds suspect_after(int worker) const override {
    return ranks_->suspect_after(rank_on(worker));
  }
  void note_progress() override { ranks_->note_progress(); }
  /// That the worker runs is noted by its owner, when all have met.
  bool announce(WorkerStatus status) override {
    if (status != WorkerStatus::running) members_->map().records().set_status(status);
    return ranks_->announce(status);
  }
  Snapshot snapshot(int worker, std::span<std::byte> room, Piece& piece) const override {
    return ranks_->snapshot(rank_on(worker), room, piece);
  }
  const std::byte* in_place(int worker, Snapshot found, const Piece& piece) const override {
    return ranks_->in_place(rank_on(worker), found, piece);
  }
  bool is_intact(int worker, const Piece& piece) const override {
    return ranks_->is_intact(rank_on(worker), piece);
  }

  Results* results() override { return this; }
  std::span<std::byte> room() override { return ranks_->results()->room(); }
  void trim() override { ranks_->results()->trim(); }
  void show(const Reduced& reduced) override { ranks_->results()->show(reduced); }
  Reduced shown(int worker) const override { return ranks_->results()->shown(rank_on(worker)); }
  bool read(int worker, std::size_t offset, std::span<std::byte> to) const override {
    return ranks_->results()->read(rank_on(worker), offset, to);
  }

 private:
  /// A worker that has lost its seat still sees itself there.
  int rank_on(int seat) const {
    const bool own = members_->map().own_seat() == seat;
    return own ? members_->map().rank() : members_->map().holder(seat);
  }

  std::shared_ptr<Peers> ranks_;
  std::shared_ptr<membership::Members> members_;
};

}  // namespace

Link seated(Link link, std::shared_ptr<membership::Members> members, bool notes_progress) {
  return {std::make_unique<SeatedExchange>(std::move(link.exchange), members, notes_progress),
          std::make_shared<SeatedPeers>(std::move(link.peers), members)};
}

RoundEdges in_ranks(RoundEdges edges, const membership::Members& members) {
  for (auto* seats : {&edges.sources, &edges.destinations}) {
    for (int& worker : *seats) worker = members.map().holder(worker);
  }
  return edges;
}

}  // namespace fast::exchange
