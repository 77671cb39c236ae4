#include <fast/core/error.hpp>

#include "fast_sim/options.hpp"

namespace fast_sim {

Result run_on_network(const fast::simulation::Workload&, const Options&) {
  fast::fail(fast::ErrorKind::argument,
             "this program was built without SimGrid; give --model recurrence, or install "
             "libsimgrid-dev and build again");
}

}  // namespace fast_sim
