// What sources and readers have in common.
#pragma once

#include "stream/nats/connection.hpp"

namespace fast::stream {

/// Takes the handle over.
Message message_of_handle(natsMsg* from);

/// Throws Error(resource) when the connection is closed.
ContextHandle context_of(const Connection& connection);

}  // namespace fast::stream
