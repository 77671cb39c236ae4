#include "exchange/remote/replicator_factory.hpp"

#include "exchange/remote/messages/send_recv_replicator.hpp"
#include "exchange/remote/pull/rma_replicator.hpp"

namespace fast::exchange {
namespace {

/// Within a round the edges change only when a spare takes a seat.
constexpr Seconds look_again{0.05};

}  // namespace

void ReplicatorFactory::follow_neighbors() {
  const std::int64_t now = edges_.consumed();
  const bool is_due = Clock::now() - looked_ >= look_again;
  if (now == round_ && !is_due) return;
  round_ = now;
  looked_ = Clock::now();
  for (const std::int64_t round : {now, now + 1}) {
    const RoundEdges edges = edges_.plan(round);
    for (const int worker : edges.sources) follow(worker);
    for (const int worker : edges.destinations) follow(worker);
  }
}

void ReplicatorFactory::accept_unsolicited() {
  const auto message = ways_.messages->unsolicited();
  if (!message) return;
  message->tag == failure_tag ? failures_.take(message->rank) : follow(message->rank);
}

void ReplicatorFactory::follow(int worker) {
  const RemotePath path = ways_.path(worker);
  if (path == RemotePath::none || replicators_.follows(worker)) return;
  if (path == RemotePath::two_sided) {
    replicators_.add(std::make_unique<SendRecvReplicator>(edges_, *ways_.messages, worker));
  } else {
    replicators_.add(std::make_unique<RmaReplicator>(edges_, *ways_.window, worker));
  }
}

}  // namespace fast::exchange
