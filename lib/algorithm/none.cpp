#include <fast/algorithm/rules.hpp>

namespace fast::algorithm {
namespace {

struct None {
  static Declaration declare() {
    return {.name = "none",
            .summary = "x_i + δ_i: every worker trains alone",
            .source = "-",
            .scope = Scope::nobody,
            .mixing = Mixing::anything,
            .why_exact = "it sends nothing"};
  }
  template <class T>
  void publish(const Block<T>& block) {
    for (std::size_t e = 0; e < block.count; ++e) block.payload[0][e] = block.current[e];
  }
  template <class T>
  void combine(const Block<T>&) {}
};

}  // namespace

std::unique_ptr<Algorithm> none() { return std::make_unique<Elementwise<None>>(); }

}  // namespace fast::algorithm
