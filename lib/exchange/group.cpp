#include <algorithm>
#include <chrono>
#include <fast/core/deadline.hpp>
#include <fast/core/error.hpp>
#include <fast/exchange/group.hpp>
#include <utility>

#include "core/ended_by_check.hpp"
#include "core/message.hpp"
#include "core/waits.hpp"
#include "exchange/collective/all_reduce.hpp"
#include "exchange/group_impl.hpp"
#include "exchange/shared/slot_exchange.hpp"
#include "membership/members.hpp"

namespace fast {

using namespace exchange;

namespace {
constexpr Seconds longest_news{1.5};  ///< of the launcher, on several hosts
constexpr auto look_for_news = std::chrono::milliseconds(10);
}  // namespace

int Group::rank() const { return impl_->rank(); }
int Group::size() const { return impl_->size(); }
std::string Group::name() const { return impl_->name(); }
std::vector<int> Group::hosts() const { return impl_->hosts(); }

int Group::spares() const { return everyone().size() - size(); }
Group Group::everyone() const {
  const Group* all = impl_->everyone();
  return all == nullptr ? *this : *all;
}
Group Group::founders() const {
  const Group* first = impl_->founders();
  return first == nullptr ? *this : *first;
}
bool Group::has_seat() const {
  const auto members = impl_->members();
  return !members || members->map().has_seat();
}
std::vector<int> Group::replaced() const {
  const auto members = impl_->members();
  return members ? members->map().taken() : std::vector<int>{};
}

std::vector<int> Group::joined() const {
  const auto members = impl_->members();
  return members ? members->map().joined() : std::vector<int>{};
}

std::vector<std::string> Group::all_gather(std::string_view bytes, const Deadline& deadline,
                                           std::string_view purpose) const {
  return impl_->all_gather(bytes, deadline, purpose);
}

void Group::barrier(const Deadline& deadline, std::string_view purpose) const {
  all_gather({}, deadline, purpose);
}

Region Group::allocate(std::size_t bytes_per_worker, const Deadline& deadline) const {
  return impl_->allocate(bytes_per_worker, deadline);
}

bool Group::some_are_gone() const { return impl_->some_are_gone(); }
std::vector<int> Group::died() const { return impl_->died(); }
void Group::disable_collectives() const { impl_->disable_collectives(); }

Link Group::open(const PayloadShape& shape, EdgePlan plan, const ExchangeOptions& options) const {
  const Deadline deadline(options.deadline);
  // Above staleness 0 nobody waits for reads of other hosts.
  const std::vector<int> on = hosts();
  const bool several_hosts = std::ranges::count(on, on.front()) < size();
  const bool keeps_copy =
      several_hosts && options.remote_path == RemotePathChoice::pull && options.staleness != 0;
  auto board = std::make_shared<const SlotBoard>(
      impl_->allocate_board(SlotLayout(shape, keeps_copy), deadline), shape, keeps_copy);
  board->header(rank()).constant.magic.store(board_magic, std::memory_order_relaxed);
  const auto heartbeat = std::make_shared<Heartbeat>(board, rank(), options.suspect_after);
  auto peers = std::make_shared<SlotPeers>(heartbeat, impl_->connect(board, plan, options));
  impl_->note_link(peers, false);
  auto slots = std::make_unique<SlotExchange>(heartbeat, std::move(plan), options);
  return {impl_->over(std::move(slots)), std::move(peers)};
}

namespace {

/// The failures that the launcher reports, and those that workers have announced on that link.
std::vector<int> failures(const GroupImpl& group, const SlotPeers& link) {
  std::vector<int> all = group.failed();
  const std::vector<int> announced = link.heartbeat()->board()->failed();
  all.insert(all.end(), announced.begin(), announced.end());
  return all;
}

/// Collective. The latest link, or else a new one without payloads.
std::shared_ptr<SlotPeers> link_for_reducers(const Group& group, ExchangeOptions options) {
  GroupImpl& impl = GroupImpl::of(group);
  if (auto link = impl.latest_link()) return link;
  options.remote_path = RemotePathChoice::two_sided;
  const Link opened = group.open(
      {}, [](std::int64_t) { return RoundEdges{}; }, options);
  impl.note_link(impl.latest_link(), true);
  return impl.latest_link();
}

}  // namespace

namespace exchange {
ExitReports exit_reports(const Group& group) {
  ExitReports ends;
  const auto impl = GroupImpl::shared(group);
  if (impl->knows_ends()) ends.all = [impl] { return impl->ended(); };
  ends.failed = [impl, peers = impl->latest_link()] { return failures(*impl, *peers); };
  return ends;
}
}  // namespace exchange

std::unique_ptr<Reducer> Group::open_reducer(std::size_t size_bytes,
                                             const ExchangeOptions& options) const {
  ReducerLink link{link_for_reducers(*this, options), impl_->link_is_for_reducers(), {}};
  link.ends = exit_reports(*this);
  if (auto by_mpi = impl_->mpi_reducer(link, options.deadline)) return by_mpi;
  Region memory = allocate(SlotReducer::part_bytes(size_bytes), Deadline(options.deadline));
  return std::make_unique<SlotReducer>(std::move(memory), size_bytes, std::move(link), options);
}

bool is_of_a_loss(const Group& group, const Error& error) {
  if (error.kind() != ErrorKind::deadline && error.kind() != ErrorKind::peer_failed) return false;
  return look_until([&] { return group.some_are_gone(); }, Deadline(longest_news), look_for_news);
}

void agree(const Group& group, const Deadline& deadline, std::string_view purpose,
           const std::function<void()>& part) {
  std::string mine;
  try {
    part();
  } catch (const Error& error) {
    mine = fmt::format("{} {}", static_cast<int>(error.kind()), error.what());
  } catch (const std::exception& error) {
    if (ended_by_check()) throw;
    mine =
        fmt::format("{} {}: {}", static_cast<int>(ErrorKind::internal), purpose, message_of(error));
  }
  for (const std::string& outcome : group.all_gather(mine, deadline, purpose)) {
    if (outcome.empty()) continue;
    const std::size_t space = outcome.find(' ');
    throw Error(static_cast<ErrorKind>(std::stoi(outcome.substr(0, space))),
                outcome.substr(space + 1), true);
  }
}

}  // namespace fast
