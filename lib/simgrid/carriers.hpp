// Messages between hosts. SimGrid starts messages in actors only at a cost that does not grow with
// the number of messages on their way: each host has an actor that sends, and actors that receive,
// one for each message on its way.
#pragma once

#include <simgrid/s4u.hpp>

#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <vector>

namespace fast::simgrid {

class Carriers {
 public:
  using Event = std::function<void()>;
  void send(::simgrid::s4u::Host* from, ::simgrid::s4u::Host* to, double size_bytes, Event arrived);

 private:
  struct Receiver {
    ::simgrid::s4u::Mailbox* box = nullptr;
    ::simgrid::s4u::SemaphorePtr called;
    Event arrived;
    ::simgrid::s4u::CommPtr sending;
  };
  struct Message {
    Receiver* receiver = nullptr;
    double size_bytes = 0;
  };
  struct Sender {
    ::simgrid::s4u::SemaphorePtr called;
    std::deque<Message> messages;
  };

  Sender& sender(::simgrid::s4u::Host* host);
  Receiver& idle_receiver(::simgrid::s4u::Host* host);
  static void keep_sending(Sender& sender);
  static void keep_receiving(Receiver& receiver, std::vector<Receiver*>& idle);

  std::map<::simgrid::s4u::Host*, std::unique_ptr<Sender>> senders_;
  std::map<::simgrid::s4u::Host*, std::vector<Receiver*>> idle_;
  std::vector<std::unique_ptr<Receiver>> receivers_;
};

}  // namespace fast::simgrid
