// Instead of nats.cpp, where the client library was not found.
#include <fast/core/error.hpp>

#include "stream/broker.hpp"

namespace fast::stream {

std::unique_ptr<Broker> connect(const Address& address, const BrokerOptions&) {
  fail(ErrorKind::resource,
       "{}: this program was built without streams; install libnats-dev and build it again",
       address.shown);
}

}  // namespace fast::stream
