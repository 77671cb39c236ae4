#include "exchange/remote/pull/header_fetch.hpp"

namespace fast::exchange {

bool HeaderFetch::advance(bool is_followed) {
  if (state_ == State::idle) {
    header_.begin();
    state_ = State::looking;
    return true;
  }
  if (state_ == State::ended || !header_.test()) return false;
  mirror_.merge(header_.header());
  mirror_.set_reduced(reduced_of(header_.header()));
  mirror_.set_seen_status(status_of(header_.header()));
  if (!is_followed) mirror_.set_status(status_of(header_.header()));
  state_ = State::ended;
  return true;
}

}  // namespace fast::exchange
