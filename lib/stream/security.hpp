// Files of Security: what can be seen before a server is asked.
#pragma once

#include <string>
#include <string_view>

#include "stream/broker.hpp"

namespace fast::stream {

inline constexpr char password_variable[] = "FAST_NATS_PASSWORD_FILE";

/// Reads the secret of the password's file, unless the address has one. Adds notices. Throws
/// Error(argument), naming `option`, when a file cannot be used, and when two things log in.
void check_security(std::string_view option, Address& address);

/// The public key in the file of an nkey. Empty: there is none.
std::string public_nkey(const std::string& file);

}  // namespace fast::stream
