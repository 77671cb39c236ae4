/* For programs that carry libstdc++ (FAST_CARRY_LIBSTDCXX): its random_device calls this, which
 * glibc has from 2.36 on only. */
#include <stdint.h>
#include <stdlib.h>
#include <unistd.h>

uint32_t arc4random(void);

uint32_t arc4random(void) {
  uint32_t value = 0;
  if (getentropy(&value, sizeof value) != 0) abort();
  return value;
}
