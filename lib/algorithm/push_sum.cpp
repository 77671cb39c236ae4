#include <algorithm>
#include <fast/algorithm/rules.hpp>

namespace fast::algorithm {
namespace {

constexpr double lightest_pusher = 1e-6, rounding = 1e-12;

/// Memory: P of state, slots of 2P (one P for the mean model). Bytes: P and a double a neighbour.
/// State: the biased x; the model holds z = x/p.
/// At staleness above 0 running sums travel, of 8 bytes an element (memory: one of the worker's
/// own, two a neighbour; Assran & Rabbat 2018, arXiv 1803.08950). A worker that pushes on without
/// hearing from others would grow light, and its steps δ/p large: when lighter than half its
/// typical mass it keeps what it has, and its step counts as much less as it is lighter than that.
class PushSum {
 public:
  static Declaration declare() {
    return {.name = "push_sum",
            .summary = "x ← P (x + δ(z)), p ← P p, z = x/p: for directed graphs",
            .source = "SGP, Assran et al. 2019, arXiv 1811.10792, algorithm 1",
            .publish_point = PublishPoint::after_step,
            .delivery = Delivery::summed,
            .payload_scalars = 1,
            .state_vectors = 1,
            .mixing = Mixing::column_stochastic,
            .publishes_weights_apart = true,
            .why_exact = "a rounded value would lose mass or make some",
            .why_bounded = "asynchronous push-sum is analyzed for bounded delays only"};
  }
  template <class T>
  void start(const Block<T>& block) {
    mass_ = typical_mass_ = 1;
    for (std::size_t e = 0; e < block.count; ++e) block.state[0][e] = block.current[e];
  }
  bool begin_publish(const RoundInfo& info, std::span<double> scalars) {
    keeps_ = info.asynchronous && mass_ < std::max(typical_mass_ / 2, lightest_pusher);
    step_ = info.asynchronous ? std::min(1.0, mass_ / typical_mass_) : 1;
    scalars[0] = keeps_ ? 0 : mass_;
    return true;
  }
  template <class T>
  void publish(const Block<T>& block) {
    const T mass = static_cast<T>(mass_), step = static_cast<T>(step_);
    for (std::size_t e = 0; e < block.count; ++e) {
      T& x = block.state[0][e];
      const T stepped = x + step * (block.current[e] - x / mass);
      x = keeps_ ? stepped : T{0};
      block.payload[0][e] = keeps_ ? T{0} : stepped;
    }
  }
  void begin_combine(const RoundInfo& info, std::span<const double> own,
                     std::span<const double> pull) {
    const double kept = keeps_ ? mass_ : 0;
    const double arrived = pull[0] + info.neighbor_weight * own[0];
    mass_ = kept + info.self_weight * own[0] + arrived;
    typical_mass_ += arrived > rounding ? (mass_ - typical_mass_) / 8 : -typical_mass_ / 100;
  }
  template <class T>
  void combine(const Block<T>& block) {
    const T row_sum = static_cast<T>(block.info.self_weight + block.info.neighbor_weight);
    const T mass = static_cast<T>(mass_);
    for (std::size_t e = 0; e < block.count; ++e) {
      const T next = block.state[0][e] + row_sum * block.own[0][e] + block.pull[0][e];
      block.state[0][e] = next;
      block.current[e] = next / mass;
    }
  }

  std::vector<TensorView> numbers() { return {view_of("push_sum.mass", std::span(&mass_, 1))}; }

 private:
  double mass_ = 1;
  double typical_mass_ = 1;
  double step_ = 1;     ///< share of the step that counts
  bool keeps_ = false;  ///< nothing is pushed in this round
};

}  // namespace

std::unique_ptr<Algorithm> push_sum() { return std::make_unique<Elementwise<PushSum>>(); }

}  // namespace fast::algorithm
