#include <cmath>

#include "core/numbers.hpp"
#include "simgrid/carriers.hpp"

namespace fast::simgrid {

namespace s4u = ::simgrid::s4u;

void Carriers::send(s4u::Host* from, s4u::Host* to, double size_bytes, Event arrived) {
  Receiver& receiver = idle_receiver(to);
  receiver.arrived = std::move(arrived);
  receiver.called->release();
  Sender& sending = sender(from);
  sending.messages.push_back({&receiver, size_bytes});
  sending.called->release();
}

Carriers::Sender& Carriers::sender(s4u::Host* host) {
  std::unique_ptr<Sender>& known = senders_[host];
  if (known) return *known;
  known = std::make_unique<Sender>();
  known->called = s4u::Semaphore::create(0);
  s4u::Actor::create("sender", host, [&self = *known] { keep_sending(self); });
  return *known;
}

Carriers::Receiver& Carriers::idle_receiver(s4u::Host* host) {
  std::vector<Receiver*>& idle = idle_[host];
  if (!idle.empty()) {
    Receiver* found = idle.back();
    idle.pop_back();
    return *found;
  }
  receivers_.push_back(std::make_unique<Receiver>());
  Receiver& made = *receivers_.back();
  made.box = s4u::Mailbox::by_name(std::to_string(receivers_.size()));
  made.called = s4u::Semaphore::create(0);
  s4u::Actor::create("receiver", host, [&made, &idle] { keep_receiving(made, idle); });
  return made;
}

void Carriers::keep_sending(Sender& sender) {
  static char nothing = 0;
  s4u::Actor::self()->daemonize();
  for (;;) {
    sender.called->acquire();
    const Message message = sender.messages.front();
    sender.messages.pop_front();
    const auto size = saturate<std::uint64_t>(std::round(message.size_bytes));
    message.receiver->sending = message.receiver->box->put_async(&nothing, size);
  }
}

void Carriers::keep_receiving(Receiver& receiver, std::vector<Receiver*>& idle) {
  s4u::Actor::self()->daemonize();
  for (;;) {
    receiver.called->acquire();
    receiver.box->get<char>();
    receiver.sending = nullptr;
    const Event arrived = std::move(receiver.arrived);
    idle.push_back(&receiver);
    arrived();
  }
}

}  // namespace fast::simgrid
