#include "exchange/remote/replicators.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <exception>

#include "core/leak_until_exit.hpp"

namespace fast::exchange {

void Replicators::add(std::unique_ptr<Replicator> replicator) {
  live_.push_back(std::move(replicator));
}

bool Replicators::follows(int worker) const {
  const auto is = [&](const auto& replicator) { return replicator->worker() == worker; };
  return std::ranges::any_of(live_, is) || std::ranges::any_of(failed_, is);
}

/// True when call(replicator) is true for any. Gives up those whose call throws.
template <class Call>
bool Replicators::any(const Call& call) {
  bool any = false;
  for (auto& replicator : live_) {
    try {
      any |= call(*replicator);
    } catch (const std::exception& error) {
      log_.warn(fmt::format("the connection to worker {} has failed: {}",
                            log_.number_of(replicator->worker()), error.what()));
      failed_.push_back(std::move(replicator));
    }
  }
  std::erase(live_, nullptr);
  return any;
}

Seconds Replicators::slowest_read() const {
  Seconds slowest{0};
  for (const auto& replicator : live_) slowest = std::max(slowest, replicator->slow_read());
  return slowest;
}

bool Replicators::advance() {
  return any([](Replicator& replicator) { return replicator.advance(); });
}

void Replicators::close() {
  any([](Replicator& replicator) {
    replicator.close();
    return false;
  });
}

bool Replicators::closed() {
  return !any([](Replicator& replicator) { return !replicator.closed(); });
}

void Replicators::leave_to_mpi() {
  for (auto* const replicators : {&live_, &failed_}) {
    for (auto& replicator : *replicators) leak_until_exit(std::move(replicator));
    replicators->clear();
  }
}

}  // namespace fast::exchange
