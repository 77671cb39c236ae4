#include "exchange/remote/messages/failure_news.hpp"

#include <fast/core/error.hpp>

#include "exchange/remote/messages/frame.hpp"

namespace fast::exchange {
namespace {

constexpr Seconds longest_closing{0.5};

/// Whether it is done or has failed: a worker that is gone needs no news.
bool is_over(mpi::Request& request) {
  try {
    return request.test();
  } catch (const Error&) {
    return true;
  }
}

}  // namespace

bool FailureNews::advance() {
  const bool moved = std::erase_if(sent_, is_over) + std::erase_if(received_, is_over) > 0;
  const WorkerHeader& own = edges_.board->header(edges_.rank);
  if (is_settled_ || status_of(own) != WorkerStatus::failed) return moved;
  is_settled_ = true;
  if (own.claim.is_cause.load() == 0) return moved;
  closing_ = Deadline(longest_closing);
  for (int worker = 0; worker < edges_.board->workers(); ++worker) send(worker);
  return true;
}

void FailureNews::send(int worker) {
  if (ways_.path(worker) == RemotePath::none) return;
  try {
    sent_.push_back(ways_.messages->send(worker, failure_tag, nullptr, 0));
  } catch (const Error&) {  // it is gone
  }
}

void FailureNews::take(int worker) {
  received_.push_back(ways_.messages->receive(worker, failure_tag, nullptr, 0));
  MirrorWriter(*edges_.board, worker).set_status(WorkerStatus::failed);
}

bool FailureNews::closed() {
  advance();
  return received_.empty() && (sent_.empty() || closing_.expired());
}

}  // namespace fast::exchange
