#include <mixing/lanczos.hpp>
#include <topology_tools/eigen.hpp>

#include <Spectra/SymEigsSolver.h>
#include <Eigen/Dense>
#include <Eigen/SparseCholesky>
#include <algorithm>
#include <cmath>

namespace fast {
namespace {

using Sparse = Eigen::SparseMatrix<double>;
using Vector = Eigen::VectorXd;

// Fill of a factor that memory and seconds bear.
constexpr std::int64_t most_fill = 25'000'000;

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
  const Sparse permuted = matrix.twistedBy(order.inverse());
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
  return Eigen::BDCSVD<Eigen::MatrixXd>(product).singularValues()[0];
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
  Extremes found;
  const auto high = end_by_lanczos(w, Spectra::SortRule::LargestAlge, 1e-10);
  const auto second = high ? high : second_by_shift_invert(w);
  const auto low = end_by_lanczos(w, Spectra::SortRule::SmallestAlge, 1e-7);
  found.high_converged = second.has_value();
  found.low_converged = low.has_value();
  if (second) found.high = *second;
  if (low) found.low = *low;
  if (second && low) return found;
  const auto apply = [&](std::span<const double> x, std::span<double> y) {
    Eigen::Map<Vector>(y.data(), w.rows()) = w * Eigen::Map<const Vector>(x.data(), w.rows());
  };
  const ExtremeEigenvalues inside =
      extreme_eigenvalues(apply, static_cast<int>(rows.size()), true, 1e-12, 6'000'000);
  if (!second) found.high = inside.high;
  if (!low) found.low = inside.low;
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
