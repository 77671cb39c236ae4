#include "topology_tools/eigen.hpp"

#include <Spectra/SymEigsSolver.h>
#include <Eigen/Core>
#include <Eigen/Eigenvalues>
#include <Eigen/SparseCholesky>
#include <algorithm>
#include <cmath>

namespace fast {
namespace {

using Sparse = Eigen::SparseMatrix<double>;
using Vector = Eigen::VectorXd;

// Fill of a factor that memory and seconds bear.
constexpr std::int64_t most_fill = 25'000'000;
constexpr std::size_t first_steps = 40;

Sparse sparse_of(const MixingRows& rows) {
  std::vector<Eigen::Triplet<double>> entries;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const int row = static_cast<int>(i);
    entries.emplace_back(row, row, rows[i].self);
    for (std::size_t k = 0; k < rows[i].neighbors.size(); ++k) {
      entries.emplace_back(row, rows[i].neighbors[k], rows[i].weights[k]);
    }
  }
  Sparse matrix(static_cast<int>(rows.size()), static_cast<int>(rows.size()));
  matrix.setFromTriplets(entries.begin(), entries.end());
  return matrix;
}

void remove_mean(Eigen::Ref<Vector> x) { x.array() -= x.mean(); }

struct DeflatedW {
  using Scalar = double;
  const Sparse& w;
  int rows() const { return static_cast<int>(w.rows()); }
  int cols() const { return rows(); }
  void perform_op(const double* x, double* y) const {
    Eigen::Map<Vector> out(y, rows());
    out.noalias() = w * Eigen::Map<const Vector>(x, rows());
    remove_mean(out);
  }
};

// (shift·I - W)⁻¹ on the vectors of sum zero.
struct ShiftInverse {
  using Scalar = double;
  const Eigen::SimplicialLDLT<Sparse>& factor;
  int size;
  int rows() const { return size; }
  int cols() const { return size; }
  void perform_op(const double* x, double* y) const {
    Vector in = Eigen::Map<const Vector>(x, size);
    remove_mean(in);
    Eigen::Map<Vector> out(y, size);
    out = factor.solve(in);
    remove_mean(out);
  }
};

// Nonzeros of the Cholesky factor after minimum-degree ordering, counted along the elimination tree
// (Liu 1986) until too many.
bool fill_is_bearable(const Sparse& matrix) {
  const int n = static_cast<int>(matrix.rows());
  Eigen::PermutationMatrix<Eigen::Dynamic, Eigen::Dynamic, int> order;
  Eigen::AMDOrdering<int>()(matrix.selfadjointView<Eigen::Lower>(), order);
  Sparse permuted(n, n);
  permuted = matrix.twistedBy(order.inverse());
  std::vector<int> parent(n, -1), tag(n, -1);
  std::int64_t fill = 0;
  for (int k = 0; k < n; ++k) {
    tag[k] = k;
    for (Sparse::InnerIterator it(permuted, k); it; ++it) {
      for (int i = static_cast<int>(it.index()); i < k && tag[i] != k; i = parent[i]) {
        if (parent[i] < 0) parent[i] = k;
        tag[i] = k;
        if (++fill > most_fill) return false;
      }
    }
  }
  return true;
}

std::optional<double> second_by_shift_invert(const Sparse& w) {
  const int n = static_cast<int>(w.rows());
  constexpr double shift = 1 + 1e-10;
  Sparse identity(n, n);
  identity.setIdentity();
  const Sparse shifted = shift * identity - w;
  if (!fill_is_bearable(shifted)) return {};
  Eigen::SimplicialLDLT<Sparse> factor(shifted);
  if (factor.info() != Eigen::Success) return {};
  ShiftInverse op{factor, n};
  Spectra::SymEigsSolver<ShiftInverse> solver(op, 1, 20);
  solver.init();
  solver.compute(Spectra::SortRule::LargestAlge, 200, 1e-10);
  if (solver.info() != Spectra::CompInfo::Successful) return {};
  return shift - 1 / solver.eigenvalues()[0];
}

std::optional<double> end_by_lanczos(const Sparse& w, Spectra::SortRule which, double tolerance) {
  DeflatedW op{w};
  constexpr int basis = 30;
  const auto restarts = static_cast<Eigen::Index>(std::clamp(1.2e6 / op.rows(), 10.0, 500.0));
  Spectra::SymEigsSolver<DeflatedW> solver(op, 1, basis);
  solver.init();
  solver.compute(which, restarts, tolerance);
  if (solver.info() != Spectra::CompInfo::Successful) return {};
  return solver.eigenvalues()[0];
}

Eigen::MatrixXd dense_of(const MixingRows& rows) {
  const auto n = static_cast<Eigen::Index>(rows.size());
  Eigen::MatrixXd matrix = Eigen::MatrixXd::Zero(n, n);
  for (Eigen::Index i = 0; i < n; ++i) {
    const MixingRow& row = rows[static_cast<std::size_t>(i)];
    matrix(i, i) = row.self;
    for (std::size_t k = 0; k < row.neighbors.size(); ++k) {
      matrix(i, row.neighbors[k]) = row.weights[k];
    }
  }
  return matrix;
}

}  // namespace

double dense_norm(const std::vector<MixingRows>& rounds) {
  const auto n = static_cast<Eigen::Index>(rounds.front().size());
  Eigen::MatrixXd product = Eigen::MatrixXd::Identity(n, n);
  for (const MixingRows& rows : rounds) product = sparse_of(rows) * product;
  product.array() -= 1.0 / static_cast<double>(n);
  // The largest singular value loses no digits in the product; the others would.
  const Eigen::MatrixXd square = product.transpose() * product;
  const Vector values =
      Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(square, Eigen::EigenvaluesOnly).eigenvalues();
  return std::sqrt(std::max(0.0, values[n - 1]));
}

Extremes dense_extremes(const MixingRows& rows) {
  if (rows.size() == 1) return {1, 0, true, true};
  Eigen::MatrixXd matrix = dense_of(rows);
  // The eigenvalue of the ones is put out of the way.
  matrix.array() -= 4.0 / static_cast<double>(rows.size());
  const Vector values =
      Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd>(matrix, Eigen::EigenvaluesOnly).eigenvalues();
  return {values[1], values[values.size() - 1], true, true};
}

Extremes sparse_extremes(const MixingRows& rows) {
  const Sparse w = sparse_of(rows);
  const auto apply = [&](std::span<const double> x, std::span<double> y) {
    Eigen::Map<Vector>(y.data(), w.rows()) = w * Eigen::Map<const Vector>(x.data(), w.rows());
  };
  // A few steps first: they end where there are few distinct eigenvalues, and bound the rest.
  const ExtremeEigenvalues inside = extreme_eigenvalues(apply, static_cast<int>(rows.size()), true,
                                                        1e-12, first_steps * rows.size());
  Extremes found{inside.low, inside.high, inside.converged, inside.converged};
  if (inside.converged) return found;
  const double loose = rows.size() > 20'000 ? 1e-4 : 1e-9;
  auto high = end_by_lanczos(w, Spectra::SortRule::LargestAlge, loose * (1 - inside.high));
  if (!high) high = second_by_shift_invert(w);
  const auto low =
      end_by_lanczos(w, Spectra::SortRule::SmallestAlge, rows.size() > 20'000 ? 1e-5 : 1e-7);
  found.high_converged = high && *high < 1 + 1e-9 && *high > inside.high - 1e-9;
  found.low_converged = low && *low > -1 - 1e-9 && *low < inside.low + 1e-6;
  if (found.high_converged) found.high = *high;
  if (found.low_converged) found.low = *low;
  return found;
}

NormVector norm_vector(const std::vector<double>& matrix, std::size_t n) {
  Eigen::MatrixXd deflated = Eigen::Map<const Eigen::MatrixXd>(
      matrix.data(), static_cast<Eigen::Index>(n), static_cast<Eigen::Index>(n));
  deflated.array() -= 1.0 / static_cast<double>(n);
  const Eigen::SelfAdjointEigenSolver<Eigen::MatrixXd> solver(deflated);
  const Vector& values = solver.eigenvalues();
  const bool low = -values[0] > values[values.size() - 1];
  const Vector v = solver.eigenvectors().col(low ? 0 : values.size() - 1);
  return {low ? -values[0] : values[values.size() - 1], low ? -1.0 : 1.0,
          std::vector<double>(v.data(), v.data() + v.size())};
}

}  // namespace fast
