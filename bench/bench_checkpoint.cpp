// How long a checkpoint holds training up, against a plain copy of the same memory: a replica of 24
// tensors and as much of an optimizer's state. The file is read back and compared.
#include <cstdio>
#include <cstring>
#include <fast/core/deadline.hpp>
#include <fast/core/error.hpp>
#include <fast/core/memory.hpp>
#include <fast/core/random.hpp>
#include <filesystem>
#include <thread>

#include "report.hpp"
#include "train/checkpoint/checkpoint.hpp"

using namespace fast;

namespace {

constexpr int tensor_count = 48;

class Bench {
 public:
  Bench(double megabytes, std::filesystem::path directory)
      : directory_(std::move(directory) / "bench-checkpoint"),
        memory_(static_cast<std::size_t>(megabytes * 1e6) / (tensor_count * cache_line_bytes) *
                tensor_count * cache_line_bytes),
        copy_(memory_.size_bytes()),
        writer_(options_in(directory_)) {
    Rng rng(7);
    for (float& value : memory_.as<float>()) value = static_cast<float>(rng.normal());
    const std::size_t count = memory_.as<float>().size() / tensor_count;
    for (int t = 0; t < tensor_count; ++t) {
      tensors_.push_back(
          view_of("tensor" + std::to_string(t),
                  memory_.as<float>().subspan(static_cast<std::size_t>(t) * count, count)));
    }
  }
  ~Bench() { std::filesystem::remove_all(directory_); }
  Bench(const Bench&) = delete;
  Bench& operator=(const Bench&) = delete;

  void run(bench::Report& report) {
    const auto rest = [this] { await_manifest(); };
    const auto timings = report.measure_interleaved(
        {{"memcpy", [this] { copy(); }, 1, rest}, {"checkpoint", [this] { save(); }, 1, rest}});
    await_manifest();
    verify();
    const bench::Row row{{"bytes", memory_.size_bytes()}};
    for (std::size_t m = 0; m < timings.size(); ++m) {
      bench::Row with_ratio = row;
      with_ratio["of_memcpy"] = timings[m].median_ms / timings[0].median_ms;
      report.add(m == 0 ? "memcpy" : "checkpoint", with_ratio, timings[m]);
    }
  }

 private:
  static train::CheckpointWriter::Options options_in(const std::filesystem::path& directory) {
    train::CheckpointWriter::Options options;
    options.directory = directory;
    options.keep = 1;
    return options;
  }
  void copy() {
    std::byte* to = copy_.data();
    for (const TensorView& tensor : tensors_) {
      std::memcpy(to, tensor.data, tensor.size_bytes());
      to += tensor.size_bytes();
    }
  }

  void save() {
    ++round_;
    writer_.save(round_, tensors_, {{"fast.round", std::to_string(round_)}});
  }

  /// The writer rests once what was saved last is listed.
  void await_manifest() {
    const Deadline deadline(Seconds(60));
    while (round_ > 0 && (!listed() || copies_left() > 1)) {
      require(!deadline.expired(), ErrorKind::deadline, "bench_checkpoint: no manifest in {}",
              directory_.string());
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  bool listed() const {
    try {
      return train::find_checkpoint(directory_).round == round_;
    } catch (const Error&) {
      return false;
    }
  }
  std::ptrdiff_t copies_left() const {
    return std::distance(std::filesystem::directory_iterator(directory_), {});
  }

  void verify() const {
    const auto file = train::read_shard(train::find_checkpoint(directory_), 0);
    for (const TensorView& tensor : tensors_) {
      const auto* found = file.find(tensor.name);
      require(found != nullptr && found->size_bytes == tensor.size_bytes() &&
                  std::memcmp(file.data(*found).data(), tensor.data, tensor.size_bytes()) == 0,
              ErrorKind::internal, "bench_checkpoint: {} differs in the file", tensor.name);
    }
  }

  std::filesystem::path directory_;
  AlignedBuffer memory_, copy_;
  std::vector<TensorView> tensors_;
  std::int64_t round_ = 0;
  train::CheckpointWriter writer_;
};

}  // namespace

int main(int argc, char** argv) try {
  std::vector<double> megabytes{1, 10, 40};
  std::string directory = ".";
  bench::Report report("bench_checkpoint");
  CLI::App app("How long a checkpoint holds training up, against a copy of the same memory");
  app.option_defaults()->always_capture_default();
  app.add_option("--mb", megabytes, "sizes to save, in 1e6 bytes");
  app.add_option("--directory", directory, "in which to write; nothing is left there");
  report.add_options(app);
  CLI11_PARSE(app, argc, argv);
  for (const double size : megabytes) Bench(size, directory).run(report);
  return report.finish();
} catch (const std::exception& error) {
  std::fprintf(stderr, "error: %s\n", error.what());
  return 1;
}
