#pragma once

#include <fast/exchange/group.hpp>

namespace fast::testing {

void devices_train_as_hosts_do(const Group& group);
void devices_read_each_other_by_mpi(const Group& group);
void memory_that_mpi_misreads_is_staged(const Group& group);

}  // namespace fast::testing
