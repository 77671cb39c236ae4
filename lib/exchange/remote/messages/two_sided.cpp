#include "exchange/remote/messages/two_sided.hpp"

namespace fast::exchange {

bool TwoSided::advance() {
  bool moved = incoming_.advance();
  moved |= outgoing_.advance();
  moved |= counters_.advance();
  if (incoming_.closed()) close();
  return moved;
}

void TwoSided::close() {
  outgoing_.close();
  counters_.close();
}

bool TwoSided::closed() { return outgoing_.closed() && incoming_.closed() && counters_.closed(); }

}  // namespace fast::exchange
