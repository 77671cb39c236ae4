#include <sys/resource.h>
#include <sys/stat.h>

#include <csignal>
#include <fast/core/error.hpp>
#include <fstream>
#include <iterator>

#include "core/whole_file.hpp"
#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

using namespace fast;

namespace {

std::string text_of(const std::filesystem::path& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

std::size_t entries_of(const std::filesystem::path& directory) {
  return static_cast<std::size_t>(
      std::distance(std::filesystem::directory_iterator(directory), {}));
}

/// While it lives, no file of this process grows beyond that.
class FullDisk {
 public:
  explicit FullDisk(rlim_t bytes) : handler_(std::signal(SIGXFSZ, SIG_IGN)) {
    getrlimit(RLIMIT_FSIZE, &before_);
    const rlimit limit{bytes, before_.rlim_max};
    setrlimit(RLIMIT_FSIZE, &limit);
  }
  ~FullDisk() {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, handler_);
  }

 private:
  void (*handler_)(int);
  rlimit before_{};
};

}  // namespace

TEST_CASE("a file that cannot be written to its end leaves the one that was there") {
  const testing::TemporaryDirectory directory;
  const auto path = directory / "file";
  write_whole(path, "before");
  for (const std::size_t size : {2'000, 200'000, 3'000'000}) {
    const FullDisk full(1'000);
    CHECK_THROWS_AS(write_whole(path, std::string(size, 'x')), Error);
    CHECK_THROWS_AS(write_durably(path, {bytes_of(std::string(size, 'x'))}), Error);
  }
  {
    WholeFile unfinished(path);
    unfinished.write(std::string(100'000, 'x'));
  }
  CHECK(text_of(path) == "before");
  CHECK(entries_of(directory.path()) == 1);
}

TEST_CASE("parts of all sizes come one after the other") {
  const testing::TemporaryDirectory directory;
  std::string all;
  WholeFile file(directory / "file");
  for (const std::size_t size : {1, 65'535, 1, 65'536, 65'537, 0, 200'000, 3}) {
    const std::string part(size, static_cast<char>('a' + all.size() % 26));
    file.write(part);
    all += part;
  }
  CHECK(entries_of(directory.path()) == 1);
  CHECK_FALSE(std::filesystem::exists(directory / "file"));
  file.finish();
  CHECK(text_of(directory / "file") == all);
}

TEST_CASE("a link stays a link, permissions stay, and devices are written directly") {
  const testing::TemporaryDirectory directory;
  const auto real = directory / "real", link = directory / "link";
  std::ofstream(real) << "before";
  chmod(real.c_str(), 0600);
  std::filesystem::create_symlink("real", link);
  write_whole(link, "after");
  CHECK(std::filesystem::is_symlink(link));
  CHECK(text_of(real) == "after");
  struct stat status {};
  REQUIRE(stat(real.c_str(), &status) == 0);
  CHECK((status.st_mode & 0777) == 0600);
  write_whole("/dev/null", "text");
  CHECK_THROWS_WITH(write_whole("/dev/full", "text"), ContainsSubstring("No space left"));
}

TEST_CASE("a link to nothing makes the file that it leads to") {
  const testing::TemporaryDirectory directory;
  std::filesystem::create_symlink("real", directory / "link");
  write_whole(directory / "link", "text");
  CHECK(std::filesystem::is_symlink(directory / "link"));
  CHECK(text_of(directory / "real") == "text");
}

TEST_CASE("what cannot be written is said before, and no file is made") {
  const testing::TemporaryDirectory directory;
  CHECK_NOTHROW(require_writable(directory / "new"));
  CHECK_NOTHROW(require_writable("/dev/full"));
  CHECK_THROWS_WITH(require_writable(directory.path()), ContainsSubstring("Is a directory"));
  CHECK_THROWS_WITH(write_whole(directory.path(), ""), ContainsSubstring("Is a directory"));
  CHECK_THROWS_WITH(require_writable(directory / "no/new"), ContainsSubstring("No such file"));
  CHECK_THROWS_WITH(write_whole(directory / "no/new", ""), ContainsSubstring("No such file"));
  CHECK(entries_of(directory.path()) == 0);
}
