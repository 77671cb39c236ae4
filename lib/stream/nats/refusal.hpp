// Why a server and this program have not come together.
#pragma once

#include <nats/nats.h>

#include <string>
#include <string_view>

#include "stream/broker.hpp"

namespace fast::stream {

/// Throws Error(resource): what `status` and `why`, its text, say of the server, and what to do.
[[noreturn]] void refuse(const Address& address, std::string_view server, natsStatus status,
                         const std::string& why);

}  // namespace fast::stream
