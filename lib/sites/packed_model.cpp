#include "sites/packed_model.hpp"

#include <vector>

namespace fast::sites {

ParameterLayout packed_layout(const ParameterLayout& model, std::byte* packed) {
  std::vector<TensorView> views = model.views();
  const std::vector<Segment> places = model.tensors();
  for (std::size_t i = 0; i < views.size(); ++i) {
    views[i].data = packed + places[i].offset_bytes;
    views[i].device = Device{};
  }
  return ParameterLayout(std::move(views));
}

void write_change(const ParameterLayout& layout, std::byte* before, std::byte* now, std::byte* to) {
  for_tensors(layout, [&]<class T>(const Segment& place, T) {
    const std::span<T> old = elements<T>(place, before), current = elements<T>(place, now);
    const std::span<T> change = elements<T>(place, to);
    const bool adds = place.role == Role::parameter;
    for (std::size_t e = 0; e < old.size(); ++e)
      change[e] = adds ? current[e] - old[e] : current[e];
  });
}

void add_change(const ParameterLayout& layout, std::byte* change, std::byte* to) {
  for_tensors(layout, [&]<class T>(const Segment& place, T) {
    const std::span<T> by = elements<T>(place, change), values = elements<T>(place, to);
    const bool adds = place.role == Role::parameter;
    for (std::size_t e = 0; e < by.size(); ++e) values[e] = adds ? values[e] + by[e] : by[e];
  });
}

}  // namespace fast::sites
