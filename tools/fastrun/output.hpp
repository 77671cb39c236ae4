// What ranks print, on its way to fastrun: a TCP connection of its own for each rank. The process
// manager's pipes end with the process manager, and ranks can live longer.
#pragma once

#include <fast/core/deadline.hpp>

#include <poll.h>

#include <array>
#include <deque>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "fastrun/channel.hpp"

namespace fastrun {

/// The streams of a rank, as they are named on the connection.
inline constexpr std::array<char, 2> streams{'o', 'e'};

/// The line after which a connection carries them begins with this; the rank follows.
inline constexpr std::string_view output_follows = "output ";

/// The last lines of a text.
class LastLines {
 public:
  void add(std::string_view text);
  const std::deque<std::string>& get() const { return lines_; }

 private:
  std::string begun_;
  std::deque<std::string> lines_;
};

/// The wrapper's end. It sends what the rank writes to two pipes. When fastrun reads slowly, the
/// rank waits as with any pipe. When the connection has failed, the text is dropped.
class OutputSender {
 public:
  OutputSender(Descriptor connection, Descriptor output, Descriptor errors);

  /// What poll() must watch.
  std::array<pollfd, 3> watched() const;
  /// Moves what can be moved without waiting.
  void advance();
  /// Takes all that the rank, which has ended, has left in the pipes.
  void take_rest();
  /// Nothing waits to be sent.
  bool is_flushed() const { return unsent_.empty(); }
  /// Of the standard error.
  const LastLines& last_lines() const { return last_; }

 private:
  bool read_from(std::size_t stream);
  void send();

  Descriptor connection_;
  std::array<Descriptor, 2> pipes_;
  std::string unsent_;
  LastLines last_;
};

/// The text of one stream of a rank with "[3] " before each line. A carriage return ends a line,
/// too: a bar that a program redraws in place becomes several lines.
class Prefixer {
 public:
  explicit Prefixer(int rank);
  /// Appends the beginning of `text` to `to`, until that has `most` bytes or the text has ended.
  /// Returns how much of the text that was.
  std::size_t append(std::string_view text, std::string& to, std::size_t most);

 private:
  std::string prefix_;
  bool in_line_ = false, after_return_ = false;
};

/// fastrun's end of all these connections. It writes to its own standard output and error, and
/// reads no further while those accept nothing. Lines of several ranks stay whole, up to 4096
/// bytes; a part of a line waits 0.2 s for the rest. With prefixes, it waits for all of the line.
class Outputs {
 public:
  /// Called before text is written to a descriptor.
  using BeforeWriting = std::function<void(int descriptor, std::string_view text)>;
  /// Called with all that a rank prints to a stream, unchanged.
  using Log = std::function<void(int rank, char stream, std::string_view text)>;
  explicit Outputs(bool prefixes = false, BeforeWriting before_writing = {}, Log log = {})
      : prefixes_(prefixes), before_writing_(std::move(before_writing)), log_(std::move(log)) {}

  /// The connection of a rank, and what has been read of it already.
  void add(Descriptor connection, std::string begun, int rank = 0);
  /// Adds what poll() must watch.
  void watch(std::vector<pollfd>& watched) const;
  /// Moves what can be moved without waiting.
  void advance();
  /// All connections have ended and all is written.
  bool is_done() const { return receivers_.empty(); }
  /// Text for the standard output could not be written.
  bool has_lost_output() const { return has_lost_output_; }
  /// Text waits for the standard output or error.
  bool is_blocked() const;

 private:
  /// What a rank has printed to a stream after its last whole line.
  struct BegunLine {
    std::optional<Prefixer> prefixer;
    std::string text;
    fast::Deadline wait{fast::Seconds(0)};
  };
  struct Receiver {
    Descriptor connection;
    int rank = 0;
    std::string bytes;  ///< parts: a stream, the length in 4 bytes, the text
    bool ended = false;
    std::array<BegunLine, 2> begun{};  ///< of each stream
  };
  static void receive(Receiver& receiver);
  void write_out(Receiver& receiver) const;
  bool is_to_be_written(const Receiver& receiver, const BegunLine& begun) const;
  bool write_lines(char stream, BegunLine& begun, std::string_view& more, bool all) const;

  bool prefixes_;
  BeforeWriting before_writing_;
  Log log_;
  std::vector<Receiver> receivers_;
  mutable bool has_lost_output_ = false;
};

/// The files of fastrun --log-dir: one per rank, with the lines of its standard output and error.
class RankLogs {
 public:
  using Say = std::function<void(const std::string& line)>;
  /// Makes `folder` if it is missing. Throws Error if that is not possible. An empty `folder` means
  /// that there are no files; add() then does nothing.
  RankLogs(std::string folder, int ranks, Say say);

  /// Takes what `rank` has printed to a stream, 'o' or 'e', and appends whole lines to its file. A
  /// file that cannot be written is left out from then on, and `say` gets one line for all files.
  void add(int rank, char stream, std::string_view text);
  /// Appends the lines that have no end.
  void finish();

 private:
  struct File {
    int rank = 0;
    Descriptor descriptor{};
    bool failed = false;
    std::array<std::string, 2> begun{};  ///< of each stream, after its last line
  };
  void append(File& file, std::string_view text);

  std::string folder_;
  Say say_;
  std::vector<File> files_;
  bool told_ = false;
};

}  // namespace fastrun
