#include "mpi/retired_windows.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <iterator>
#include <mutex>
#include <utility>

#include "mpi/impl.hpp"

namespace fast::mpi {
namespace {

constexpr auto freeing = "freeing windows of before";

struct Registry {
  std::mutex mutex;
  std::vector<RetiredWindow> windows;
};

/// To the process's end: windows outlive all objects.
Registry& registry() {
  static auto* const all = new Registry;
  return *all;
}

/// The place of each of these ranks of the world in the communicator; none if one is missing.
std::vector<std::size_t> places_of(const std::vector<int>& ranks, const Communicator& in) {
  const std::vector<int>& all = in.impl()->world_ranks;
  std::vector<std::size_t> places;
  for (const int rank : ranks) {
    const auto found = std::ranges::find(all, rank);
    if (found == all.end()) return {};
    places.push_back(static_cast<std::size_t>(found - all.begin()));
  }
  return places;
}

/// Those that may be freed with these ranks, by their numbers. Another thread cannot take them too.
std::vector<RetiredWindow> take_those_of(const Communicator& communicator) {
  Registry& all = registry();
  const std::lock_guard lock(all.mutex);
  const auto others = std::stable_partition(
      all.windows.begin(), all.windows.end(),
      [&](const RetiredWindow& one) { return places_of(one.ranks, communicator).empty(); });
  std::vector<RetiredWindow> taken(std::make_move_iterator(others),
                                   std::make_move_iterator(all.windows.end()));
  all.windows.erase(others, all.windows.end());
  std::ranges::sort(taken, [](const auto& a, const auto& b) { return a.number < b.number; });
  return taken;
}

bool lists(const std::string& numbers, std::uint64_t number) {
  for (std::size_t at = 0; at < numbers.size(); at += sizeof number) {
    if (std::memcmp(numbers.data() + at, &number, sizeof number) == 0) return true;
  }
  return false;
}

std::string numbers_of(const std::vector<RetiredWindow>& windows) {
  std::string numbers;
  for (const RetiredWindow& one : windows)
    numbers.append(reinterpret_cast<const char*>(&one.number), sizeof one.number);
  return numbers;
}

}  // namespace

std::uint64_t number_window(const Communicator& communicator, const Deadline& deadline) {
  static std::atomic<std::uint32_t> windows{0};
  std::uint64_t number = static_cast<std::uint64_t>(communicator.impl()->world_ranks.front()) << 32;
  if (communicator.rank() == 0) number |= ++windows;
  const std::string_view bytes(reinterpret_cast<const char*>(&number), sizeof number);
  const auto all = communicator.all_gather(bytes, deadline, "numbering a window");
  std::memcpy(&number, all.front().data(), sizeof number);
  return number;
}

void retire(RetiredWindow window) {
  const std::lock_guard lock(registry().mutex);
  registry().windows.push_back(std::move(window));
}

void free_retired(const Communicator& communicator, const Deadline& deadline) {
  std::vector<RetiredWindow> windows = take_those_of(communicator);
  for (const RetiredWindow& one : windows)
    if (one.look) one.look();
  const auto listed = communicator.all_gather(numbers_of(windows), deadline, freeing);
  for (RetiredWindow& one : windows) {
    const std::vector<std::size_t> places = places_of(one.ranks, communicator);
    const bool by_all = std::ranges::all_of(
        places, [&](std::size_t place) { return lists(listed[place], one.number); });
    by_all ? call_together(communicator, deadline, freeing, "MPI_Win_free", std::move(one.free))
           : retire(std::move(one));
  }
}

}  // namespace fast::mpi
