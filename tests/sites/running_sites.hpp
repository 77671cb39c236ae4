// Sites as threads of one process, on a bus inside it.
#pragma once

#include <fast/core/deadline.hpp>
#include <fast/core/error.hpp>
#include <fast/exchange/local.hpp>
#include <fast/sites/site.hpp>
#include <fast/worker/worker.hpp>

#include <chrono>
#include <exception>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "memory_bus.hpp"
#include "sites/job_site.hpp"

namespace fast::testing {

/// "a" is the first one: names are in the order of workers' ranks.
inline std::string site_name(int place) { return std::string(1, static_cast<char>('a' + place)); }

constexpr int steps_between = 3;
/// For tests in which a site falls silent. In others, a busy machine may hold a site for longer.
constexpr Seconds short_silence{1};

inline sites::SiteOptions options_of(int place, int count) {
  sites::SiteOptions options;
  options.name = site_name(place);
  options.every = steps_between;
  options.silence = Seconds(20);
  options.patience = Seconds(30);
  options.expect = count;
  return options;
}

/// Not of a NATS server.
inline std::shared_ptr<SiteExchange> site_on(const std::shared_ptr<MemoryHub>& hub,
                                             const sites::SiteOptions& options) {
  return std::make_shared<sites::JobSite>(options, [hub, name = options.name](const LogSink&) {
    return std::make_unique<MemoryBus>(hub, name);
  });
}

/// Calls run(place) for each site on a thread of its own. Throws the first error.
inline void run_sites(int count, const std::function<void(int)>& run) {
  std::exception_ptr first;
  std::mutex mutex;
  {
    std::vector<std::jthread> threads;
    for (int place = 0; place < count; ++place) {
      threads.emplace_back([&, place] {
        try {
          run(place);
        } catch (...) {
          const std::lock_guard lock(mutex);
          if (!first) first = std::current_exception();
        }
      });
    }
  }
  if (first) std::rethrow_exception(first);
}

/// For a minute at most.
inline void wait_until(const std::function<bool()>& is_over) {
  const Deadline longest(Seconds(60));
  while (!is_over() && !longest.expired())
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

inline WorkerOptions none_inside() {
  WorkerOptions options;
  options.algorithm = algorithm::none();
  return options;
}

/// A Worker of one rank that is the site.
inline Worker site_worker(std::vector<TensorView> tensors, std::shared_ptr<SiteExchange> site,
                          WorkerOptions options = none_inside()) {
  options.site = std::move(site);
  return {local::make_groups(1)[0], stencil::ring(), std::move(tensors), options};
}

}  // namespace fast::testing
