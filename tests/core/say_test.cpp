#include "core/message.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <fstream>
#include <sstream>
#include <string>

#include "support/catch.hpp"
#include "support/temporary_directory.hpp"

using namespace fast;

namespace {

/// A pipe, with its writing end as a stream.
struct Pipe {
  Pipe() {
    int ends[2];
    REQUIRE(pipe(ends) == 0);
    reader = ends[0];
    writer = fdopen(ends[1], "w");
  }
  Pipe(const Pipe&) = delete;
  Pipe& operator=(const Pipe&) = delete;
  ~Pipe() {
    std::fclose(writer);
    if (reader >= 0) close(reader);
  }
  /// Nothing more fits in.
  void fill() const {
    const int end = fileno(writer);
    fcntl(end, F_SETFL, O_NONBLOCK);
    while (write(end, "x", 1) == 1) continue;
    fcntl(end, F_SETFL, 0);
  }
  std::string read_some() const {
    std::string text(1 << 17, ' ');
    const ssize_t count = read(reader, text.data(), text.size());
    text.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    return text;
  }
  int reader = -1;
  std::FILE* writer = nullptr;
};

}  // namespace

TEST_CASE("a text follows what the stream holds already") {
  const testing::TemporaryDirectory directory;
  std::FILE* file = std::fopen((directory / "text").c_str(), "w");
  std::fputs("first, ", file);
  write_or_drop(file, "second, ");
  std::fputs("third", file);
  std::fclose(file);
  std::ostringstream text;
  text << std::ifstream(directory / "text").rdbuf();
  CHECK(text.str() == "first, second, third");
}

TEST_CASE("a long text goes through a pipe that is read") {
  const Pipe pipe;
  const std::string text(20000, 'y');
  write_or_drop(pipe.writer, text);
  std::string found;
  while (found.size() < text.size()) found += pipe.read_some();
  CHECK(found == text);
}

TEST_CASE("a text for a pipe that nobody reads is dropped, and a later one is not") {
  const Pipe pipe;
  pipe.fill();
  write_or_drop(pipe.writer, "lost", Seconds(0));
  write_or_drop(pipe.writer, "lost", Seconds(0.01));
  CHECK(pipe.read_some().find("lost") == std::string::npos);
  write_or_drop(pipe.writer, "found");
  CHECK(pipe.read_some() == "found");
  CHECK((fcntl(fileno(pipe.writer), F_GETFL) & O_NONBLOCK) == 0);  // others may share it
}

TEST_CASE("a text without a reader, on a full disk or for a closed stream does no harm") {
  Pipe pipe;
  close(pipe.reader);
  pipe.reader = -1;
  write_or_drop(pipe.writer, "lost");  // SIGPIPE would end this process
  std::FILE* full = std::fopen("/dev/full", "w");
  write_or_drop(full, "lost");
  std::fclose(full);
  std::FILE* closed = std::fopen("/dev/null", "w");
  close(fileno(closed));
  write_or_drop(closed, "lost");
  std::fclose(closed);
}
