#include <cmath>
#include <cstring>
#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>

#include "codec/coded_layout.hpp"
#include "support/catch.hpp"

using namespace fast;
using namespace fast::codec;

namespace {

/// Tensors of a model, next to each other in memory or apart.
struct Model {
  explicit Model(bool together) {
    for (std::size_t e = 0; e < memory.size(); ++e) memory[e] = static_cast<float>(e % 101) - 50;
    const std::size_t gap = together ? 0 : 5;
    views = {view_of("a", std::span(memory).subspan(0, 300)),
             view_of("b", std::span(memory).subspan(300 + gap, 7)),
             view_of("c", std::span(memory).subspan(307 + 2 * gap, 1000)),
             view_of("d", std::span(doubles)),
             view_of("h", std::span(halves)),
             view_of("mean", std::span(statistics), Role::buffer)};
  }
  std::vector<float> memory = std::vector<float>(1400);
  std::vector<double> doubles = std::vector<double>(33, 2.5);
  std::vector<BFloat16> halves = std::vector<BFloat16>(9, to_bfloat16(3));
  std::vector<float> statistics = std::vector<float>(3, 1.0F / 3);
  std::vector<TensorView> views;
};

const Piece& piece_of(const CodedLayout& layout, DType dtype, Role role = Role::parameter) {
  for (const Piece& piece : layout.pieces()) {
    if (piece.segment.dtype == dtype && piece.segment.role == role) return piece;
  }
  throw std::runtime_error("no such piece");
}

}  // namespace

TEST_CASE("identity lies as the packed vector does") {
  Model model(true);
  const ParameterLayout layout(model.views);
  const CodedLayout coded(layout, Kind::identity);
  CHECK(coded.size_bytes() == layout.size_bytes());
  REQUIRE(coded.pieces().size() == layout.segments().size());
  for (const Piece& piece : coded.pieces()) {
    CHECK(piece.offset_bytes == piece.segment.offset_bytes);
    CHECK(piece.code_offset(2) == piece.offset_bytes + 2 * size_bytes(piece.segment.dtype));
  }
}

TEST_CASE("offsets do not depend on where tensors lie in memory") {
  Model together(true), apart(false);
  for (const Kind kind : {Kind::identity, Kind::bf16, Kind::fp16, Kind::int8, Kind::sparse}) {
    const CodedLayout a(ParameterLayout(together.views), kind, 10);
    const CodedLayout b(ParameterLayout(apart.views), kind, 10);
    CHECK(a.size_bytes() == b.size_bytes());
    for (const auto& [dtype, role] : {std::pair{DType::f32, Role::parameter},
                                      {DType::f64, Role::parameter},
                                      {DType::bf16, Role::parameter},
                                      {DType::f32, Role::buffer}}) {
      CHECK(piece_of(a, dtype, role).offset_bytes == piece_of(b, dtype, role).offset_bytes);
      CHECK(piece_of(a, dtype, role).first == piece_of(b, dtype, role).first);
    }
    CHECK(a.pieces().back().offset_bytes == b.pieces().back().offset_bytes);
  }
}

TEST_CASE("buffers are never coded, 16-bit parameters not by 16-bit kinds") {
  Model model(true);
  const ParameterLayout layout(model.views);
  for (const Kind kind : {Kind::bf16, Kind::fp16, Kind::int8, Kind::sparse}) {
    const CodedLayout coded(layout, kind, 10);
    CHECK(piece_of(coded, DType::f32, Role::buffer).kind == Kind::identity);
    CHECK(piece_of(coded, DType::f32).kind == kind);
    CHECK(piece_of(coded, DType::f64).kind == kind);
    const bool halves = kind == Kind::bf16 || kind == Kind::fp16;
    CHECK(piece_of(coded, DType::bf16).kind == (halves ? Kind::identity : kind));
  }
}

TEST_CASE("pieces do not overlap and fill what the layout says") {
  for (const bool together : {true, false}) {
    Model model(together);
    for (const Kind kind : {Kind::identity, Kind::bf16, Kind::fp16, Kind::int8}) {
      const CodedLayout coded(ParameterLayout(model.views), kind);
      std::size_t end = 0;
      for (const Piece& piece : coded.pieces()) {
        CHECK(piece.offset_bytes >= end);
        CHECK(piece.offset_bytes < end + cache_line_bytes);
        end = piece.offset_bytes + piece.code_bytes(piece.segment.element_count);
      }
      CHECK(coded.size_bytes() == end);
    }
  }
}

TEST_CASE("a coded vector decodes to a packed one") {
  Model model(false);
  const ParameterLayout layout(model.views);
  for (const Kind kind : {Kind::identity, Kind::bf16, Kind::fp16, Kind::int8}) {
    const CodedLayout coded(layout, kind);
    const AlignedBuffer vector(coded.size_bytes()), packed(layout.size_bytes());
    for (const Piece& piece : coded.pieces()) {
      const Segment& s = piece.segment;
      std::byte* to = vector.data() + piece.offset_bytes;
      if (piece.kind == Kind::identity) {
        std::memcpy(to, s.data, s.size_bytes());
      } else if (s.dtype == DType::f32) {
        encode(piece.kind, static_cast<const float*>(s.data), s.element_count, to);
      } else if (s.dtype == DType::f64) {
        encode(piece.kind, static_cast<const double*>(s.data), s.element_count, to);
      } else {
        const std::vector<float> three(s.element_count, 3);
        encode(piece.kind, three.data(), s.element_count, to);
      }
    }
    decode(coded, vector.data(), packed.data());
    const float* of_c = reinterpret_cast<const float*>(packed.data()) + 307;
    const float* c = model.memory.data() + 317;
    for (std::size_t e = 0; e < 1000; ++e) REQUIRE(std::abs(of_c[e] - c[e]) <= 0.21F);
    for (const Segment& s : layout.segments()) {
      const std::byte* at = packed.data() + s.offset_bytes;
      if (s.dtype == DType::f64) CHECK(*reinterpret_cast<const double*>(at) == Approx(2.5));
      if (s.dtype == DType::bf16) CHECK(to_float(*reinterpret_cast<const BFloat16*>(at)) == 3);
      if (s.role == Role::buffer) CHECK(*reinterpret_cast<const float*>(at) == 1.0F / 3);
    }
  }
}

TEST_CASE("coded sizes") {
  std::vector<float> x(2560);
  const ParameterLayout layout({view_of("x", std::span(x))});
  CHECK(CodedLayout(layout, Kind::bf16).size_bytes() == 5120);
  CHECK(CodedLayout(layout, Kind::fp16).size_bytes() == 5120);
  CHECK(CodedLayout(layout, Kind::int8).size_bytes() == 2600);
  CHECK(CodedLayout(layout, Kind::sparse, 25).size_bytes() == 8 + 104 + 104);
  // 8 + 38 = 46, code from 48 on: 25 + 4 = 29
  CHECK(CodedLayout(layout, Kind::sparse, 25, Kind::int8).size_bytes() == 80);
}
