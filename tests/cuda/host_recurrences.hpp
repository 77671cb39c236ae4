// Recurrent layers by plain loops in f64, as nn defines them.
#pragma once

#include <cmath>
#include <vector>

#include "nn/cuda/program.hpp"

namespace fast::testing {

/// Elements of f32 or bf16, to be read and written as f32.
class Tensor {
 public:
  Tensor(const void* data, DType type) : data_(const_cast<void*>(data)), type_(type) {}
  double operator[](cuda::Index e) const {
    return type_ == DType::f32 ? double{cuda::get(static_cast<const float*>(data_), e)}
                               : double{cuda::get(static_cast<const BFloat16*>(data_), e)};
  }
  void put(double value, cuda::Index e) const {
    const auto rounded = static_cast<float>(value);
    if (type_ == DType::f32)
      cuda::put(rounded, static_cast<float*>(data_), e);
    else
      cuda::put(rounded, static_cast<BFloat16*>(data_), e);
  }

 private:
  void* data_;
  DType type_;
};

inline double rounded(float value, DType type) {
  return double{type == DType::bf16 ? to_float(to_bfloat16(value)) : value};
}

/// One sample's way through an LSTM, forward and, with gradients of the outputs, back.
class HostLstm {
 public:
  HostLstm(const cuda::Recurrence& work, cuda::Index sample)
      : work_(work), shape_(work.shape), sample_(sample) {
    const auto hidden = static_cast<std::size_t>(shape_.hidden);
    std::vector<double> h(hidden), c(hidden);
    for (cuda::Index t = 0; t < shape_.steps; ++t) {
      steps_.push_back({{}, h, c, c});
      for (cuda::Index u = 0; u < shape_.hidden; ++u) advance(t, u, h);
      c = steps_.back().cells;
    }
  }

  /// dx, and what is added to the gradients, [4 hidden][inputs + hidden + 1].
  void back(std::vector<double>& gradients) const {
    const cuda::Index hidden = shape_.hidden, inputs = shape_.inputs;
    const Tensor x(work_.x, shape_.type), dy(work_.dy, shape_.type), dx(work_.dx, shape_.type);
    std::vector<double> dh(static_cast<std::size_t>(hidden)), dc = dh;
    for (cuda::Index t = shape_.steps; t-- > 0;) {
      const Step& step = steps_[static_cast<std::size_t>(t)];
      std::vector<double> grads(static_cast<std::size_t>(4 * hidden));
      for (cuda::Index u = 0; u < hidden; ++u) {
        const auto i = static_cast<std::size_t>(u), n = static_cast<std::size_t>(hidden);
        const double in = step.gates[4 * i], forget = step.gates[4 * i + 1],
                     fresh = step.gates[4 * i + 2], out = step.gates[4 * i + 3],
                     shown = std::tanh(step.cells[i]);
        const double doutput = dh[i] + dy[row(t, hidden) + u];
        dc[i] += doutput * out * (1 - shown * shown);
        grads[i] = dc[i] * fresh * in * (1 - in);
        grads[n + i] = dc[i] * step.cells_before[i] * forget * (1 - forget);
        grads[2 * n + i] = dc[i] * in * (1 - fresh * fresh);
        grads[3 * n + i] = doutput * shown * out * (1 - out);
        dc[i] *= forget;
      }
      std::fill(dh.begin(), dh.end(), 0);
      std::vector<double> sums(static_cast<std::size_t>(inputs));
      for (cuda::Index g = 0; g < 4 * hidden; ++g) {
        const double grad = grads[static_cast<std::size_t>(g)];
        for (cuda::Index i = 0; i < inputs; ++i) {
          sums[static_cast<std::size_t>(i)] += grad * weight(g * inputs + i);
          gradients[static_cast<std::size_t>(g * inputs + i)] += grad * x[row(t, inputs) + i];
        }
        for (cuda::Index u = 0; u < hidden; ++u) {
          const cuda::Index place = 4 * hidden * inputs + g * hidden + u;
          dh[static_cast<std::size_t>(u)] += grad * weight(place);
          gradients[static_cast<std::size_t>(place)] +=
              grad * step.outputs_before[static_cast<std::size_t>(u)];
        }
        gradients[static_cast<std::size_t>(4 * hidden * (inputs + hidden) + g)] += grad;
      }
      for (cuda::Index i = 0; i < inputs; ++i)
        dx.put(sums[static_cast<std::size_t>(i)], row(t, inputs) + i);
    }
  }

 private:
  struct Step {
    std::vector<double> gates;  // [hidden][4]
    std::vector<double> outputs_before, cells_before, cells;
  };
  /// As the library has it.
  double weight(cuda::Index e) const { return rounded(work_.weights[e], shape_.type); }
  cuda::Index row(cuda::Index t, cuda::Index features) const {
    return (sample_ * shape_.steps + t) * features;
  }

  void advance(cuda::Index t, cuda::Index u, std::vector<double>& h) {
    const cuda::Index hidden = shape_.hidden, inputs = shape_.inputs;
    const Tensor x(work_.x, shape_.type), y(work_.y, shape_.type);
    Step& step = steps_.back();
    for (cuda::Index gate = 0; gate < 4; ++gate) {
      const cuda::Index g = gate * hidden + u;
      double z = weight(4 * hidden * (inputs + hidden) + g);
      for (cuda::Index i = 0; i < inputs; ++i) z += weight(g * inputs + i) * x[row(t, inputs) + i];
      for (cuda::Index j = 0; j < hidden; ++j)
        z += weight(4 * hidden * inputs + g * hidden + j) *
             step.outputs_before[static_cast<std::size_t>(j)];
      step.gates.push_back(gate == 2 ? std::tanh(z) : 1 / (1 + std::exp(-z)));
    }
    const double* gates = step.gates.data() + step.gates.size() - 4;
    const auto i = static_cast<std::size_t>(u);
    step.cells[i] = gates[1] * step.cells_before[i] + gates[0] * gates[2];
    h[i] = rounded(static_cast<float>(gates[3] * std::tanh(step.cells[i])), shape_.type);
    if (work_.kind != cuda::Recurrence::Kind::grads) y.put(h[i], row(t, hidden) + u);
  }

  const cuda::Recurrence& work_;
  cuda::RecurrentShape shape_;
  cuda::Index sample_;
  std::vector<Step> steps_;
};

/// The same of a GRU: the gates r, z, n, each with a bias of the inputs and one of the hidden
/// units.
class HostGru {
 public:
  HostGru(const cuda::Recurrence& work, cuda::Index sample)
      : work_(work), shape_(work.shape), sample_(sample), rows_(3 * work.shape.hidden) {
    std::vector<double> h(static_cast<std::size_t>(shape_.hidden));
    for (cuda::Index t = 0; t < shape_.steps; ++t) {
      steps_.push_back({h, {}});
      for (cuda::Index u = 0; u < shape_.hidden; ++u) advance(t, u, h);
    }
  }

  /// dx, and what is added to the gradients, [3 hidden][inputs + hidden + 2].
  void back(std::vector<double>& gradients) const {
    const Tensor dy(work_.dy, shape_.type);
    std::vector<double> dh(static_cast<std::size_t>(shape_.hidden));
    for (cuda::Index t = shape_.steps; t-- > 0;) {
      const Step& step = steps_[static_cast<std::size_t>(t)];
      std::vector<double> of_inputs(static_cast<std::size_t>(rows_)), of_hidden = of_inputs;
      for (std::size_t u = 0; u < dh.size(); ++u) {
        const Unit& unit = step.units[u];
        dh[u] += dy[row(t, shape_.hidden) + static_cast<cuda::Index>(u)];
        const double dfresh = dh[u] * (1 - unit.update) * (1 - unit.fresh * unit.fresh);
        const double dreset = dfresh * unit.hidden_sum * unit.reset * (1 - unit.reset);
        const double dupdate =
            dh[u] * (step.before[u] - unit.fresh) * unit.update * (1 - unit.update);
        const std::size_t z = dh.size() + u, n = 2 * dh.size() + u;
        of_inputs[u] = of_hidden[u] = dreset;
        of_inputs[z] = of_hidden[z] = dupdate;
        of_inputs[n] = dfresh;
        of_hidden[n] = dfresh * unit.reset;
        dh[u] *= unit.update;
      }
      add_gradients(t, step, of_inputs, of_hidden, gradients);
      for (std::size_t u = 0; u < dh.size(); ++u)
        for (cuda::Index g = 0; g < rows_; ++g)
          dh[u] += of_hidden[static_cast<std::size_t>(g)] *
                   weight(of_unit(g) + static_cast<cuda::Index>(u));
    }
  }

 private:
  struct Unit {
    double reset, update, fresh, hidden_sum;  // U_n h + b_n
  };
  struct Step {
    std::vector<double> before;
    std::vector<Unit> units;
  };
  double weight(cuda::Index e) const { return rounded(work_.weights[e], shape_.type); }
  cuda::Index row(cuda::Index t, cuda::Index features) const {
    return (sample_ * shape_.steps + t) * features;
  }
  /// The places of row g of the hidden units' weights, and of its biases.
  cuda::Index of_unit(cuda::Index g) const { return rows_ * shape_.inputs + g * shape_.hidden; }
  cuda::Index bias_of_inputs(cuda::Index g) const {
    return rows_ * (shape_.inputs + shape_.hidden) + g;
  }
  cuda::Index bias_of_hidden(cuda::Index g) const { return bias_of_inputs(g) + rows_; }

  double input_sum(cuda::Index t, cuda::Index g) const {
    const Tensor x(work_.x, shape_.type);
    double sum = weight(bias_of_inputs(g));
    for (cuda::Index i = 0; i < shape_.inputs; ++i)
      sum += weight(g * shape_.inputs + i) * x[row(t, shape_.inputs) + i];
    return sum;
  }
  double hidden_sum(const Step& step, cuda::Index g) const {
    double sum = weight(bias_of_hidden(g));
    for (std::size_t j = 0; j < step.before.size(); ++j)
      sum += weight(of_unit(g) + static_cast<cuda::Index>(j)) * step.before[j];
    return sum;
  }
  void advance(cuda::Index t, cuda::Index u, std::vector<double>& h) {
    const cuda::Index z = shape_.hidden + u, n = 2 * shape_.hidden + u;
    const auto sigmoid = [](double value) { return 1 / (1 + std::exp(-value)); };
    Step& step = steps_.back();
    Unit unit{};
    unit.reset = sigmoid(input_sum(t, u) + hidden_sum(step, u));
    unit.update = sigmoid(input_sum(t, z) + hidden_sum(step, z));
    unit.hidden_sum = hidden_sum(step, n);
    unit.fresh = std::tanh(input_sum(t, n) + unit.reset * unit.hidden_sum);
    step.units.push_back(unit);
    const auto i = static_cast<std::size_t>(u);
    const double after = (1 - unit.update) * unit.fresh + unit.update * step.before[i];
    h[i] = rounded(static_cast<float>(after), shape_.type);
    if (work_.kind != cuda::Recurrence::Kind::grads)
      Tensor(work_.y, shape_.type).put(h[i], row(t, shape_.hidden) + u);
  }

  void add_gradients(cuda::Index t, const Step& step, const std::vector<double>& of_inputs,
                     const std::vector<double>& of_hidden, std::vector<double>& gradients) const {
    const Tensor x(work_.x, shape_.type), dx(work_.dx, shape_.type);
    const auto at = [&](cuda::Index e) -> double& {
      return gradients[static_cast<std::size_t>(e)];
    };
    std::vector<double> sums(static_cast<std::size_t>(shape_.inputs));
    for (cuda::Index g = 0; g < rows_; ++g) {
      const double input = of_inputs[static_cast<std::size_t>(g)],
                   hidden = of_hidden[static_cast<std::size_t>(g)];
      at(bias_of_inputs(g)) += input;
      at(bias_of_hidden(g)) += hidden;
      for (cuda::Index i = 0; i < shape_.inputs; ++i) {
        sums[static_cast<std::size_t>(i)] += input * weight(g * shape_.inputs + i);
        at(g * shape_.inputs + i) += input * x[row(t, shape_.inputs) + i];
      }
      for (cuda::Index j = 0; j < shape_.hidden; ++j)
        at(of_unit(g) + j) += hidden * step.before[static_cast<std::size_t>(j)];
    }
    for (cuda::Index i = 0; i < shape_.inputs; ++i)
      dx.put(sums[static_cast<std::size_t>(i)], row(t, shape_.inputs) + i);
  }

  const cuda::Recurrence& work_;
  cuda::RecurrentShape shape_;
  cuda::Index sample_, rows_;
  std::vector<Step> steps_;
};

template <class Cell>
void run_samples(const cuda::Recurrence& work, std::vector<double>& gradients) {
  for (cuda::Index sample = 0; sample < work.shape.samples; ++sample) {
    const Cell cell(work, sample);
    if (work.kind == cuda::Recurrence::Kind::grads) cell.back(gradients);
  }
}

inline void run_on_host(const cuda::Recurrence& work) {
  std::vector<double> gradients(static_cast<std::size_t>(work.shape.sizes().count()));
  if (work.shape.cell == cuda::Cell::lstm)
    run_samples<HostLstm>(work, gradients);
  else
    run_samples<HostGru>(work, gradients);
  for (std::size_t e = 0; e < gradients.size() && work.gradients != nullptr; ++e)
    work.gradients[e] = static_cast<float>(gradients[e]);
}

}  // namespace fast::testing
