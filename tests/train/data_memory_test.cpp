// How much memory fast-train takes for its data, whatever the number of workers of the process.
#include <fmt/core.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fstream>
#include <vector>

#include "support/catch.hpp"
#include "support/idx_files.hpp"
#include "support/temporary_directory.hpp"

using namespace fast::testing;

namespace {

constexpr std::uint32_t images = 80'000;
constexpr double megabyte = 1e6, data_mb = images * 784 / megabyte;

/// Of so many black images; the file has holes.
void write_part(const std::filesystem::path& directory, const std::string& name,
                std::uint32_t count) {
  Bytes header;
  for (const std::uint32_t word : {0x803U, count, 28U, 28U}) append_word(header, word);
  write_plain(directory / (name + "-images-idx3-ubyte"), header);
  std::filesystem::resize_file(directory / (name + "-images-idx3-ubyte"),
                               header.size() + std::size_t{count} * 784);
  write_plain(directory / (name + "-labels-idx1-ubyte"), idx_labels(count));
}

/// The most memory that a run of 16 workers as threads held at a time.
double peak_mb(const std::filesystem::path& data, const std::vector<std::string>& options) {
  std::vector<std::string> words = {
      FAST_TRAIN_PROGRAM, "--exchange", "local",   "--workers", "16",         "--model", "mlp:4",
      "--epochs",         "1",          "--quiet", "--data",    data.string()};
  words.insert(words.end(), options.begin(), options.end());
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  pid_t child = 0;
  REQUIRE(posix_spawn(&child, FAST_TRAIN_PROGRAM, nullptr, nullptr, arguments.data(), environ) ==
          0);
  int status = -1;
  rusage used{};
  REQUIRE(wait4(child, &status, 0, &used) == child);
  REQUIRE(status == 0);
  return static_cast<double>(used.ru_maxrss) * 1024 / megabyte;
}

}  // namespace

TEST_CASE("sixteen workers of a process hold one copy of the data, and of few samples no more") {
  const TemporaryDirectory directory;
  write_part(directory.path(), "train", images);
  write_part(directory.path(), "t10k", 100);
  const double all = peak_mb(directory.path(), {"--batch-size", "500"});
  const double few = peak_mb(directory.path(), {"--samples", "1600", "--batch-size", "20"});
  INFO("all samples: " << all << " MB, 1600 samples: " << few << " MB, data: " << data_mb << " MB");
  CHECK(all < 6 * data_mb);  // one copy, and what its growth takes; sixteen would be 16
  CHECK(few < all - data_mb / 2);
}
