#include "train/control/agreement_news.hpp"

#include "exchange/group_impl.hpp"
#include "train/control/agreement_records.hpp"

namespace fast::train {
namespace {

std::vector<bool> on_this_host(const Group& group) {
  const std::vector<int> hosts = group.hosts();
  std::vector<bool> here;
  for (const int host : hosts)
    here.push_back(host == hosts[static_cast<std::size_t>(group.rank())]);
  return here;
}

}  // namespace

AgreementNews::AgreementNews(const Group& group, const Deadline& deadline)
    : here_(on_this_host(group)),
      words_(here_.size() * AgreementRecord::words),
      notes_(group.impl().open_notes(words_.size() * sizeof(std::uint64_t), deadline)),
      random_(static_cast<unsigned>(group.rank()) + 1) {
  for (int worker = 0; worker < group.size(); ++worker)
    if (!here_[static_cast<std::size_t>(worker)]) elsewhere_.push_back(worker);
}

bool AgreementNews::receive() {
  return notes_ && notes_->receive(std::as_writable_bytes(std::span(words_)));
}

void AgreementNews::send() {
  if (!notes_) return;
  const int to = elsewhere_[random_() % elsewhere_.size()];
  notes_->send(to, std::as_bytes(std::span(words_)));
}

}  // namespace fast::train
