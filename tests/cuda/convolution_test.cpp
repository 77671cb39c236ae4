#include <algorithm>
#include <array>
#include <fast/core/error.hpp>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "cuda/network_checks.hpp"
#include "nn/cuda/convolution.hpp"
#include "nn/cuda/matrix_product.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::testing;

namespace {

/// Each convolution and product of a model's training.
template <class W>
std::vector<W> works_of(const nn::ModelSpec& spec,
                        cuda::Precision precision = cuda::Precision::f32) {
  static std::byte memory[256];  // places are told, nothing is read
  auto* place = reinterpret_cast<float*>(memory);
  const cuda::Program program = cuda::build_program(spec, 4, true, precision, {place, place, place},
                                                    [](std::size_t) { return memory; });
  std::vector<W> found;
  for (const cuda::Work& work : program.works)
    if (const auto* w = std::get_if<W>(&work)) found.push_back(*w);
  return found;
}

}  // namespace

TEST_CASE("cuDNN takes the operation of every convolution, forward and backward") {
  std::vector<nn::ModelSpec> models = device_models();
  models.push_back(nn::resnet20());
  models.push_back(nn::resnet50());
  std::size_t count = 0;
  for (const nn::ModelSpec& spec : models)
    for (const cuda::Precision precision : {cuda::Precision::f32, cuda::Precision::bf16})
      for (const cuda::Convolution& work : works_of<cuda::Convolution>(spec, precision)) {
        INFO(spec.name << ", " << cuda::name(precision));
        CHECK_NOTHROW(cuda::convolution_operation(work.kind, work.shape));
        CHECK(!cuda::is_pointwise(work.shape));  // these are matrix products
        ++count;
      }
  CHECK(count > 350);
}

TEST_CASE("cuDNN refuses an operation whose sizes do not fit, with what it says of it") {
  const cuda::ConvolutionShape wrong{2, 3, 8, 8, 4, 8, 8, 3, 1, 0};  // gives 6x6
  CHECK_THROWS_WITH(cuda::convolution_operation(cuda::Convolution::Kind::forward, wrong),
                    ContainsSubstring("cuDNN: 2 images of 3x8x8, 4 filters of 3x3, stride 1") &&
                        !ContainsSubstring("\n"));
}

TEST_CASE("sequences are images of one row, and their kernels too") {
  const nn::ModelSpec spec{"steps", {9, 5}, {nn::Conv1d{6, 4, 2, 1}, nn::Flatten{}, nn::Dense{2}}};
  const auto works = works_of<cuda::Convolution>(spec);
  REQUIRE(works.size() == 2);  // nothing asks for the gradients of the inputs
  for (const cuda::Convolution& work : works) {
    const cuda::ConvolutionShape& s = work.shape;
    CHECK(std::array{s.samples, s.channels, s.height, s.width} ==
          std::array<cuda::Index, 4>{4, 5, 1, 9});
    CHECK(std::array{s.filters, s.out_height, s.out_width} == std::array<cuda::Index, 3>{6, 1, 4});
    CHECK(std::array{s.kernel_rows(), s.kernel, s.stride} == std::array<cuda::Index, 3>{1, 4, 2});
    CHECK(std::array{s.padding_rows(), s.padding} == std::array<cuda::Index, 2>{0, 1});
  }
}

TEST_CASE("in cuBLASLt's columns a product has inner sides that fit") {
  for (const nn::ModelSpec& spec : device_models())
    for (const cuda::MatrixProduct& p : works_of<cuda::MatrixProduct>(spec)) {
      const cuda::ColumnMajor c = cuda::column_major(p);
      CHECK((c.transpose_a ? c.columns_a : c.rows_a) == p.m);
      CHECK((c.transpose_a ? c.rows_a : c.columns_a) == p.k);
      CHECK((c.transpose_b ? c.columns_b : c.rows_b) == p.k);
      CHECK((c.transpose_b ? c.rows_b : c.columns_b) == p.n);
      // Column by column, element (i, j) of what is stored lies at j · rows + i.
      CHECK(c.rows_a == (p.a_by_k ? p.m : p.k));
      CHECK(c.rows_b == (p.b_by_k ? p.n : p.k));
    }
}

TEST_CASE("of cuBLASLt's proposals those are used that it stands by, in its order") {
  std::array<cublasLtMatmulHeuristicResult_t, 4> proposals{};
  for (std::size_t i = 0; i < proposals.size(); ++i) proposals[i].workspaceSize = i;
  proposals[0].state = proposals[2].state = CUBLAS_STATUS_NOT_SUPPORTED;
  const auto found = cuda::usable(CUBLAS_STATUS_SUCCESS, proposals, "choosing");
  REQUIRE(found.size() == 2);
  CHECK(found[0].workspaceSize == 1);
  CHECK(found[1].workspaceSize == 3);
}

TEST_CASE("where cuBLASLt supports no epilogue there are no proposals; other failures are told") {
  // Heuristics that know no kernel for bias and ReLU at once end with this status: the product is
  // then tried without the ReLU.
  std::array<cublasLtMatmulHeuristicResult_t, 2> stale{};
  CHECK(cuda::usable(CUBLAS_STATUS_NOT_SUPPORTED, stale, "choosing").empty());
  CHECK(cuda::usable(CUBLAS_STATUS_SUCCESS, {}, "choosing").empty());
  CHECK_THROWS_WITH(cuda::usable(CUBLAS_STATUS_INVALID_VALUE, stale, "choosing an algorithm"),
                    ContainsSubstring("choosing an algorithm failed with status 7"));
}

TEST_CASE(
    "engines are taken by their notes: TF32 and those that differ from run to run if allowed") {
  using Notes = std::vector<cudnnBackendNumericalNote_t>;
  const Notes plain{CUDNN_NUMERICAL_NOTE_FFT}, cores{CUDNN_NUMERICAL_NOTE_TENSOR_CORE},
      loose{CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC},
      both{CUDNN_NUMERICAL_NOTE_TENSOR_CORE, CUDNN_NUMERICAL_NOTE_NONDETERMINISTIC},
      halves{CUDNN_NUMERICAL_NOTE_DOWN_CONVERT_INPUTS};
  for (const DType type : {DType::f32, DType::bf16})
    for (const bool tf32 : {false, true})
      for (const bool deterministic : {false, true}) {
        const cuda::PlanRules rules{tf32, deterministic};
        const bool may_use_cores = tf32 || type == DType::bf16;
        CHECK(cuda::suits(plain, type, rules));
        CHECK(cuda::suits(cores, type, rules) == may_use_cores);
        CHECK(cuda::suits(loose, type, rules) == !deterministic);
        CHECK(cuda::suits(both, type, rules) == (may_use_cores && !deterministic));
        CHECK_FALSE(cuda::suits(halves, type, rules));
      }
}

TEST_CASE("works have the same name if a plan of one serves the other, and no other works do") {
  using Kinds = std::vector<std::pair<cuda::Convolution::Kind, cuda::ConvolutionShape>>;
  std::vector<nn::ModelSpec> models = device_models();
  models.push_back(nn::resnet50());
  std::map<std::string, Kinds::value_type> convolutions;
  std::size_t count = 0;
  Kinds kinds;
  for (const nn::ModelSpec& spec : models)
    for (const cuda::Precision precision : {cuda::Precision::f32, cuda::Precision::bf16}) {
      for (const cuda::Convolution& work : works_of<cuda::Convolution>(spec, precision)) {
        const Kinds::value_type kind{work.kind, work.shape};
        if (std::ranges::find(kinds, kind) == kinds.end()) kinds.push_back(kind);
        const std::string name = cuda::tuned_name(work, false);
        CHECK((convolutions.emplace(name, kind).first->second == kind));
        CHECK(cuda::tuned_name(work, true) != name);
        ++count;
      }
      for (const cuda::MatrixProduct& work : works_of<cuda::MatrixProduct>(spec, precision)) {
        cuda::MatrixProduct other = work;
        other.relu = !other.relu;
        CHECK(cuda::tuned_name(other, false) != cuda::tuned_name(work, false));
        CHECK(cuda::tuned_name(work, true) != cuda::tuned_name(work, false));
      }
    }
  CHECK(convolutions.size() == kinds.size());
  CHECK(kinds.size() < count);  // ResNet-50 has many equal ones
}

TEST_CASE("alignments are those of addresses") {
  alignas(256) static std::byte memory[512];
  CHECK(cuda::alignment_of(memory) == 256);
  CHECK(cuda::alignment_of(memory + 4) == 4);
  CHECK(cuda::alignment_of(memory + 48) == 16);
  CHECK(cuda::alignment_of(nullptr) == 256);
}

TEST_CASE("filters lie where fast kernels take them") {
  // 5 biases put the second convolution's 1x1 filters at a place that is no multiple of 16 bytes.
  const nn::ModelSpec spec{
      "odd", {1, 6, 6}, {nn::Conv2d{5, 3}, nn::Conv2d{4, 1}, nn::Flatten{}, nn::Dense{2}}};
  alignas(256) static std::byte model[1 << 16], other[1 << 16];
  auto* place = reinterpret_cast<float*>(model);
  const cuda::Program program =
      cuda::build_program(spec, 1, true, cuda::Precision::f32, {place, place, place},
                          [](std::size_t) { return other; });
  for (const cuda::Work& work : program.works)
    if (const auto* w = std::get_if<cuda::Convolution>(&work))
      for (const void* tensor : {w->a, w->b, static_cast<const void*>(w->out)})
        CHECK(cuda::alignment_of(tensor) >= 16);
}
