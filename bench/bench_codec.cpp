// Speed of the codecs on one thread, against a copy of the values, and of plain averages over slots
// of f32 and of bf16. Every value is verified.
#include <algorithm>
#include <cmath>
#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <fast/core/random.hpp>
#include <fast/mixing/kernels.hpp>

#include "codec/block.hpp"
#include "codec/sparse.hpp"
#include "report.hpp"

using namespace fast;

namespace {

constexpr std::size_t block = 2048;  // as the library's sweeps go
constexpr double sparse_fraction = 0.01;

struct Values {
  explicit Values(std::size_t count) : memory(count * sizeof(float)) {
    Rng rng(7);
    for (float& value : all()) value = static_cast<float>(rng.normal());
  }
  std::span<float> all() const { return memory.as<float>(); }
  AlignedBuffer memory;
};

void expect(bool holds, const std::string& what) {
  require(holds, ErrorKind::internal, "bench_codec: {}: a value is wrong", what);
}

/// visit(first, count) over the blocks.
template <class Visit>
void for_blocks(std::size_t count, const Visit& visit) {
  for (std::size_t first = 0; first < count; first += block) {
    visit(first, std::min(block, count - first));
  }
}

/// A codec's way there and back, block by block.
struct Trip {
  std::string name;
  codec::Kind kind;
  codec::Rounding rounding{};
  bool feedback = false;
  double tolerance = 0;  // of values up to 6
};

const std::vector<Trip>& trips() {
  static const std::vector<Trip> all{
      {"bf16", codec::Kind::bf16, {}, false, 0.02},
      {"bf16_stochastic", codec::Kind::bf16, {1}, false, 0.04},
      {"fp16", codec::Kind::fp16, {}, false, 0.003},
      {"int8", codec::Kind::int8, {}, false, 0.03},
      {"int8_feedback", codec::Kind::int8, {}, true, 0.06},
      {"int8_stochastic", codec::Kind::int8, {1}, false, 0.06},
  };
  return all;
}

/// All methods over vectors of `count` floats.
class Bench {
 public:
  explicit Bench(std::size_t count)
      : count_(count),
        x_(count),
        back_(count),
        error_(count * sizeof(float)),
        code_(std::max(codec::coded_bytes(codec::Kind::bf16, count),
                       codec::SparseShape{count}.size_bytes())),
        sparse_(count * sizeof(float)) {
    Rng rng(8);
    for (float& value : sparse_.as<float>()) {
      if (rng.uniform() < sparse_fraction) value = static_cast<float>(rng.normal());
    }
  }

  void run(bench::Report& report) {
    std::vector<bench::Method> methods{
        {"copy", [this] { std::copy_n(x_.all().data(), count_, back_.all().data()); }}};
    for (const Trip& trip : trips()) methods.push_back({trip.name, [&] { there_and_back(trip); }});
    methods.push_back({"sparse_1%", [this] { sparse_there_and_back(); }});
    for (bench::Method& method : methods) {
      method.calls = bench::calls_for(method.run);
      method.run();
      verify(method.name);
    }
    const auto timings = report.measure_interleaved(methods);
    for (std::size_t m = 0; m < methods.size(); ++m) {
      report.add(methods[m].name,
                 {{"bytes", count_ * sizeof(float)},
                  {"coded_bytes", coded_bytes(methods[m].name)},
                  {"speed_of_copy", timings[0].median_ms / timings[m].median_ms}},
                 timings[m]);
    }
  }

 private:
  void there_and_back(const Trip& trip) {
    for_blocks(count_, [&](std::size_t first, std::size_t length) {
      const float* from = x_.all().data() + first;
      std::byte* code = code_.data() + codec::coded_bytes(trip.kind, first);
      const codec::Rounding rounding{trip.rounding.key, first};
      if (trip.feedback) {
        float* error = error_.as<float>().data() + first;
        codec::encode_with_feedback(trip.kind, from, error, length, code, rounding);
      } else {
        codec::encode(trip.kind, from, length, code, rounding);
      }
    });
    for_blocks(count_, [&](std::size_t first, std::size_t length) {
      const std::byte* code = code_.data() + codec::coded_bytes(trip.kind, first);
      codec::decode(trip.kind, code, length, back_.all().data() + first);
    });
  }

  codec::SparseShape sparse_shape() const { return {count_ / 50 + 100}; }

  void sparse_there_and_back() {
    codec::SparseWriter writer(sparse_shape(), code_.data());
    for_blocks(count_, [&](std::size_t first, std::size_t length) {
      writer.append(sparse_.as<float>().data() + first, first, length);
    });
    for_blocks(count_, [&](std::size_t first, std::size_t length) {
      codec::decode_sparse(sparse_shape(), code_.data(), first, length, back_.all().data() + first);
    });
  }

  void verify(const std::string& method) const {
    const bool entries = method == "sparse_1%";
    const auto trip = std::find_if(trips().begin(), trips().end(),
                                   [&](const Trip& t) { return t.name == method; });
    const double tolerance = trip == trips().end() ? 0 : trip->tolerance;
    for (std::size_t e = 0; e < count_; ++e) {
      const float expected = entries ? sparse_.as<float>()[e] : x_.all()[e];
      expect(std::abs(back_.all()[e] - expected) <= tolerance, method);
    }
  }

  std::size_t coded_bytes(const std::string& method) const {
    for (const Trip& trip : trips()) {
      if (trip.name == method) return codec::coded_bytes(trip.kind, count_);
    }
    const auto entries = static_cast<std::size_t>(sparse_fraction * static_cast<double>(count_));
    return method == "copy" ? count_ * sizeof(float) : codec::SparseShape{entries}.size_bytes();
  }

  std::size_t count_;
  Values x_, back_;
  AlignedBuffer error_, code_, sparse_;
};

/// The fused end of a round with two neighbors.
class Averages {
 public:
  explicit Averages(std::size_t count) : count_(count), model_(count) {
    for (int slot = 0; slot < 4; ++slot) {
      wide_.emplace_back(count);
      narrow_.emplace_back(count * sizeof(BFloat16));
      codec::narrow(narrow(slot), wide(slot), count);
      codec::widen(wide(slot), narrow(slot), count);
    }
  }

  void run(bench::Report& report) {
    std::vector<bench::Method> methods{{"average_f32", [this] { average_wide(); }},
                                       {"average_bf16", [this] { average_narrow(); }}};
    verify();
    for (bench::Method& method : methods) method.calls = bench::calls_for(method.run);
    const auto timings = report.measure_interleaved(methods);
    const std::size_t slot_bytes[] = {sizeof(float), sizeof(BFloat16)};
    for (std::size_t m = 0; m < 2; ++m) {
      report.add(methods[m].name,
                 {{"bytes", count_ * sizeof(float)},
                  {"coded_bytes", count_ * slot_bytes[m]},
                  {"speed_of_f32", timings[0].median_ms / timings[m].median_ms}},
                 timings[m]);
    }
  }

 private:
  float* wide(int slot) const { return wide_[static_cast<std::size_t>(slot)].all().data(); }
  BFloat16* narrow(int slot) const {
    return narrow_[static_cast<std::size_t>(slot)].as<BFloat16>().data();
  }
  void average_wide() {
    const float* neighbors[] = {wide(2), wide(3)};
    mixing::average(model_.all().data(), wide(0), wide(1), neighbors, weights_, count_);
    mixing::stream_fence();
  }
  void average_narrow() {
    const BFloat16* neighbors[] = {narrow(2), narrow(3)};
    mixing::average(model_.all().data(), narrow(0), narrow(1), neighbors, weights_, count_);
    mixing::stream_fence();
  }
  void verify() {
    const std::vector<float> before(model_.all().begin(), model_.all().end());
    average_wide();
    const std::vector<float> expected(model_.all().begin(), model_.all().end());
    std::copy(before.begin(), before.end(), model_.all().begin());
    average_narrow();
    for (std::size_t e = 0; e < count_; ++e) {
      expect(model_.all()[e] == expected[e], "average_bf16");
      expect(narrow(0)[e].bits == to_bfloat16(expected[e]).bits, "the next slot of average_bf16");
    }
  }

  std::size_t count_;
  Values model_;
  std::vector<Values> wide_;
  std::vector<AlignedBuffer> narrow_;
  const std::vector<float> weights_{1.0F / 3, 1.0F / 3};
};

}  // namespace

int main(int argc, char** argv) {
  bench::Report report("bench_codec");
  CLI::App app{
      "Speed of the codecs on one thread: there and back, against a copy of the f32 values"};
  std::vector<double> megabytes{0.1, 1, 10, 40};
  app.add_option("--mb", megabytes, "sizes of the f32 values, in 10^6 bytes")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  report.add_options(app);
  CLI11_PARSE(app, argc, argv);
  try {
    for (const double size : megabytes) {
      const auto count = static_cast<std::size_t>(size * 1e6 / sizeof(float));
      Bench(count).run(report);
      Averages(count).run(report);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return report.finish();
}
