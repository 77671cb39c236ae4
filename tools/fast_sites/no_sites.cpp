// Where the client library of NATS, or OpenSSL, was not found when this was built.
#include <fast/core/error.hpp>

#include "fast_sites/commands.hpp"

namespace fast_sites {
namespace {

[[noreturn]] void fail_without_sites() {
  fast::fail(fast::ErrorKind::resource,
             "this program was built without sites; install libnats-dev and libssl-dev, and build "
             "again");
}

}  // namespace

void status(const Access&, const StatusOptions&) { fail_without_sites(); }
void wait(const Access&, const WaitOptions&) { fail_without_sites(); }
void fetch(const Access&, const FetchOptions&) { fail_without_sites(); }

}  // namespace fast_sites
