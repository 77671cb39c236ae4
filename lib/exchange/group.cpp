#include <algorithm>
#include <chrono>
#include <fast/core/error.hpp>
#include <fast/core/message.hpp>
#include <fast/exchange/group.hpp>
#include <thread>
#include <utility>

#include "exchange/collective/slot_reducer.hpp"
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
  const bool several_hosts = std::count(on.begin(), on.end(), on.front()) < size();
  const bool keeps_copy =
      several_hosts && options.remote_path == RemotePathChoice::pull && options.staleness != 0;
  auto board = std::make_shared<const SlotBoard>(
      impl_->allocate_board(SlotLayout(shape, keeps_copy), deadline), shape, keeps_copy);
  impl_->note_link(board);
  board->header(rank()).constant.magic.store(board_magic, std::memory_order_relaxed);
  const auto heartbeat = std::make_shared<Heartbeat>(board, rank(), options.suspect_after);
  auto peers = std::make_shared<SlotPeers>(heartbeat, impl_->connect(board, plan, options));
  auto slots = std::make_unique<SlotExchange>(heartbeat, std::move(plan), options);
  return {std::move(slots), std::move(peers)};
}

namespace {

/// The failures that the launcher reports, and those that workers have announced on that link.
std::vector<int> failures(const GroupImpl& group, const std::weak_ptr<const SlotBoard>& link) {
  std::vector<int> all = group.failed();
  if (const auto board = link.lock()) {
    const std::vector<int> announced = board->failed();
    all.insert(all.end(), announced.begin(), announced.end());
  }
  return all;
}

ExitReports ends_of(const std::shared_ptr<GroupImpl>& group) {
  ExitReports ends;
  if (group->knows_ends()) ends.all = [group] { return group->ended(); };
  ends.failed = [group, link = group->latest_link()] { return failures(*group, link); };
  return ends;
}

/// Collective. Spreads failures between hosts. Null if the group has a link already.
std::shared_ptr<Peers> open_failures(const Group& group, ExchangeOptions options) {
  if (!GroupImpl::of(group).latest_link().expired()) return nullptr;
  options.remote_path = RemotePathChoice::two_sided;
  return group
      .open(
          {}, [](std::int64_t) { return RoundEdges{}; }, options)
      .peers;
}

}  // namespace

std::unique_ptr<Reducer> Group::open_reducer(std::size_t size_bytes,
                                             const ExchangeOptions& options) const {
  if (impl_->reduces_by_mpi()) {
    auto peers = open_failures(*this, options);
    return impl_->reducer(options, ends_of(impl_), std::move(peers));
  }
  const PayloadShape shape{size_bytes, 1, 0};
  auto board = std::make_shared<const SlotBoard>(
      allocate(SlotLayout(shape).part_bytes(), Deadline(options.deadline)), shape);
  const auto heartbeat =
      std::make_shared<Heartbeat>(std::move(board), rank(), options.suspect_after);
  return std::make_unique<SlotReducer>(heartbeat, options, ends_of(impl_));
}

bool is_of_a_loss(const Group& group, const Error& error) {
  if (error.kind() != ErrorKind::deadline && error.kind() != ErrorKind::peer_failed) return false;
  for (const Deadline news(longest_news); !group.some_are_gone();) {
    if (news.expired()) return false;
    std::this_thread::sleep_for(look_for_news);
  }
  return true;
}

void agree(const Group& group, const Deadline& deadline, std::string_view purpose,
           const std::function<void()>& part) {
  std::string mine;
  try {
    part();
  } catch (const Error& error) {
    mine = fmt::format("{} {}", static_cast<int>(error.kind()), error.what());
  } catch (const std::exception& error) {
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
