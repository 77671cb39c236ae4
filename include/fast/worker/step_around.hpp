// Adapters use it whose frameworks keep their tensors elsewhere than in the worker's views.
#pragma once

#include <fast/worker/worker.hpp>

#include <type_traits>
#include <utility>

namespace fast {

/// One round, as Worker::step(train, options), whose result it returns; `bring` puts trained values
/// into the worker's views before they are published, `take` averaged ones back afterwards.
template <class Train, class Bring, class Take>
auto step_around(Worker& worker, Train&& train, Bring&& bring, Take&& take,
                 const StepOptions& options = {}) {
  if constexpr (std::is_void_v<std::invoke_result_t<Train>>) {
    worker.step(
        [&] {
          train();
          bring();
        },
        options);
    take();
  } else {
    auto result = worker.step(
        [&] {
          auto value = train();
          bring();
          return value;
        },
        options);
    take();
    return result;
  }
}

}  // namespace fast
