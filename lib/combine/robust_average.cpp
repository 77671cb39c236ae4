#include "combine/robust_average.hpp"

#include <algorithm>
#include <cmath>

namespace fast::combine {
namespace {

std::vector<double> shares_of(std::vector<double> squares, std::size_t tolerated) {
  for (double& square : squares) square = std::sqrt(square);
  const double radius = mixing::clip_radius(squares, tolerated);
  for (double& distance : squares) distance = mixing::kept_share(distance, radius);
  return squares;
}

}  // namespace

bool RobustAverage::limit(Neighborhood& near, std::size_t neighbors) {
  if (kind_ == Robust::none) return true;
  shares_.clear();
  trimmed_.clear();
  lacks_neighbors_ = false;
  SquaredDistances distances = mixer_.measure(near);
  if (!mixer_.is_finite()) return false;
  leave_out(near, distances);
  const std::size_t bad = shares_.size(), tolerated = mixing::tolerated(neighbors);
  const std::size_t others = tolerated - std::min(bad, tolerated);
  const std::size_t needed = kind_ == Robust::clip ? others + 1 : 2 * others;
  if (near.workers.size() < needed) {
    lacks_neighbors_ = !near.workers.empty();
    near.workers.clear();
    near.payloads.clear();
    near.weights.clear();
    return true;
  }
  kind_ == Robust::clip ? clip(near, distances, others) : trim(near, others);
  return true;
}

/// Those whose distance is not finite.
void RobustAverage::leave_out(Neighborhood& near, SquaredDistances& distances) {
  std::size_t left = 0;
  for (std::size_t j = 0; j < near.workers.size(); ++j) {
    if (!std::isfinite(distances.parameters[j]) || !std::isfinite(distances.buffers[j])) {
      shares_.push_back({near.workers[j], 0});
      continue;
    }
    near.workers[left] = near.workers[j];
    near.payloads[left] = near.payloads[j];
    near.weights[left] = near.weights[j];
    distances.parameters[left] = distances.parameters[j];
    distances.buffers[left] = distances.buffers[j];
    ++left;
  }
  near.workers.resize(left);
  near.payloads.resize(left);
  near.weights.resize(left);
  distances.parameters.resize(left);
  distances.buffers.resize(left);
}

void RobustAverage::clip(Neighborhood& near, const SquaredDistances& distances,
                         std::size_t tolerated) {
  const std::vector<double> shares = shares_of(distances.parameters, tolerated);
  const std::vector<double> of_buffers = shares_of(distances.buffers, tolerated);
  near.buffer_weights = near.weights;
  for (std::size_t j = 0; j < near.workers.size(); ++j) {
    near.weights[j] *= shares[j];
    near.buffer_weights[j] *= of_buffers[j];
    shares_.push_back({near.workers[j], shares[j]});
  }
}

void RobustAverage::trim(Neighborhood& near, std::size_t tolerated) {
  trimmed_ = near.workers;
  trim_ = {tolerated, std::vector<std::uint64_t>(near.workers.size(), 0)};
  near.trim = &trim_;
}

std::vector<KeptShare> RobustAverage::kept() const {
  if (trimmed_.empty()) return shares_;
  std::vector<KeptShare> all = shares_;
  const double elements = static_cast<double>(std::max<std::uint64_t>(1, mixer_.elements()));
  for (std::size_t j = 0; j < trimmed_.size(); ++j)
    all.push_back({trimmed_[j], static_cast<double>(trim_.kept[j]) / elements});
  return all;
}

}  // namespace fast::combine
