#include "nn/cuda/matrix_product.hpp"

#include <algorithm>
#include <array>
#include <fast/core/error.hpp>
#include <fast/cuda/memory.hpp>
#include <optional>

#include "cuda/device/runtime.hpp"
#include "nn/cuda/layer_launch.hpp"

namespace fast::cuda {
namespace {

struct DestroyLayout {
  void operator()(cublasLtMatrixLayout_t layout) const { cublasLtMatrixLayoutDestroy(layout); }
};
using Layout = std::unique_ptr<std::remove_pointer_t<cublasLtMatrixLayout_t>, DestroyLayout>;

cudaDataType_t data_type(DType type) { return type == DType::bf16 ? CUDA_R_16BF : CUDA_R_32F; }

Layout layout_of(DType type, Index rows, Index columns) {
  cublasLtMatrixLayout_t made = nullptr;
  check(cublasLtMatrixLayoutCreate(&made, data_type(type), static_cast<std::uint64_t>(rows),
                                   static_cast<std::uint64_t>(columns), rows),
        "describing a matrix");
  return Layout(made);
}

struct DestroyOperation {
  void operator()(cublasLtMatmulDesc_t operation) const { cublasLtMatmulDescDestroy(operation); }
};
using Operation = std::unique_ptr<std::remove_pointer_t<cublasLtMatmulDesc_t>, DestroyOperation>;

template <class T>
void set(const Operation& operation, cublasLtMatmulDescAttributes_t name, const T& value) {
  check(cublasLtMatmulDescSetAttribute(operation.get(), name, &value, sizeof value),
        "describing a product");
}

Operation operation_of(const MatrixProduct& product, bool tf32) {
  cublasLtMatmulDesc_t made = nullptr;
  const bool rounded = tf32 && product.factors == DType::f32;
  check(cublasLtMatmulDescCreate(&made, rounded ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F,
                                 CUDA_R_32F),
        "describing a product");
  Operation operation(made);
  const ColumnMajor order = column_major(product);
  set(operation, CUBLASLT_MATMUL_DESC_TRANSA, order.transpose_a ? CUBLAS_OP_T : CUBLAS_OP_N);
  set(operation, CUBLASLT_MATMUL_DESC_TRANSB, order.transpose_b ? CUBLAS_OP_T : CUBLAS_OP_N);
  if (product.bias == nullptr) return operation;
  set(operation, CUBLASLT_MATMUL_DESC_EPILOGUE,
      product.relu ? CUBLASLT_EPILOGUE_RELU_BIAS : CUBLASLT_EPILOGUE_BIAS);
  set(operation, CUBLASLT_MATMUL_DESC_BIAS_POINTER, product.bias);
  return operation;
}

struct DestroyPreference {
  void operator()(cublasLtMatmulPreference_t p) const { cublasLtMatmulPreferenceDestroy(p); }
};
using Preference =
    std::unique_ptr<std::remove_pointer_t<cublasLtMatmulPreference_t>, DestroyPreference>;

/// Algorithms are chosen for the actual alignments; cuBLASLt assumes 256 bytes by default. The
/// alignment of d also stands for the operands of the epilogue.
Preference preference_of(const MatrixProduct& product) {
  cublasLtMatmulPreference_t made = nullptr;
  check(cublasLtMatmulPreferenceCreate(&made), "making a preference");
  Preference preference(made);
  const auto set = [&](cublasLtMatmulPreferenceAttributes_t name, const auto& value) {
    check(cublasLtMatmulPreferenceSetAttribute(made, name, &value, sizeof value),
          "setting a preference");
  };
  const std::uint32_t c = alignment_of(product.c);
  set(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, MatrixProducts::most_workspace_bytes);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, alignment_of(product.a));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, alignment_of(product.b));
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, c);
  set(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, std::min(c, alignment_of(product.bias)));
  return preference;
}

MatrixProduct without_relu(MatrixProduct product) {
  product.relu = false;
  return product;
}

template <class V>
cudaError_t rectify(void* values, Index count, cudaStream_t stream) {
  auto* const first = static_cast<V*>(values);
  return launch_each(Rectify<V>{first, first, count}, stream);
}
cudaError_t rectify(const MatrixProduct& product, cudaStream_t stream) {
  const Index count = product.m * product.n;
  return product.result == DType::bf16 ? rectify<BFloat16>(product.c, count, stream)
                                       : rectify<float>(product.c, count, stream);
}

/// Enough that some of them keep NaN.
constexpr std::size_t most_proposals = 8;

/// What an algorithm is configured to, such as "66 20 1 0 0 0 11 0 1", with "-" for what cuBLASLt
/// does not give.
std::string name_of(const cublasLtMatmulAlgo_t& algorithm) {
  std::string name = "algorithm";
  for (const cublasLtMatmulAlgoConfigAttributes_t attribute :
       {CUBLASLT_ALGO_CONFIG_ID, CUBLASLT_ALGO_CONFIG_TILE_ID, CUBLASLT_ALGO_CONFIG_SPLITK_NUM,
        CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING,
        CUBLASLT_ALGO_CONFIG_CUSTOM_OPTION, CUBLASLT_ALGO_CONFIG_STAGES_ID,
        CUBLASLT_ALGO_CONFIG_INNER_SHAPE_ID, CUBLASLT_ALGO_CONFIG_CLUSTER_SHAPE_ID}) {
    std::uint32_t value = 0;
    std::size_t bytes = 0;
    const bool known =
        cublasLtMatmulAlgoConfigGetAttribute(&algorithm, attribute, &value, sizeof value, &bytes) ==
        CUBLAS_STATUS_SUCCESS;
    name += known ? fmt::format(" {}", value) : " -";
  }
  return name;
}

std::string describe(const MatrixProduct& product) {
  return fmt::format("a product of [{}x{}] and [{}x{}]", product.m, product.k, product.k,
                     product.n);
}

}  // namespace

void check(cublasStatus_t status, std::string_view operation) {
  if (status == CUBLAS_STATUS_SUCCESS) return;
  fail(ErrorKind::resource,
       "cuda: cuBLASLt: {} failed with status {}; see that cuBLAS and the driver are meant for "
       "each other, or run on the CPU",
       operation, static_cast<int>(status));
}

ColumnMajor column_major(const MatrixProduct& p) {
  return {!p.a_by_k,
          p.b_by_k,
          p.a_by_k ? p.m : p.k,
          p.a_by_k ? p.k : p.m,
          p.b_by_k ? p.n : p.k,
          p.b_by_k ? p.k : p.n};
}

std::uint32_t alignment_of(const void* place) {
  const auto address = reinterpret_cast<std::uintptr_t>(place);
  std::uint32_t alignment = 256;
  while (address % alignment != 0) alignment /= 2;
  return alignment;
}

std::vector<cublasLtMatmulHeuristicResult_t> usable(
    cublasStatus_t status, std::span<const cublasLtMatmulHeuristicResult_t> proposals,
    std::string_view operation) {
  if (status == CUBLAS_STATUS_NOT_SUPPORTED) return {};
  check(status, operation);
  std::vector<cublasLtMatmulHeuristicResult_t> found;
  for (const cublasLtMatmulHeuristicResult_t& proposal : proposals)
    if (proposal.state == CUBLAS_STATUS_SUCCESS) found.push_back(proposal);
  return found;
}

struct MatrixProducts::Chosen {
  Layout a, b, c;
  cublasLtMatmulAlgo_t algorithm = {};
  std::size_t workspace_bytes = 0;
  bool relu_apart = false;

  void take(const cublasLtMatmulHeuristicResult_t& proposal) {
    algorithm = proposal.algo;
    workspace_bytes = proposal.workspaceSize;
  }
};

void MatrixProducts::Destroy::operator()(cublasLtHandle_t handle) const { cublasLtDestroy(handle); }

MatrixProducts::MatrixProducts(bool tf32, Tuner* tuner) : tf32_(tf32), tuner_(tuner) {
  cublasLtHandle_t made = nullptr;
  check(cublasLtCreate(&made), "cublasLtCreate");
  handle_.reset(made);
}

std::vector<cublasLtMatmulHeuristicResult_t> MatrixProducts::proposals(
    const MatrixProduct& product, const Chosen& layouts) const {
  std::vector<cublasLtMatmulHeuristicResult_t> found(most_proposals);
  int count = 0;
  const cublasStatus_t status = cublasLtMatmulAlgoGetHeuristic(
      handle_.get(), operation_of(product, tf32_).get(), layouts.a.get(), layouts.b.get(),
      layouts.c.get(), layouts.c.get(), preference_of(product).get(),
      static_cast<int>(found.size()), found.data(), &count);
  return usable(status, std::span(found).first(static_cast<std::size_t>(count)),
                "choosing an algorithm for " + describe(product));
}

std::string tuned_name(const MatrixProduct& p, bool tf32) {
  return fmt::format("product {}x{}x{}{}{}{}{} {}{} to {} alignments {} {} {} {}", p.m, p.n, p.k,
                     p.a_by_k ? " a_by_k" : "", p.b_by_k ? " b_by_k" : "",
                     p.bias != nullptr ? " bias" : "", p.relu ? " relu" : "", name(p.factors),
                     tf32 ? " tf32" : "", name(p.result), alignment_of(p.a), alignment_of(p.b),
                     alignment_of(p.c), alignment_of(p.bias));
}

/// False if there is no algorithm, or none that keeps NaN.
bool MatrixProducts::take_algorithm(Chosen& made, const MatrixProduct& product) const {
  using Proposal = cublasLtMatmulHeuristicResult_t;
  const std::vector<Proposal> found =
      proposals(made.relu_apart ? without_relu(product) : product, made);
  const Ways<Proposal> ways{found.size(), [&](std::size_t i) { return name_of(found[i].algo); },
                            [&](std::size_t i) -> std::optional<Proposal> {
                              made.take(found[i]);
                              if (product.relu && !made.relu_apart && !keeps_nan(made, product))
                                return std::nullopt;
                              return found[i];
                            },
                            [&](Proposal& proposal, std::optional<double> least) {
                              made.take(proposal);
                              const auto run = [&](void* workspace, void* stream) {
                                execute(made, product, workspace, stream);
                              };
                              return time_ms(made.workspace_bytes, run, least);
                            }};
  const std::optional<Proposal> chosen =
      tuner_ != nullptr ? tuner_->choose(tuned_name(product, tf32_), ways) : first_of(ways);
  if (chosen) made.take(*chosen);
  return chosen.has_value();
}

std::shared_ptr<const MatrixProducts::Chosen> MatrixProducts::make(
    const MatrixProduct& product) const {
  const ColumnMajor order = column_major(product);
  auto made =
      std::make_shared<Chosen>(Chosen{layout_of(product.factors, order.rows_a, order.columns_a),
                                      layout_of(product.factors, order.rows_b, order.columns_b),
                                      layout_of(product.result, product.m, product.n)});
  bool found = take_algorithm(*made, product);
  if (!found && product.relu) {
    made->relu_apart = true;
    found = take_algorithm(*made, product);
  }
  require(found, ErrorKind::resource,
          "cuda: cuBLASLt has no algorithm for {}; choose another model, or run on the CPU",
          describe(product));
  return made;
}

/// With a bias of NaN, all results are NaN for any factors. An algorithm that gives other results
/// does not keep NaN.
bool MatrixProducts::keeps_nan(const Chosen& chosen, MatrixProduct product) const try {
  int device = 0;
  check(cudaGetDevice(&device), "cudaGetDevice");
  const Stream stream(device);
  const DeviceBuffer workspace(chosen.workspace_bytes, device),
      bias(static_cast<std::size_t>(product.m) * size_bytes(product.result), device);
  check(cudaMemsetAsync(bias.data(), 0xff, bias.size_bytes(),
                        static_cast<cudaStream_t>(stream.handle())),
        "cudaMemsetAsync");
  product.bias = bias.data();
  execute(chosen, product, workspace.data(), stream.handle());
  std::uint32_t first = 0;
  copy(&first, product.c, size_bytes(product.result), stream);
  stream.synchronize(Deadline(Seconds(60)));
  return first != 0;
} catch (const Error&) {
  return false;
}

const MatrixProducts::Chosen& MatrixProducts::choose(const MatrixProduct& p) {
  const Key key(p.m, p.n, p.k, p.a_by_k, p.b_by_k, p.bias != nullptr, p.relu, p.factors, p.result,
                alignment_of(p.a), alignment_of(p.b), alignment_of(p.c), alignment_of(p.bias));
  std::shared_ptr<const Chosen>& chosen = chosen_[key];
  if (!chosen) chosen = make(p);
  return *chosen;
}

std::size_t MatrixProducts::workspace_bytes(const MatrixProduct& product) {
  return choose(product).workspace_bytes;
}

void MatrixProducts::run(const MatrixProduct& product, void* workspace, void* stream) {
  execute(choose(product), product, workspace, stream);
}

void MatrixProducts::execute(const Chosen& chosen, const MatrixProduct& product, void* workspace,
                             void* stream) const {
  const float one = 1, zero = 0;
  const auto on = static_cast<cudaStream_t>(stream);
  const Operation operation =
      operation_of(chosen.relu_apart ? without_relu(product) : product, tf32_);
  check(cublasLtMatmul(handle_.get(), operation.get(), &one, product.a, chosen.a.get(), product.b,
                       chosen.b.get(), &zero, product.c, chosen.c.get(), product.c, chosen.c.get(),
                       &chosen.algorithm, workspace, chosen.workspace_bytes, on),
        describe(product));
  if (chosen.relu_apart) check(rectify(product, on), "a ReLU");
}

}  // namespace fast::cuda
