// Threads whose launcher reports a death.
#pragma once

#include <fast/exchange/group.hpp>

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "exchange/group_impl.hpp"

namespace fast::testing {

/// A group of threads whose launcher reports the deaths that the test says.
class Reported : public GroupImpl {
 public:
  using Deaths = std::function<std::vector<int>()>;

  Reported(Group threads, Deaths deaths)
      : threads_(std::move(threads)), deaths_(std::move(deaths)) {}
  int rank() const override { return threads_.rank(); }
  int size() const override { return threads_.size(); }
  std::string name() const override { return "reported"; }
  std::vector<std::string> all_gather(std::string_view bytes, const Deadline& deadline,
                                      std::string_view purpose) override {
    return threads_.all_gather(bytes, deadline, purpose);
  }
  Region allocate(std::size_t bytes, const Deadline& deadline) override {
    return threads_.allocate(bytes, deadline);
  }
  std::shared_ptr<GroupImpl> subgroup(int color, const Deadline& deadline) override {
    return GroupImpl::of(threads_).subgroup(color, deadline);
  }
  std::vector<int> died() const override { return deaths_(); }

 private:
  Group threads_;
  Deaths deaths_;
};

/// The death of that worker is reported as soon as `reports` is true.
inline Group reported(const Group& threads, int worker, const std::atomic<bool>& reports) {
  return GroupImpl::group(std::make_shared<Reported>(threads, [worker, &reports] {
    return reports ? std::vector<int>{worker} : std::vector<int>{};
  }));
}

}  // namespace fast::testing
