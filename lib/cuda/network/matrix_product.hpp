// Matrix products by cuBLASLt, bias and ReLU in its epilogue.
#pragma once

#include <cublasLt.h>

#include <map>
#include <memory>
#include <span>
#include <string_view>
#include <tuple>
#include <vector>

#include "cuda/network/program.hpp"

namespace fast::cuda {

void check(cublasStatus_t status, std::string_view operation);

/// A product in cuBLASLt's words, whose matrices lie column by column: c [m x n] = op(a) op(b).
struct ColumnMajor {
  bool transpose_a, transpose_b;
  Index rows_a, columns_a, rows_b, columns_b;  // as they are stored; leading dimensions are rows
};
ColumnMajor column_major(const MatrixProduct& product);

/// Largest power of two, up to 256, that divides the address.
std::uint32_t alignment_of(const void* place);

/// What of cuBLASLt's proposals can be used, in its order: best first. None when its heuristics
/// ended with NOT_SUPPORTED: it has no kernel for the product with this epilogue, and may have one
/// without. Throws Error(resource) on another failure.
std::vector<cublasLtMatmulHeuristicResult_t> usable(
    cublasStatus_t status, std::span<const cublasLtMatmulHeuristicResult_t> proposals,
    std::string_view operation);

/// Algorithms for one device, each chosen once for sizes, alignments and epilogue: the first that
/// cuBLASLt's heuristics propose, or the fastest of the first few. The ReLU of some of its kernels
/// makes 0 of NaN: an algorithm that does is not taken, and without others the ReLU is our own.
class MatrixProducts {
 public:
  static constexpr std::size_t most_workspace_bytes = std::size_t{32} << 20;
  /// On the current device.
  MatrixProducts(bool tf32, bool autotune);

  /// Of the algorithm for it, chosen now if it is new, which may write to `c`. On the current
  /// device, as run().
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
  std::vector<cublasLtMatmulHeuristicResult_t> proposals(const MatrixProduct& product,
                                                         const Chosen& layouts) const;
  bool keeps_nan(const Chosen& chosen, MatrixProduct product) const;
  void execute(const Chosen& chosen, const MatrixProduct& product, void* workspace,
               void* stream) const;

  bool tf32_, autotune_;
  std::unique_ptr<std::remove_pointer_t<cublasLtHandle_t>, Destroy> handle_;
  std::map<Key, std::shared_ptr<const Chosen>> chosen_;
};

}  // namespace fast::cuda
