#include "combine/element_work.hpp"

namespace fast::combine {
namespace {

template <class... Rules>
std::optional<DeviceRule> one_of(const std::any& arithmetic, const std::variant<Rules...>*) {
  std::optional<DeviceRule> found;
  const auto look = [&]<class Rule>(const Rule* rule) {
    if (rule != nullptr) found = *rule;
  };
  (look(std::any_cast<Rules>(&arithmetic)), ...);
  return found;
}

}  // namespace

std::optional<DeviceRule> device_rule(const algorithm::Algorithm& algorithm) {
  return one_of(algorithm.arithmetic(), static_cast<const DeviceRule*>(nullptr));
}

}  // namespace fast::combine
