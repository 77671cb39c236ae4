// The averaging kernels on a card against a device-to-device copy of the same run: bytes that truly
// move (each kernel states its streams) over time.
#include <fast/core/error.hpp>
#include <fast/cuda/device.hpp>
#include <fast/cuda/kernels.hpp>
#include <fast/cuda/memory.hpp>

#include <cstdio>
#include <cstring>
#include <type_traits>

#include "report.hpp"

using namespace fast;

namespace {

const Seconds limit{60};

template <class Stored>
const char* type_name = "f32";
template <>
const char* type_name<BFloat16> = "bf16";

template <class Stored>
class Bench {
 public:
  explicit Bench(std::size_t count) : count_(count), wide_(count * sizeof(float)) {
    for (int v = 0; v < 6; ++v) slots_.emplace_back(count * sizeof(Stored));
  }

  void run(bench::Report& report) {
    add("copy, device to device", 2 * sizeof(Stored),
        [this] { cuda::copy(slot(0), slot(1), count_ * sizeof(Stored), stream_); });
    for (const int degree : {1, 2, 4}) {
      const auto neighbors = static_cast<std::size_t>(degree);
      const std::string d = ", d = " + std::to_string(degree);
      verify(degree);
      add("average, fixed arena" + d, 8 + (2 + neighbors) * sizeof(Stored),
          [this, degree] { cuda::average(work(degree, wide()), stream_); });
      add("average, rotating arena" + d, (2 + neighbors) * sizeof(Stored),
          [this, degree] { cuda::average(work(degree, nullptr), stream_); });
    }
    for (auto& method : methods_) method.calls = bench::calls_for(method.run, 20);
    auto timings = report.measure_interleaved(methods_);
    for (bench::Timing& timing : timings)
      for (double* time : {&timing.median_ms, &timing.low_ms, &timing.high_ms}) *time /= in_a_row;
    double copied = 0;
    for (std::size_t m = 0; m < methods_.size(); ++m) {
      const double rate = static_cast<double>(moved_[m] * count_) / timings[m].median_ms / 1e6;
      if (m == 0) copied = rate;
      report.add(methods_[m].name,
                 {{"slots", type_name<Stored>},
                  {"elements", count_},
                  {"bytes", moved_[m] * count_},
                  {"GB/s", rate},
                  {"of copy", rate / copied}},
                 timings[m]);
    }
    report.save();
  }

 private:
  // Waiting for the device takes tens of microseconds, some kernels hundreds.
  static constexpr int in_a_row = 16;

  Stored* slot(std::size_t v) { return slots_[v].template as<Stored>().data(); }
  float* wide() { return wide_.template as<float>().data(); }

  /// `moved`: bytes an element.
  void add(const std::string& name, std::size_t moved, const std::function<void()>& enqueue) {
    methods_.push_back({name, [this, enqueue] {
                          for (int i = 0; i < in_a_row; ++i) enqueue();
                          stream_.synchronize(Deadline(limit));
                        }});
    moved_.push_back(moved);
  }

  cuda::Average<float, Stored> work(int degree, float* current) {
    for (std::size_t j = 0; j < 4; ++j) values_[j] = slot(2 + j);
    const auto neighbors = static_cast<std::size_t>(degree);
    return {current, slot(0), slot(1), {values_, neighbors}, {weights_, neighbors}, count_};
  }

  /// Own values 1, neighbors' 3, weights of 1/8.
  void verify(int degree) {
    const auto value = [](float x) {
      if constexpr (std::is_same_v<Stored, BFloat16>)
        return to_bfloat16(x);
      else
        return x;
    };
    std::vector<Stored> host(count_, value(1));
    cuda::copy(slot(1), host.data(), count_ * sizeof(Stored), stream_);
    stream_.synchronize(Deadline(limit));
    host.assign(count_, value(3));
    for (std::size_t j = 2; j < 6; ++j)
      cuda::copy(slot(j), host.data(), count_ * sizeof(Stored), stream_);
    cuda::average(work(degree, nullptr), stream_);
    cuda::copy(host.data(), slot(0), count_ * sizeof(Stored), stream_);
    stream_.synchronize(Deadline(limit));
    const Stored expected = value(1 + 0.25F * static_cast<float>(degree));
    for (const Stored& found : host) {
      require(std::memcmp(&found, &expected, sizeof expected) == 0, ErrorKind::internal,
              "bench_cuda: the averaging kernel is wrong for {} neighbors", degree);
    }
  }

  std::size_t count_;
  cuda::Stream stream_;
  std::vector<cuda::DeviceBuffer> slots_;
  cuda::DeviceBuffer wide_;
  std::vector<bench::Method> methods_;
  std::vector<std::size_t> moved_;
  const Stored* values_[4] = {};
  float weights_[4] = {0.125F, 0.125F, 0.125F, 0.125F};
};

}  // namespace

int main(int argc, char** argv) {
  bench::Report report("bench_cuda");
  CLI::App app{"Bandwidth of the averaging kernels on a card, against a device-to-device copy"};
  double millions = 256;
  app.add_option("--millions", millions, "elements of a vector, in 10^6")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  report.add_options(app);
  CLI11_PARSE(app, argc, argv);
  try {
    const cuda::DeviceInfo card = cuda::device(0);
    std::printf("%s, compute capability %d.%d\n", card.name.c_str(), card.major, card.minor);
    const auto count = static_cast<std::size_t>(millions * 1e6);
    Bench<float>(count).run(report);
    Bench<BFloat16>(count).run(report);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
  return report.finish();
}
