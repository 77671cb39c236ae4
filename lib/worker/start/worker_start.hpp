// How a worker comes to its first round: with all others, or as a spare on a seat.
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "exchange/collective/host_broadcast.hpp"
#include "exchange/peers.hpp"
#include "membership/members.hpp"
#include "worker/context.hpp"
#include "worker/model_reader.hpp"
#include "worker/publisher.hpp"
#include "worker/recovery.hpp"

namespace fast::worker {

enum class Entered {
  trains,
  seat_taken,  ///< the spare's seat was not vacant any more
  not_needed,  ///< training ended before the spare joined
};

class WorkerStart {
 public:
  /// `members` may be null: then there are no spares. The others outlive this.
  WorkerStart(const Context& context, Peers& peers, std::shared_ptr<membership::Members> members,
              Publisher& publisher, const ModelReader& reader, Recovery& recovery)
      : worker_(context),
        peers_(peers),
        members_(std::move(members)),
        publisher_(publisher),
        reader_(reader),
        recovery_(recovery) {}

  /// Collective. The worker begins with all others.
  void begin();
  /// The worker was a spare. `come_to`: see Recovery.
  Entered take_seat(const membership::SeatOffer& offer, const Recovery::ComeTo& come_to);
  /// On its seat there was another worker, or was to be: the others may be in the midst of rounds.
  bool replaces() const { return replaces_; }

 private:
  void adopt_initial();
  void send_to_leaders(exchange::HostBroadcast& broadcast);
  void together(std::string_view purpose, const std::function<void()>& part) const;
  void note_republished(std::int64_t combinations);
  void announce_running();
  Entered join(const membership::SeatOffer& offer, const Recovery::ComeTo& come_to);
  Entered replace(const membership::SeatOffer& offer, const Recovery::ComeTo& come_to);

  Context worker_;
  Peers& peers_;
  std::shared_ptr<membership::Members> members_;
  Publisher& publisher_;
  const ModelReader& reader_;
  Recovery& recovery_;
  bool replaces_ = false;
};

}  // namespace fast::worker
