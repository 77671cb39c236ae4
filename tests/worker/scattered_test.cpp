// Thousands of small tensors that lie apart train as one that has all elements.
#include <fast/exchange/local.hpp>
#include <fast/topology/stencil.hpp>
#include <fast/worker/worker.hpp>

#include <cstring>

#include "support/catch.hpp"
#include "support/golden.hpp"
#include "worker/quick.hpp"

using namespace fast;
using testing::expect;

namespace {

constexpr int tensors = 600, each = 7, large = 5000;

struct Model {
  std::vector<float> memory;
  std::vector<TensorView> views;

  /// Small tensors, a large one among them, each `gap` elements behind the one before.
  explicit Model(std::size_t gap) : memory((each + gap) * tensors + large + gap) {
    std::size_t next = 0;
    for (int k = 0; k < tensors; ++k) {
      const std::size_t count = k == tensors / 2 ? large : each;
      views.push_back(view_of(fmt::format("t{}", k), std::span(memory).subspan(next, count)));
      next += count + gap;
    }
  }
  void step(int rank) {
    float k = 0;
    for (const TensorView& view : views) {
      auto* values = static_cast<float*>(view.data);
      for (std::size_t e = 0; e < view.element_count(); ++e, ++k)
        values[e] += 0.1F * (k / 1000 + static_cast<float>(rank) - values[e]);
    }
  }
  std::vector<float> values() const {
    std::vector<float> all;
    for (const TensorView& view : views) {
      const auto* from = static_cast<const float*>(view.data);
      all.insert(all.end(), from, from + view.element_count());
    }
    return all;
  }
};

std::vector<float> trained(const Group& group, std::size_t gap, const std::string& rule,
                           const std::string& code) {
  Model model(gap);
  WorkerOptions options = testing::quick();
  options.algorithm = algorithm::by_name(rule);
  options.codec = codec::by_name(code);
  Worker worker(group, stencil::ring(), model.views, options);
  for (int t = 0; t < 6; ++t)
    worker.step([&] { model.step(group.rank()); }, {.learning_rate = 0.1});
  worker.await_finish();
  return model.values();
}

}  // namespace

TEST_CASE("small tensors that lie apart train bit for bit as those that lie together") {
  for (const char* rule : {"awc", "atc", "d2", "gradient_tracking", "choco", "allreduce"}) {
    for (const char* code : {"identity", "bf16", "int8"}) {
      const bool fits = std::string(code) == "identity" || std::string(rule) == "awc" ||
                        std::string(rule) == "atc";
      if (!fits) continue;
      local::run(2, [&](const Group& group) {
        const auto together = trained(group, 0, rule, code);
        const auto apart = trained(group, 9, rule, code);
        expect(std::memcmp(together.data(), apart.data(), together.size() * sizeof(float)) == 0,
               fmt::format("{} {}: the weights differ", rule, code));
      });
    }
  }
}

TEST_CASE("a worker follows small tensors to other memory") {
  local::run(2, [&](const Group& group) {
    Model first(9), second(5);
    Worker worker(group, stencil::ring(), first.views, testing::quick());
    worker.step([&] { first.step(group.rank()); });
    worker.rebind(second.views);
    const auto before = first.values();
    worker.step([&] { second.step(group.rank()); });
    expect(first.values() == before, "the old memory was written to");
    expect(second.values() != Model(5).values(), "the new memory was not");
    worker.await_finish();
  });
}
