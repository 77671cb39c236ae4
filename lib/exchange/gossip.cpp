#include "exchange/gossip.hpp"

#include "exchange/group_impl.hpp"

namespace fast::exchange {
namespace {

std::vector<bool> on_this_host(const Group& group) {
  const std::vector<int> hosts = group.hosts();
  std::vector<bool> here;
  for (const int host : hosts)
    here.push_back(host == hosts[static_cast<std::size_t>(group.rank())]);
  return here;
}

}  // namespace

Gossip::Gossip(const Group& group, std::size_t words, const Deadline& deadline)
    : here_(on_this_host(group)),
      words_(here_.size() * words),
      notes_(GroupImpl::of(group).open_notes(words_.size() * sizeof(std::uint64_t), deadline)),
      random_(static_cast<unsigned>(group.rank()) + 1) {
  for (int rank = 0; rank < group.size(); ++rank)
    if (!here_[static_cast<std::size_t>(rank)]) elsewhere_.push_back(rank);
}

bool Gossip::receive() {
  return notes_ && notes_->receive(std::as_writable_bytes(std::span(words_)));
}

void Gossip::send() {
  if (!notes_) return;
  const int to = elsewhere_[random_() % elsewhere_.size()];
  notes_->send(to, std::as_bytes(std::span(words_)));
}

}  // namespace fast::exchange
