// The averaging kernels against STREAM's triad of the same run, on as many threads: bytes that
// truly move (each kernel states its streams) over time.
#include <fast/core/memory.hpp>
#include <fast/mixing/kernels.hpp>

#include <algorithm>
#include <cstdio>
#include <stdexcept>

#include "core/thread_crew.hpp"
#include "exchange/shared/slot_board.hpp"
#include "report.hpp"

using namespace fast;

namespace {

/// McCalpin's STREAM triad. Its plain stores read each line first: 4 streams move; where a compiler
/// makes streaming stores of them, as here, 3.
void triad(float* __restrict a, const float* __restrict b, const float* __restrict c,
           std::size_t count) {
  for (std::size_t e = 0; e < count; ++e) a[e] = b[e] + 3.0F * c[e];
}

class Bench {
 public:
  Bench(std::size_t count, int threads) : count_(count), crew_(threads) {
    for (int v = 0; v < 12; ++v) {
      vectors_.emplace_back(count * sizeof(float) + page_bytes);
      for (std::size_t e = 0; e < count; ++e) at(v)[e] = static_cast<float>(v + 1);
    }
  }

  void run(bench::Report& report) {
    std::vector<bench::Method> methods{{"triad, plain stores",
                                        [this] {
                                          each_part([this](std::size_t first, std::size_t count) {
                                            triad(at(0) + first, at(1) + first, at(2) + first,
                                                  count);
                                          });
                                        }},
                                       {"triad, streaming stores", [this] { streaming_triad(); }},
                                       {"reads of 8 vectors", [this] { read(8); }}};
    std::vector<int> streams{4, 3, 8};
    for (const int degree : {1, 2, 4, 8}) {
      verify(degree);
      methods.push_back({"average, fixed arena, d = " + std::to_string(degree),
                         [this, degree] { average(degree); }});
      streams.push_back(degree + 4);
      methods.push_back({"average, rotating arena, d = " + std::to_string(degree),
                         [this, degree] { rotate(degree); }});
      streams.push_back(degree + 2);
    }
    for (auto& method : methods) method.calls = bench::calls_for(method.run, 5);
    const auto timings = report.measure_interleaved(methods);
    std::vector<double> rates;
    for (std::size_t m = 0; m < methods.size(); ++m) {
      rates.push_back(streams[m] * static_cast<double>(count_ * sizeof(float)) /
                      timings[m].median_ms / 1e6);
    }
    for (std::size_t m = 0; m < methods.size(); ++m) {
      report.add(methods[m].name,
                 {{"topology", "-"},
                  {"workers", 1},
                  {"bytes", count_ * sizeof(float)},
                  {"streams", streams[m]},
                  {"GB/s", rates[m]},
                  {"of triad", rates[m] / std::max(rates[0], rates[1])}},
                 timings[m]);
    }
  }

 private:
  /// Vector 0 is the weights, 1 and 2 are slots of worker 0, each other one is a slot of a worker.
  float* at(int v) {
    const exchange::SlotLayout slots(PayloadShape{count_ * sizeof(float), 1, 0});
    const std::size_t place = slots.slot_offset(std::max(v - 2, 0), 0) % page_bytes;
    return vectors_[static_cast<std::size_t>(v)].as<float>().data() + place / sizeof(float);
  }

  std::vector<const float*> neighbors(int degree, std::size_t first) {
    std::vector<const float*> values;
    for (int j = 0; j < degree; ++j) values.push_back(at(3 + j) + first);
    return values;
  }
  /// Calls part(first, count) for parts of the vectors, on all threads.
  template <class F>
  void each_part(const F& part) {
    constexpr std::size_t most = std::size_t{1} << 16;
    crew_.each((count_ + most - 1) / most, [&](std::size_t p) {
      part(p * most, std::min(most, count_ - p * most));
      mixing::stream_fence();
    });
  }
  static std::vector<float> weights(int degree) {
    return std::vector<float>(static_cast<std::size_t>(degree),
                              1.0F / static_cast<float>(degree + 1));
  }

  void average(int degree) {
    each_part([this, degree](std::size_t first, std::size_t count) {
      mixing::average(at(0) + first, at(1) + first, at(2) + first, neighbors(degree, first),
                      weights(degree), count);
    });
  }

  void rotate(int degree) {
    each_part([this, degree](std::size_t first, std::size_t count) {
      float* const none = nullptr;
      mixing::average(none, at(1) + first, at(2) + first, neighbors(degree, first), weights(degree),
                      count);
    });
  }

  void streaming_triad() {
    const float* values[] = {at(1), at(2)};
    static constexpr float w[] = {1.0F, 3.0F};
    constexpr std::size_t block = 2048;
    each_part([&](std::size_t begin, std::size_t count) {
      alignas(64) float scratch[block];
      for (std::size_t first = begin; first < begin + count; first += block) {
        const std::size_t size = std::min(block, begin + count - first);
        const float* parts[] = {values[0] + first, values[1] + first};
        mixing::weighted_sum(scratch, parts, w, size);
        mixing::stream_copy(at(0) + first, scratch, size * sizeof(float));
      }
    });
  }

  /// What a core only reads is slower than what it reads and writes. The sum stays in the cache.
  void read(int vectors) {
    constexpr std::size_t block = 2048;
    each_part([&](std::size_t begin, std::size_t count) {
      alignas(64) float scratch[block];
      for (std::size_t first = begin; first < begin + count; first += block) {
        mixing::weighted_sum(scratch, neighbors(vectors, first), weights(vectors),
                             std::min(block, begin + count - first));
      }
    });
  }

  void verify(int degree) {
    const float own = 3;
    float expected = own;
    for (int j = 0; j < degree; ++j) {
      expected += (static_cast<float>(4 + j) - own) / static_cast<float>(degree + 1);
    }
    std::fill_n(at(0), count_, own);
    average(degree);
    check(at(0), expected);
    check(at(1), expected);
    rotate(degree);
    check(at(1), expected);
  }
  void check(const float* values, float expected) const {
    for (std::size_t e = 0; e < count_; ++e) {
      if (std::abs(values[e] - expected) > 1e-5F) throw std::runtime_error("a kernel is wrong");
    }
  }

  std::size_t count_;
  ThreadCrew crew_;
  std::vector<AlignedBuffer> vectors_;
};

}  // namespace

int main(int argc, char** argv) {
  bench::Report report("bench_mixing");
  CLI::App app{"Bandwidth of the averaging kernels against STREAM's triad"};
  std::vector<double> megabytes{10, 40};
  app.add_option("--mb", megabytes, "sizes of a vector, in 10^6 bytes")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  int threads = 1;
  app.add_option("--threads", threads, "which share a vector")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  report.add_options(app);
  CLI11_PARSE(app, argc, argv);
  try {
    for (const double size : megabytes) {
      Bench(static_cast<std::size_t>(size * 1e6 / sizeof(float)), threads).run(report);
    }
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return report.finish();
}
