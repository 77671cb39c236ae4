#include "stream/nats/handshake_limit.hpp"

#include <openssl/ssl.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <initializer_list>

namespace fast::stream {
namespace {

constexpr timeval longest_silence{5, 0};

thread_local bool is_on = false;

/// The library's sockets block during the handshake, and only then.
void on_state(const SSL* ssl, int where, int) {
  if ((where & SSL_CB_HANDSHAKE_START) == 0) return;
  for (const int option : {SO_RCVTIMEO, SO_SNDTIMEO})
    setsockopt(SSL_get_fd(ssl), SOL_SOCKET, option, &longest_silence, sizeof longest_silence);
}

/// OpenSSL calls it for each new context.
void on_context(void* context, void*, CRYPTO_EX_DATA*, int, long, void*) {
  if (is_on) SSL_CTX_set_info_callback(static_cast<SSL_CTX*>(context), on_state);
}

}  // namespace

HandshakeLimit::HandshakeLimit() {
  static const int slot = SSL_CTX_get_ex_new_index(0, nullptr, on_context, nullptr, nullptr);
  is_on = slot >= 0;
}

HandshakeLimit::~HandshakeLimit() { is_on = false; }

}  // namespace fast::stream
