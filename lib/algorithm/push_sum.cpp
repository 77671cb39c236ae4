#include <fast/algorithm/rules.hpp>

namespace fast::algorithm {
namespace {

/// Memory: P of state, slots of 2P (one P for the mean model). Bytes: P and a double a neighbour.
/// State: the biased x; the model holds z = x/p.
class PushSum {
 public:
  static Declaration declare() {
    return {.name = "push_sum",
            .summary = "x ← P (x + δ(z)), p ← P p, z = x/p: for directed graphs",
            .source = "SGP, Assran et al. 2019, arXiv 1811.10792, algorithm 1",
            .publish_point = PublishPoint::after_step,
            .payload_scalars = 1,
            .state_vectors = 1,
            .mixing = Mixing::column_stochastic,
            .publishes_weights_apart = true,
            .why_exact = "a rounded value would lose mass or make some",
            .why_synchronous = "a value read twice or never would double or lose mass"};
  }
  template <class T>
  void start(const Block<T>& block) {
    mass_ = 1;
    for (std::size_t e = 0; e < block.count; ++e) block.state[0][e] = block.current[e];
  }
  bool begin_publish(const RoundInfo&, std::span<double> scalars) {
    scalars[0] = mass_;
    return true;
  }
  template <class T>
  void publish(const Block<T>& block) {
    const T mass = static_cast<T>(mass_);
    for (std::size_t e = 0; e < block.count; ++e) {
      const T x = block.state[0][e];
      block.payload[0][e] = x + (block.current[e] - x / mass);
    }
  }
  void begin_combine(const RoundInfo& info, std::span<const double> own,
                     std::span<const double> pull) {
    mass_ = (info.self_weight + info.neighbor_weight) * own[0] + pull[0];
  }
  template <class T>
  void combine(const Block<T>& block) {
    const T row_sum = static_cast<T>(block.info.self_weight + block.info.neighbor_weight);
    const T mass = static_cast<T>(mass_);
    for (std::size_t e = 0; e < block.count; ++e) {
      const T next = row_sum * block.own[0][e] + block.pull[0][e];
      block.state[0][e] = next;
      block.current[e] = next / mass;
    }
  }

 private:
  double mass_ = 1;
};

}  // namespace

std::unique_ptr<Algorithm> push_sum() { return std::make_unique<Elementwise<PushSum>>(); }

}  // namespace fast::algorithm
