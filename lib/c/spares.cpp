#include <algorithm>
#include <fast/exchange/spares.hpp>
#include <vector>

#include "c/handles.hpp"

using namespace fast;

namespace {

fast_status write_workers(const fast_group* group, std::vector<int> (Group::*which)() const,
                          int* workers, std::size_t room, std::size_t* count) {
  return c::guarded([&] {
    c::require_given(group, "group");
    c::require_given(count, "count");
    require(workers != nullptr || room == 0, ErrorKind::argument,
            "fast.h: workers is NULL, but room is {}", room);
    const std::vector<int> found = (group->group.*which)();
    *count = found.size();
    std::copy_n(found.begin(), std::min(room, found.size()), workers);
  });
}

}  // namespace

extern "C" {

fast_status fast_group_with_spares(const fast_group* everyone, int spares, fast_group** group) {
  return c::guarded([&] {
    c::require_given(everyone, "everyone");
    c::require_given(group, "group");
    *group = new fast_group{with_spares(everyone->group, spares)};
  });
}

int fast_launcher_spares(void) { return spares_of_launcher(); }

int fast_group_has_seat(const fast_group* group) {
  return group == nullptr ? -1 : static_cast<int>(group->group.has_seat());
}

fast_status fast_group_replaced(const fast_group* group, int* workers, size_t room, size_t* count) {
  return write_workers(group, &Group::replaced, workers, room, count);
}

fast_status fast_group_joined(const fast_group* group, int* workers, size_t room, size_t* count) {
  return write_workers(group, &Group::joined, workers, room, count);
}

fast_status fast_group_give_up(const fast_group* group) {
  return c::guarded([&] {
    c::require_given(group, "group");
    group->group.disable_collectives();
  });
}

}  // extern "C"
