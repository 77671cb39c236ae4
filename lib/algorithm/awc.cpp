#include "algorithm/averaging.hpp"
#include "algorithm/row.hpp"

namespace fast::algorithm {
namespace {

struct AdaptWhileCombine : Averaging {
  static Declaration declare() {
    return {.name = "awc",
            .summary = "Σ_j W_ij x_j + δ_i: neighbors are read while gradients are computed",
            .source = "D-PSGD, Lian et al. 2017, arXiv 1705.09056, algorithm 1",
            .publish_point = PublishPoint::before_step,
            .plain_average = true,
            .own = Own::unused};
  }
};

}  // namespace

Rule awc() { return elementwise(AdaptWhileCombine{}); }

const Row rows::awc{[](ParameterReader&) { return algorithm::awc(); }};

}  // namespace fast::algorithm
