// Whether a worker takes part in training, and how it ends its part.
#pragma once

#include <memory>

#include "membership/members.hpp"
#include "worker/context.hpp"
#include "worker/publisher.hpp"

namespace fast::worker {

class Participation {
 public:
  /// `members` may be null: then there are no spares.
  Participation(const Context& context, std::shared_ptr<Peers> peers,
                std::shared_ptr<membership::Members> members)
      : worker_(context), peers_(std::move(peers)), members_(std::move(members)) {}

  /// False in a worker that a spare has replaced, and in one that has left.
  bool is_active() const { return !replaced_ && !departed_; }
  /// True when it has finished, failed or left, or was replaced.
  bool has_ended() const { return ended_; }
  /// As is_active(). Ends the worker's part, with a warning, if a spare has taken its seat.
  bool keeps_seat() { return is_active() && (!members_ || ended_ || looks_at_seat()); }

  // As Worker has them.
  void finish(Publisher& publisher);
  void leave();
  bool abandon() noexcept;

 private:
  bool looks_at_seat();
  void vacate() noexcept;

  Context worker_;
  std::shared_ptr<Peers> peers_;
  std::shared_ptr<membership::Members> members_;
  bool replaced_ = false, departed_ = false, ended_ = false, failed_ = false;
};

}  // namespace fast::worker
