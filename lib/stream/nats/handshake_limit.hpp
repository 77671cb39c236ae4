// The client library waits without end for a server that stops in the middle of a TLS handshake.
#pragma once

namespace fast::stream {

/// While it exists, contexts of TLS that this thread makes get a limit: a handshake ends when the
/// server says nothing for five seconds. Contexts of others in this process stay as they are.
class HandshakeLimit {
 public:
  HandshakeLimit();
  ~HandshakeLimit();
  HandshakeLimit(const HandshakeLimit&) = delete;
  HandshakeLimit& operator=(const HandshakeLimit&) = delete;
};

}  // namespace fast::stream
