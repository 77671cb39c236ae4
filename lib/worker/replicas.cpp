#include <fast/worker/replicas.hpp>

#include <fmt/ranges.h>
#include <unistd.h>

#include <cstdio>
#include <exception>
#include <fast/core/error.hpp>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include "core/message.hpp"
#include "exchange/group_impl.hpp"
#include "mpi/farewell.hpp"
#include "worker/replica_watch.hpp"

namespace fast {
namespace {

/// Collective. The same on all ranks, or an error that all ranks throw.
worker::PlaceInReplicas place_of(const Group& all, int shards, const Deadline& deadline) {
  worker::PlaceInReplicas place;
  agree(all, deadline, "Replicas",
        [&] { place = worker::place_in_replicas(all.rank(), all.size(), shards); });
  const auto asked = all.all_gather(std::to_string(shards), deadline, "Replicas");
  for (std::size_t rank = 0; rank < asked.size(); ++rank) {
    if (asked[rank] == asked[0]) continue;
    throw Error(ErrorKind::argument,
                fmt::format("Replicas: rank 0 asks for {} shards, rank {} for {}; give the same "
                            "number",
                            asked[0], rank, asked[rank]),
                true);
  }
  return place;
}

/// This process ends as one that an error has ended, which another rank reports.
[[noreturn]] void end_as_failed() {
  mpi::flush_what_is_free();
  mpi::leave_because_of_others();
  _exit(1);
}

}  // namespace

struct Replicas::Impl {
  Impl(const mpi::Communicator& ranks, int shards, Seconds limit)
      : world(ranks),
        deadline(limit),
        all(ranks.split(0, Deadline(limit))),
        place(place_of(all, shards, Deadline(limit))),
        inside(ranks.split(place.index, Deadline(limit))),
        across(ranks.split(place.shard, Deadline(limit))),
        watch(std::make_shared<worker::ReplicaWatch>(
            all, Group(inside), place,
            worker::ReplicaWatch::Ends{[rank = ranks.rank()](const std::string& line) {
                                         if (!line.empty()) say("rank {}: {}\n", rank, line);
                                       },
                                       [] { end_as_failed(); }},
            limit)),
        check([this] {
          if (watch->has_failed_elsewhere())
            fail(ErrorKind::peer_failed, "Replicas: another rank has failed");
        }) {
    GroupImpl::of(across).set_part(watch);
  }

  /// All ranks throw the same error, which needs no further report.
  void drop(std::optional<Worker>& worker) {
    all_refuse = true;
    if (worker) worker->abandon();
    worker.reset();
  }

  /// Nobody waits for ranks that are gone.
  void give_up_collectives() const {
    world.disable_collectives();
    inside.disable_collectives();
    all.disable_collectives();
    across.disable_collectives();
  }

  mpi::Communicator world;
  Seconds deadline;
  Group all;
  worker::PlaceInReplicas place;
  mpi::Communicator inside;
  Group across;
  std::shared_ptr<worker::ReplicaWatch> watch;  ///< shared with `across`
  WaitCheck check;
  bool all_refuse = false;  ///< what the latest Worker was to be made of
};

Replicas::Replicas(const mpi::Communicator& ranks, int shards, Seconds deadline)
    : impl_(std::make_unique<Impl>(ranks, shards, deadline)) {}

Replicas::~Replicas() {
  if (std::uncaught_exceptions() > 0 && !impl_->all_refuse) impl_->watch->note_failure();
  impl_->watch->stop();
  if (!impl_->all.died().empty()) impl_->give_up_collectives();
}

int Replicas::index() const { return impl_->place.index; }
int Replicas::count() const { return impl_->place.count; }
int Replicas::shard() const { return impl_->place.shard; }
int Replicas::shards() const { return impl_->place.shards; }
const mpi::Communicator& Replicas::inside() const { return impl_->inside; }
const Group& Replicas::across() const { return impl_->across; }

namespace {

class Agreeing {
 public:
  explicit Agreeing(worker::ReplicaWatch& watch) : watch_(watch) { watch_.set_agreeing(true); }
  Agreeing(const Agreeing&) = delete;
  Agreeing& operator=(const Agreeing&) = delete;
  ~Agreeing() { watch_.set_agreeing(false); }

 private:
  worker::ReplicaWatch& watch_;
};

}  // namespace

Worker Replicas::make_worker(const TopologyRule& rule, std::vector<TensorView> part,
                             WorkerOptions options) const {
  std::optional<Worker> worker;
  const Deadline deadline(options.deadline);
  impl_->all_refuse = false;
  const Agreeing agreeing(*impl_->watch);  // ends before the worker
  try {
    agree(impl_->all, deadline, "Replicas: making workers",
          [&] { worker.emplace(impl_->across, rule, std::move(part), std::move(options)); });
  } catch (const Error& error) {
    if (error.everywhere()) impl_->drop(worker);
    throw;
  }
  return std::move(*worker);
}

std::vector<int> Replicas::agree_on(const std::vector<int>& numbers) const {
  impl_->all_refuse = false;
  const auto given = impl_->inside.all_gather(fmt::format("{}", fmt::join(numbers, " ")),
                                              Deadline(impl_->deadline), "Replicas::agree_on");
  std::set<int> all;
  for (const std::string& text : given) {
    std::istringstream one(text);
    for (int number = 0; one >> number;) all.insert(number);
  }
  return {all.begin(), all.end()};
}

}  // namespace fast
