#include <fast/core/error.hpp>
#include <fast/topology/schedules.hpp>
#include <fast/topology/stencil.hpp>

namespace fast::schedule {

TopologyRule one_peer_exponential() {
  const std::string name = "one_peer_exponential";
  return {name, [name](int workers) {
            std::vector<Topology> rounds;
            std::int64_t hop = 1;
            do {
              const Offsets offset = {{static_cast<int>(-hop)}};
              rounds.emplace_back(fmt::format("hop {}", hop),
                                  std::make_shared<StencilGraph>(GridShape{{workers}}, offset));
              hop *= 2;
            } while (hop < workers);
            return Schedule(name, std::move(rounds));
          }};
}

}  // namespace fast::schedule
