#include "rank_links.hpp"

#include <fmt/format.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <random>

#include "keep_alive.hpp"

namespace fastrun {
namespace {

std::string random_token() {
  std::random_device device;
  return fmt::format("{:08x}{:08x}{:08x}", device(), device(), device());
}

}  // namespace

RankLinks::RankLinks(bool is_on_one_host)
    : token_(random_token()), listener_(listen_for_ranks(is_on_one_host)) {}

bool RankLinks::accept(fast::Seconds lost_after) {
  const int connection =
      accept4(listener_.descriptor.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
  if (connection >= 0) {
    fail_when_lost(connection, lost_after);
    wrappers_.push_back({Lines(Descriptor(connection))});
    return true;
  }
  return (errno != EMFILE && errno != ENFILE) || drop_a_stranger();
}

/// The one that has waited for longest.
bool RankLinks::drop_a_stranger() {
  const auto stranger = std::find_if(wrappers_.begin(), wrappers_.end(),
                                     [](const WrapperEnd& one) { return !one.trusted; });
  if (stranger == wrappers_.end()) return false;
  wrappers_.erase(stranger);
  return true;
}

void RankLinks::close_strangers() {
  std::erase_if(wrappers_,
                [](const WrapperEnd& one) { return !one.trusted && one.patience.expired(); });
}

void RankLinks::watch(std::vector<pollfd>& watched) const {
  watched.push_back({listener_.descriptor.get(), POLLIN, 0});
  for (const WrapperEnd& wrapper : wrappers_)
    watched.push_back({wrapper.lines.descriptor(), POLLIN, 0});
}

void RankLinks::erase(std::size_t index) {
  wrappers_.erase(wrappers_.begin() + static_cast<std::ptrdiff_t>(index));
}

void RankLinks::send(int rank, const std::string& line) const {
  for (const WrapperEnd& wrapper : wrappers_)
    if (wrapper.rank == rank) wrapper.lines.send(line);
}

void RankLinks::report_ranks(const std::string& line) const {
  for (const WrapperEnd& wrapper : wrappers_)
    if (wrapper.rank >= 0) wrapper.lines.send(line);
}

}  // namespace fastrun
