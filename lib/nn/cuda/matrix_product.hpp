// Matrix products by cuBLASLt, with bias and ReLU in its epilogue.
#pragma once

#include <cublasLt.h>

#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <tuple>
#include <vector>

#include "nn/cuda/program.hpp"
#include "nn/cuda/tuner.hpp"

namespace fast::cuda {

void check(cublasStatus_t status, std::string_view operation);

/// A product in column-major order, as cuBLASLt has it: c [m x n] = op(a) op(b).
struct ColumnMajor {
  bool transpose_a, transpose_b;
  Index rows_a, columns_a, rows_b, columns_b;  // as they are stored; leading dimensions are rows
};
ColumnMajor column_major(const MatrixProduct& product);

/// The largest power of two, up to 256, that divides the address.
std::uint32_t alignment_of(const void* place);

/// The usable proposals of cuBLASLt, best first. None if its heuristics end with NOT_SUPPORTED: it
/// has no kernel for the product with this epilogue, but may have one without. Throws
/// Error(resource) on another failure.
std::vector<cublasLtMatmulHeuristicResult_t> usable(
    cublasStatus_t status, std::span<const cublasLtMatmulHeuristicResult_t> proposals,
    std::string_view operation);

/// The name by which a Tuner knows the product. Size, epilogue, precision and alignments alone
/// decide it.
std::string tuned_name(const MatrixProduct& product, bool tf32);

/// Algorithms for one device. Each is chosen once per size, alignment and epilogue: the first
/// proposal of cuBLASLt's heuristics, or the one that the tuner chooses. The ReLU of some kernels
/// turns NaN into 0. Such an algorithm is not used; if there is no other, a kernel of FAST computes
/// the ReLU.
class MatrixProducts {
 public:
  static constexpr std::size_t most_workspace_bytes = std::size_t{32} << 20;
  /// Runs on the current device. The tuner, null for none, must live as long.
  MatrixProducts(bool tf32, Tuner* tuner);

  /// The workspace of its algorithm. A new one is chosen now, which may write to `c`. On the
  /// current device.
  std::size_t workspace_bytes(const MatrixProduct& product);
  void run(const MatrixProduct& product, void* workspace, void* stream);

 private:
  struct Chosen;
  using Key = std::tuple<Index, Index, Index, bool, bool, bool, bool, DType, DType, std::uint32_t,
                         std::uint32_t, std::uint32_t, std::uint32_t>;
  struct Destroy {
    void operator()(cublasLtHandle_t handle) const;
  };
  const Chosen& choose(const MatrixProduct& product);
  std::shared_ptr<const Chosen> make(const MatrixProduct& product) const;
  bool take_algorithm(Chosen& made, const MatrixProduct& product) const;
  std::vector<cublasLtMatmulHeuristicResult_t> proposals(const MatrixProduct& product,
                                                         const Chosen& layouts) const;
  bool keeps_nan(const Chosen& chosen, MatrixProduct product) const;
  void execute(const Chosen& chosen, const MatrixProduct& product, void* workspace,
               void* stream) const;

  bool tf32_;
  Tuner* tuner_;
  std::unique_ptr<std::remove_pointer_t<cublasLtHandle_t>, Destroy> handle_;
  std::map<Key, std::shared_ptr<const Chosen>> chosen_;
};

}  // namespace fast::cuda
