#include "membership/gossip.hpp"

#include <span>
#include <utility>

namespace fast::membership {

Gossip::Gossip(const RecordBoard& board, const std::vector<int>& hosts,
               std::unique_ptr<Datagrams> datagrams)
    : words_(board.words_of_all()),
      datagrams_(std::move(datagrams)),
      random_(static_cast<unsigned>(board.rank()) + 1) {
  const int own = hosts[static_cast<std::size_t>(board.rank())];
  for (int rank = 0; rank < board.size(); ++rank) {
    here_.push_back(hosts[static_cast<std::size_t>(rank)] == own);
    if (!here_.back()) elsewhere_.push_back(rank);
  }
}

bool Gossip::receive() {
  return datagrams_ && datagrams_->receive(std::as_writable_bytes(std::span(words_)));
}

void Gossip::note(const RecordBoard& board) {
  if (datagrams_) board.copy_to(words_);
}

void Gossip::send() {
  if (!datagrams_) return;
  const int to = elsewhere_[random_() % elsewhere_.size()];
  datagrams_->send(to, std::as_bytes(std::span(words_)));
}

}  // namespace fast::membership
