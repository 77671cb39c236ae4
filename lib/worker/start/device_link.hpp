// How workers reach each other some or all of whose tensors are on devices.
#pragma once

#include <fast/worker/worker.hpp>

namespace fast::worker {

/// Collective. As Group::open() for payloads of that shape, whose vector 0, where `plain`, is the
/// weights as they are, unless those are beside it. Where all workers are on devices, messages stay
/// there as far as they read each other's: on one host as their accelerators say, between hosts by
/// an MPI that says it can, which is proved first.
Link open_link(const Group& group, const PayloadShape& shape, bool plain, EdgePlan plan,
               ExchangeOptions exchange, const std::shared_ptr<Accelerator>& accelerator);

}  // namespace fast::worker
