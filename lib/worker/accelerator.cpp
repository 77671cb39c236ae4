#include <fast/worker/accelerator.hpp>

namespace fast {

Link Accelerator::open(const Group& group, const PayloadShape& shape, EdgePlan plan,
                       const ExchangeOptions& options) {
  Link link = group.open(shape, std::move(plan), options);
  link.exchange = staged_exchange(std::move(link.exchange), shape, work());
  return link;
}

}  // namespace fast
